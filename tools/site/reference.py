"""Reference pages of the site, generated from the code when the site is built."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyrag
import pyrag.errors
from pyrag.errors import PyRAGError
from tools.site.api import api_page
from tools.site.events import events_page
from tools.site.service import fields_of, http_page, mcp_page
from tools.site.tables import code, docstring, prose, summary, table
from tools.site.trace_schema import schema_text, trace_schema

_TRACES = """\
# Traces

`pyrag ask --trace FILE` and `pyrag.trace` write a trace as one line of JSON;
[observability.md](../observability.md#look-at-a-trace) shows its use. Its [JSON schema](#json-schema) is in the
installed package: `importlib.resources.files("pyrag.trace") / "schema.json"`. Fields with a default may be missing.
Readers must ignore fields that they do not know.

## Variables

`variables` holds the variables of a program as JSON:

| value of the program | in JSON |
| --- | --- |
| key of a dict | text: `"True"`, `"None"`, `"1.5"`; a key that is taken is followed by its type, as in `"1 (int)"` |
| tuple, set | list |
| whole number of more than 4,200 digits | hexadecimal text |
| `nan`, `inf` | text |
| bytes | the text of `repr` |
| half of a surrogate pair | U+FFFD |
| a value nested deeper than 100 levels, or in itself | `"…"` |
"""
_ERRORS = """\
# Errors and exit codes

All errors that pyrag raises on purpose are subclasses of `pyrag.PyRAGError`. A question that fails does not raise
from a batch: its trace has the error's *kind* and *exit code* in `trace.error`, and `--json` and the service show the
same.

"""
_EXIT_CODES = """
## Exit codes

| code | meaning |
| --- | --- |
| 0 | Answered, or the answer is unknown. |
| 1 | A deadline or limit, a program that failed, a file that cannot be written. |
| 2 | Invalid input: the question, an option, a setting, a file. |
| 3 | A model server, a retriever or the sandbox could not be used. |
| 70 | Internal error of pyrag. |
| 130 | Ctrl-C. |
"""
# Kinds in `trace.error` that no exception has.
_OTHER_KINDS = (
    ("deadline", "1", "The time limit of the question was reached."),
    ("sandbox", "3", "The sandbox could not run the program: `pyrag doctor` names the reason."),
    ("crash", "1", "An unexpected exception; the message says how to see its traceback."),
)


def reference_pages() -> dict[str, str]:
    """Return the generated pages by their path on the site."""
    return {
        "reference/python-api.md": api_page(),
        "reference/programs.md": prose(pyrag.program_reference()),
        "reference/http.md": http_page(),
        "reference/mcp.md": mcp_page(),
        "reference/traces.md": traces_page(),
        "reference/events.md": events_page(),
        "reference/errors.md": errors_page(),
    }


def traces_page() -> str:
    """Return the reference of a trace's data, with its JSON schema."""
    definitions = trace_schema()["$defs"]
    parts = [
        f"## {name}\n\n{definitions[name].get('description', '')}\n\n{fields_of(definitions[name])}"
        for name in ["Trace", *sorted(definitions.keys() - {"Trace"})]
    ]
    return "\n".join([_TRACES, *parts, f"## JSON schema\n\n```json\n{schema_text()}```\n"])


def errors_page() -> str:
    """Return the reference of exceptions, kinds of errors and exit codes."""
    classes = list(error_classes(PyRAGError))
    rows = [(code(kind.__name__), code(kind.kind), str(kind.exit_code), summary(kind)) for kind in classes]
    overview = table(("class", "kind", "exit code", "meaning"), rows)
    others = table(
        ("kind", "exit code", "meaning"), [(code(kind), number, text) for kind, number, text in _OTHER_KINDS]
    )
    described = "".join(f"\n### {kind.__name__}\n\n{docstring(kind)}" for kind in classes)
    return f"{_ERRORS}{overview}\nKinds without an exception:\n\n{others}{_EXIT_CODES}\n## Classes\n{described}"


def error_classes(base: Any) -> Iterator[Any]:
    """Yield an exception of `pyrag.errors` and its subclasses there, each before its own subclasses."""
    if base.__module__ == pyrag.errors.__name__:
        yield base
        for kind in base.__subclasses__():
            yield from error_classes(kind)


if __name__ == "__main__":
    print(json.dumps({page: len(text) for page, text in reference_pages().items()}, indent=1))
