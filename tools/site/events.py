"""Reference of events, generated from their data classes."""

from __future__ import annotations

import re
from dataclasses import MISSING, fields, is_dataclass
from typing import get_args

from pyrag.trace.events import Event
from tools.site.tables import code, docstring, table

_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")
_BASE = ("question", "number", "at")
_HEAD = """\
# Events

Observers of `ask` get objects of these classes, in this order for a simple question ([python.md](../python.md#events)
has an example). The service streams them as JSON, and a trace keeps them in `trace.events`
([observability.md](../observability.md#events)): the name in the second column under `event`, the seconds since the
question was asked under `at`, then the fields. Each object also has the `question` that it belongs to, and its
`number` in a batch, from 0.

"""


def event_names() -> list[str]:
    """Return the names of events in JSON: `StepStarted` becomes `step_started`."""
    return [_name(kind) for kind in get_args(Event)]


def events_page() -> str:
    """Return the reference of events."""
    kinds = get_args(Event)
    overview = table(("class", "in JSON"), [(code(kind.__name__), code(_name(kind))) for kind in kinds])
    return _HEAD + overview + "".join(map(_section, kinds))


def _name(kind: type) -> str:
    return _CAPITAL.sub("_", kind.__name__).lower()


def _default(value: object) -> str:
    return f"{type(value).__name__}()" if is_dataclass(value) else repr(value)


def _section(kind: type) -> str:
    rows = [
        (code(field.name), code(field.type), "" if field.default is MISSING else code(_default(field.default)))
        for field in fields(kind)
        if field.name not in _BASE
    ]
    return f"\n## {kind.__name__}\n\n{docstring(kind)}\n{table(('field', 'type', 'default'), rows)}"
