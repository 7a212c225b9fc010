"""Check that trained weights reach the rollout engine. verl's workers import it through `VERL_USE_EXTERNAL_MODULES`.

With some versions of peft, verl's older FSDP finds no tensor of an adapter. It then silently sends none, and all
rollouts come from the base model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import wraps
from typing import Any

from verl.workers.engine.fsdp.transformer_impl import FSDPEngine

from pyrag.errors import install_extra

MESSAGE = (
    "no tensor of the trained weights reaches the rollout engine, and rollouts would stay those of the model before "
    f"training: {install_extra('rl')}, with the versions of verl and peft that it names"
)


def not_empty(tensors: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Yield the named tensors that verl sends. Raises `RuntimeError` if there are none."""
    count = 0
    for count, pair in enumerate(tensors, start=1):  # noqa: B007  counted below
        yield pair
    if not count:
        raise RuntimeError(MESSAGE)


_get_per_tensor_param = FSDPEngine.get_per_tensor_param


@wraps(_get_per_tensor_param)
def _checked(self: Any, *args: Any, **kwargs: Any) -> Any:
    tensors, peft_config = _get_per_tensor_param(self, *args, **kwargs)
    return not_empty(tensors), peft_config


FSDPEngine.get_per_tensor_param = _checked
