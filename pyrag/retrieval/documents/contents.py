"""Search-R1's one-field form of a passage: the title in quotes on the first line, the text after it."""

from __future__ import annotations


def split_contents(contents: str, title: str = "") -> tuple[str, str]:
    """Title and text; a `title` that is known already wins over the one in the contents."""
    first, _, rest = contents.partition("\n")
    if rest.strip() and len(first) > 2 and first[0] == first[-1] == '"':
        return title or first[1:-1].strip(), rest.strip()
    return title, contents.strip()
