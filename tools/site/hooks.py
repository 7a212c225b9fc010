"""MkDocs hooks that add the generated pages of the site, and rewrite links that lead out of the folder docs."""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
# Documents outside of docs, and their pages on the site.
DOCUMENTS = {
    "README.md": "index.md",
    "SECURITY.md": "project/security.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
    "CODE_OF_CONDUCT.md": "project/conduct.md",
    "examples/README.md": "examples.md",
    "sandbox/README.md": "project/sandbox.md",
    "pyrag/embedded/model/MODEL_CARD.md": "project/reader.md",
}
PAGES = {page: document for document, page in DOCUMENTS.items()}
_FENCED = re.compile(r"(^(?P<fence>```+|~~~+).*?^(?P=fence)$)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[(?P<text>[^\]]*)\]\((?!https?:|mailto:|#)(?P<target>[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")
_REFERENCE = re.compile(r"`(reference/[a-z-]+\.md)`")  # a page that only the site has
_LOADED = re.compile(
    r"<(?:script|img|iframe|link)\b[^>]*?\b(?:src|href)=\"?(?:https?:)?//(?!localhost)[^\s>]*", re.IGNORECASE
)
_MARK = re.compile(r"^<!-- (?:not run|reply of).*-->\n", re.MULTILINE)


def on_config(config: Any) -> Any:
    """Make anchors in the same way as GitHub, so that links work in both places."""
    from pymdownx.slugs import slugify

    config.mdx_configs["toc"]["slugify"] = slugify(case="lower")
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages whose source is not in docs. If docs already has a page, it is not generated."""
    from mkdocs.structure.files import File

    sys.path.insert(0, str(ROOT))
    from tools.site.reference import reference_pages

    pages = {page: (ROOT / document).read_text(encoding="utf-8") for page, document in PAGES.items()}
    for page, text in {**pages, **reference_pages()}.items():
        if not files.get_file_from_path(page):
            files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Rewrite the links of a page, and remove marks that only tests use."""
    if page.file.src_uri == "index.md":
        page.meta["hide"] = ["navigation"]  # a column with the single word "Home"
    parts = _FENCED.split(_MARK.sub("", markdown))
    # `split` returns text, fenced block, fence, text, …
    return "".join(
        part if number % 3 == 1 else site_links(part, page.file.src_uri)
        for number, part in enumerate(parts)
        if number % 3 != 2
    )


def site_links(text: str, page: str) -> str:
    """Return a text with links to pages of the site.

    Args:
        text: Markdown from the repository, where links point to files.
        page: Page of the site that shows the text, such as "notes/words.md".

    Returns:
        The text. A link to a file that the site does not have becomes the link's text and the file's path. The name
        of a generated page, such as `reference/http.md`, becomes a link.
    """
    folder = posixpath.dirname(PAGES.get(page, f"docs/{page}"))

    def target_of(match: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, match["target"]))
        if path in DOCUMENTS or path.startswith("docs/"):
            shown = DOCUMENTS.get(path, path.removeprefix("docs/"))
            relative = posixpath.relpath(shown, posixpath.dirname(page) or ".")
            return f"[{match['text']}]({relative}{match['anchor'] or ''})"
        if not (ROOT / path).exists():
            return match[0]  # the strict build reports it
        plain = match["text"].strip("`")
        return f"`{path}`" if path.endswith(plain) else f"{match['text']} (`{path}`)"

    above = posixpath.relpath(".", posixpath.dirname(page) or ".")
    return _REFERENCE.sub(rf"[`\1`]({above}/\1)", _LINK.sub(target_of, text))


def on_post_build(config: Any) -> None:
    """Refuse pages that load something from another host, since the site must work offline."""
    from mkdocs.exceptions import PluginError

    for page in sorted(Path(config.site_dir).rglob("*.html")):
        if loaded := _LOADED.search(page.read_text(encoding="utf-8")):
            raise PluginError(f"{page} loads from another host: {loaded[0]}")
