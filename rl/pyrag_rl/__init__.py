"""Training, a plug-in of pyrag: the entry point `train` of `pyrag.commands` opens it.

config, start, folder, report    a run, from its settings to what it leaves behind
prompting, data                  training sets, in the very words of the runtime's agents
rewards, mapgrpo                 what a completion is worth: the runtime runs it
verl                             verl's trainers: settings, checks, start, rollouts of our own, adapters to serve
curriculum                       stages in a row
cpu_smoke                        verl on a machine without an accelerator: small models, tests
packed                           packs of rows without flash-attn
verifiers                        an environment of that library, which finds it as `pyrag-rl`
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyrag_rl.verifiers import PyRAGEnv, PyRAGHarness, PyRAGTaskset

__all__ = ["PyRAGEnv", "PyRAGHarness", "PyRAGTaskset"]


def __getattr__(name: str) -> Any:
    """Import the environment when verifiers looks for it here: it takes no id with a dot."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pyrag_rl import verifiers

    return getattr(verifiers, name)
