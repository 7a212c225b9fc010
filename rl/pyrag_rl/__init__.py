"""Training, which is a plug-in of pyrag: the entry point `train` of `pyrag.commands` opens it.

config, start, folder, report    a run, from its settings to its files
prompting, data                  training sets, with the exact prompts of the runtime's agents
rewards, mapgrpo                 rewards of completions, which the runtime computes
verl                             verl's trainers: settings, checks, start, rollouts, adapters to serve
curriculum                       stages in a row
cpu_smoke                        verl on a machine without an accelerator, for small models and tests
packed                           packed rows without flash-attn
embedded                         the embedded reader: its weights, and its rewards
verifiers                        an environment of the package verifiers, which finds it as `pyrag-rl`
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyrag_rl.verifiers import PyRAGEnv, PyRAGHarness, PyRAGTaskset

__all__ = ["PyRAGEnv", "PyRAGHarness", "PyRAGTaskset"]


def __getattr__(name: str) -> Any:
    """Import the environment when verifiers looks for it here, because its ids must not contain a dot."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pyrag_rl import verifiers

    return getattr(verifiers, name)
