"""Traces as a page for a browser: the page's files, a self-contained document, and a frame for notebooks.

`pyrag.server.page` serves the same files. The document loads nothing: a Content-Security-Policy allows only its own
script and stylesheet, by their hashes. Texts of models and passages are embedded as inert JSON.

Traces are typed as objects here, since `Trace` itself uses this module in notebooks.
"""

from __future__ import annotations

import base64
import hashlib
import html
import posixpath
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

DOCUMENT, SCRIPT = "page.html", "page.js"
_CHARSET_TAG = '<meta charset="utf-8">\n'
_SCRIPT_TAG = f'<script type="module" src="{SCRIPT}"></script>'
_STYLE_TAG = re.compile(r'<link rel="stylesheet" href="([^"]+)">\n')
_IMPORT = re.compile(r'^(?:import|export) \{[^}]*\} from "(\.[^"]+)";[^\n]*\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:class|const|function)\b)", re.MULTILINE)
_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_SHOWN_CONFIG = ("method", "topk", "recovery", "joint", "repairs", "max_calls", "max_tokens", "deadline")
_FRAME_HEIGHT = 760  # pixels; a sandboxed frame cannot resize itself


@cache
def page_file(name: str) -> str:
    """Return the text of one of the page's files by its path, such as `DOCUMENT` or "scripts/reducer.js"."""
    return files("pyrag.trace").joinpath("page", *name.split("/")).read_text(encoding="utf-8")


@cache
def page_paths() -> dict[str, str]:
    """Return the page's files (document, modules, stylesheets) by the path that a browser requests."""
    return {"/": DOCUMENT, **{f"/{name}": name for name in (*_modules(SCRIPT), *_stylesheets())}}


@cache
def _modules(name: str) -> tuple[str, ...]:
    """Return a module and everything that it imports, each after its own imports."""
    names: list[str] = []
    for path in _IMPORT.findall(page_file(name)):
        imported = posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
        names += [module for module in _modules(imported) if module not in names]
    return (*names, name)


def _stylesheets() -> list[str]:
    return _STYLE_TAG.findall(page_file(DOCUMENT))


@cache
def joined_script() -> str:
    """Return the page's modules as one script, since browsers do not load modules from disk.

    The modules are joined in the order of their imports, without import and export statements, so no two of them may
    define the same name.
    """
    return "\n".join(_EXPORT.sub("", _IMPORT.sub("", page_file(name))).strip() + "\n" for name in _modules(SCRIPT))


@cache
def joined_style() -> str:
    """Return the page's stylesheets as one, in the document's order."""
    return "\n".join(map(page_file, _stylesheets()))


def to_html(traces: Sequence[object]) -> str:
    """Return a self-contained document that shows traces without a server or network.

    Requests and replies of agents, and settings that name files or servers, are omitted.
    """
    script, style = joined_script(), joined_style()
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
    data = f'<script type="application/json" id="pyrag-traces">{_inert_json(traces)}</script>\n'
    document = _STYLE_TAG.sub("", page_file(DOCUMENT)).replace(_CHARSET_TAG, _CHARSET_TAG + meta)
    return document.replace(_SCRIPT_TAG, f'<style>{style}</style>\n{data}<script type="module">{script}</script>')


def to_frame(trace: object) -> str:
    """Return an element for notebooks: a frame with the document, without access to the page around it."""
    document = html.escape(to_html([trace]), quote=True)
    size = f'width="100%" height="{_FRAME_HEIGHT}"'
    return f'<iframe title="pyrag trace" sandbox="allow-scripts" {size} frameborder="0" srcdoc="{document}"></iframe>'


def _inert_json(traces: Sequence[object]) -> str:
    import msgspec

    text = msgspec.json.encode([_shown(msgspec.to_builtins(trace)) for trace in traces]).decode()
    for character, escape in _ESCAPES.items():
        text = text.replace(character, escape)
    return text


def _shown(values: dict[str, Any]) -> dict[str, Any]:
    config = {key: value for key, value in values["config"].items() if key in _SHOWN_CONFIG}
    return {**values, "exchanges": [], "variables": {}, "config": config}


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
