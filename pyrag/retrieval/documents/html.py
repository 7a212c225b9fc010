"""HTML as Markdown, by trafilatura (`pyrag-runtime[docs]`): the content of the page without menus and footers."""

from __future__ import annotations

import logging

from pyrag.errors import DataError


def as_markdown(data: bytes, name: str) -> tuple[str, str]:
    """The page's title, which may be empty, and its text. Raises `DataError`."""
    try:
        import trafilatura
    except ImportError:
        raise DataError(
            f"{name} needs a converter that is not installed: run pip install 'pyrag-runtime[docs]'"
        ) from None
    logging.getLogger("trafilatura").addHandler(logging.NullHandler())  # what it complains of is said below
    if b"<html" not in data[:4096].lower():
        data = b"<html><body>" + data + b"</body></html>"  # it takes no fragments
    try:
        tree = trafilatura.load_html(data)
        if tree is None:
            raise DataError(f"{name} is no HTML that can be read: open it in a browser and save it again")
        title = tree.findtext(".//title") or ""
        text = trafilatura.extract(
            data, output_format="markdown", include_comments=False, include_formatting=True, favor_recall=True
        )
        return " ".join(title.split()), text or trafilatura.html2txt(data) or ""
    except (ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:  # of hostile pages
        raise DataError(f"{name} cannot be converted ({error}): save it as text") from error
