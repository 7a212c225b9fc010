"""A planner that writes its replies in pieces, in a scripted world: for tests of what runs ahead of a program."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyrag.agents.llm import LLMPlanner
from pyrag.agents.prompts import load_prompts
from pyrag.agents.protocol import Agents
from pyrag.llm.protocol import Message, Reply, Sampling
from pyrag.runtime.answering import answer_question
from pyrag.runtime.engines import Engines
from pyrag.settings import Settings
from pyrag.trace.codec import from_json, to_json
from pyrag.trace.event_codec import events_of
from pyrag.trace.events import ignore
from pyrag.trace.model import RoleUsage, Step, Trace, Usage
from pyrag.trace.reducer import state_of
from tests.runtime.conftest import World

SAMPLING = Sampling()


@dataclass
class Writer:
    """A chat model that writes one reply after the other, the last one for good, in pieces of these lengths, over and
    over, with a pause of so many seconds after each. Where `before` comes, or the end, it waits for `until`."""

    replies: list[str]
    lengths: Sequence[int] = (4,)
    pause: float = 0.0
    until: Callable[[], bool] = lambda: True
    before: str = "It looks up"
    name: str = "writer"
    calls: list[tuple[Message, ...]] = field(default_factory=list)

    async def complete(self, messages: Sequence[Message], sampling: Sampling = SAMPLING) -> Reply:
        self.calls.append(tuple(messages))
        return Reply(self.replies[min(len(self.calls), len(self.replies)) - 1], 50, 20)

    async def stream(self, messages: Sequence[Message], sampling: Sampling, on_text: Callable[[str], None]) -> Reply:
        reply = await self.complete(messages, sampling)
        position = turn = 0
        while position < len(reply.text):
            end = position + self.lengths[turn % len(self.lengths)]
            on_text(reply.text[position:end])
            position, turn = end, turn + 1
            await asyncio.sleep(self.pause)
            while 0 <= reply.text.find(self.before) - max(self.lengths) < end and not self.until():  # noqa: ASYNC110 (any condition)
                await asyncio.sleep(0.001)
        return reply

    async def aclose(self) -> None:
        return


def engines_of(world: World, writer: Writer) -> Engines:
    return Engines(Agents("world", world, LLMPlanner(writer, load_prompts(None)), world), world, world.sandbox)


async def ask(world: World, writer: Writer, **settings: Any) -> Trace:
    engines = engines_of(world, writer)
    keep = bool(settings.pop("keep", False))
    recording, observer = settings.pop("recording", None), settings.pop("observer", ignore)
    chosen = Settings(**settings)
    return await answer_question("What?", engines, chosen, keep=keep, recording=recording, observer=observer)


def timeless(trace: Trace, *, paid: bool = True) -> Trace:
    """A trace without what differs from run to run: times, which of equal calls side by side was the first, the setting
    itself, and what was begun in vain; on request, without what was paid for."""
    usage = replace(
        trace.usage,
        seconds=0.0,
        unused_calls=0,
        unused_retrievals=0,
        model_calls=trace.usage.model_calls - trace.usage.unused_calls,
        retrievals=trace.usage.retrievals - trace.usage.unused_retrievals,
        prompt_tokens=0,
        completion_tokens=0,
    )
    exchanges = sorted((replace(one, seconds=0.0) for one in trace.exchanges), key=lambda one: (one.role, one.key))
    roles = {role: RoleUsage(used.requests) for role, used in trace.roles.items()} if paid else {}
    still = replace(trace, steps=tuple(map(_still, trace.steps)), config={}, roles=roles, started_at="", events=())
    return replace(still, usage=usage if paid else Usage(), exchanges=tuple(exchanges) if paid else ())


def agrees(trace: Trace) -> None:
    """Check that the events of a trace lead to its content."""
    state = state_of(events_of(from_json(to_json(trace))))
    assert [(one.id, one.primitive, one.query) for one in state.steps.values()] == [
        (one.id, one.primitive, one.query) for one in trace.steps
    ]
    assert all(step.step in (None, one) for step, one in zip(state.steps.values(), trace.steps, strict=True))
    assert [(one.program.source, one.error) for one in state.programs] == [
        (one.source, one.error) for one in trace.programs
    ]
    assert (state.sub_queries, state.warnings) == (trace.sub_queries, trace.warnings)
    assert (state.answer, state.error) == (trace.answer, trace.error)
    assert state.phase == ("failed" if trace.error else "answered")
    assert not state.open_steps


def _still(step: Step) -> Step:
    return replace(step, started=0.0, seconds=0.0, memo=False)


def fenced(program: str) -> str:
    return f"Here it is.\n```python\n{program.strip()}\n```\nIt looks up one thing after the other."
