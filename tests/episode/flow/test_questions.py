"""Flow policy of questions: repairs, conversations, programs that run ahead, callbacks, recordings and searches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from pyrag import ConfigError, PyRAG
from pyrag.agents.llm import make_llm_agents
from pyrag.episode.ledger import Recording
from pyrag.extend import DependentCall, Message
from pyrag.llm.clients.scripted import ScriptedChat
from pyrag.retrieval.memory import InMemoryRetriever
from pyrag.runtime.answering import answer_question
from pyrag.runtime.engines import Engines
from pyrag.settings import Settings
from pyrag.tools.tool import as_tools, tool
from pyrag.trace.model import Passage, Trace
from pyrag_sandbox import Sandbox
from tests.episode.flow.conftest import Desk

SEARCH = 'docs = retrieve("town")\nfact = answer("Who?", docs)\n'
DEPENDENT = f"{SEARCH}order(fact)\nfinal_answer = fact"


@dataclass
class Planned:
    """Asks questions whose programs a scripted model writes."""

    sandbox: Sandbox = field(default_factory=Sandbox)
    orders: list[str] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)
    model: ScriptedChat | None = None

    def _order(self, item: str) -> str:
        """Order an item."""
        self.orders.append(item)
        return f"N{len(self.orders)}"

    async def ask(
        self, *programs: str, confirm: Any = None, recording: Recording | None = None,
        earlier: Sequence[Message] = (), replies: Any = None, keep: bool = False, **settings: Any,
    ) -> Trace:  # fmt: skip
        """Ask, with each program as a plan or its repair."""
        tools = as_tools([tool(effects=True, name="order")(self._order)])
        written = [f"```python\n{program}\n```" for program in programs]
        scripts = {"decompose": '["How many?"]', "plan": written, "answer": ["Ada"] * 9, **(replies or {})}
        self.model = ScriptedChat(scripts)
        retriever = _Noting(self.queries)
        engines = Engines(make_llm_agents(self.model), retriever, self.sandbox, tools=tools, confirm=confirm)
        chosen = Settings(**{"repairs": max(len(programs) - 1, 0), "stream": False, "plan_checks": False, **settings})
        return await answer_question("How many?", engines, chosen, recording=recording, keep=keep, earlier=earlier)


class _Noting(InMemoryRetriever):
    def __init__(self, queries: list[str]) -> None:
        super().__init__([Passage("alpha", "Alpha", "Alpha is a town. Its mayor is Ada.")])
        self._queries = queries

    async def retrieve(self, query: str, topk: int, **more: Any) -> Any:
        self._queries.append(query)
        return await super().retrieve(query, topk, **more)


@pytest.fixture
async def planned() -> AsyncIterator[Planned]:
    """A desk of its own for each test."""
    planned = Planned()
    yield planned
    await planned.sandbox.aclose()


def refusal_of(trace: Trace) -> str:
    assert trace.error is not None
    assert trace.error.kind == "flow", trace.error
    return trace.error.message


async def test_planned_programs_are_guarded(planned: Planned) -> None:
    assert "its argument 1 depends on retrieved text" in refusal_of(await planned.ask(DEPENDENT))
    assert planned.orders == []


async def test_a_repair_after_a_search_may_not_act(planned: Planned) -> None:
    trace = await planned.ask(f"{SEARCH}final_answer = int(fact)", 'order("Ada")\nfinal_answer = "done"')
    assert "written after passages had been retrieved" in refusal_of(trace)
    assert planned.orders == []


async def test_a_repair_before_any_search_may_act(planned: Planned) -> None:
    trace = await planned.ask('final_answer = int("x")', 'order("pen")\nfinal_answer = "done"')
    assert (trace.error, planned.orders) == (None, ["pen"])


async def test_a_repair_is_answered_from_the_record(planned: Planned) -> None:
    trace = await planned.ask(f'order("pen")\n{SEARCH}final_answer = int(fact)', 'final_answer = order("pen")')
    assert (trace.error, trace.answer.text, planned.orders) == (None, "N1", ["pen"])


async def test_printed_passages_reach_no_repair_that_acts(planned: Planned) -> None:
    trace = await planned.ask(f"{SEARCH}print(docs[0].text)\nfinal_answer = 1 // 0", 'order("Ada")\nfinal_answer = 1')
    assert (refusal_of(trace) != "", planned.orders) == (True, [])


async def test_the_memo_makes_no_call_free(planned: Planned) -> None:
    program = f'again = answer("Who?", docs)\n{SEARCH}'.join(("docs = retrieve('town')\n", "order(again)\n"))
    refusal_of(await planned.ask(f"{program}final_answer = fact"))
    assert planned.orders == []


@pytest.mark.parametrize("role", ["assistant", "tool"])
async def test_earlier_answers_count_as_retrieved(planned: Planned, role: str) -> None:
    earlier = [Message("user", "Who is the mayor?"), Message(role, "Ada")]
    replies = {"standalone": "<question>How many pens does Ada want?</question>"}
    trace = await planned.ask('order("pen")\nfinal_answer = 1', earlier=earlier, replies=replies)
    assert "derived from earlier answers" in refusal_of(trace)
    assert planned.orders == []


async def test_earlier_questions_of_the_user_are_free(planned: Planned) -> None:
    replies = {"standalone": "<question>How many pens?</question>"}
    earlier = [Message("user", "Pens.")]
    trace = await planned.ask('order("pen")\nfinal_answer = 1', earlier=earlier, replies=replies)
    assert (trace.error, planned.orders) == (None, ["pen"])


async def test_programs_that_run_ahead_make_no_call(planned: Planned) -> None:
    trace = await planned.ask(f'{SEARCH}if "x" in fact:\n    order("pen")\nfinal_answer = fact', stream=True)
    assert (trace.error, planned.orders) == (None, [])


async def test_allow_makes_every_call(planned: Planned) -> None:
    trace = await planned.ask(DEPENDENT, flow="allow")
    assert (trace.error, planned.orders) == (None, ["Ada"])


@pytest.mark.parametrize("policy", ["auto", "confirm", "strict"])
async def test_a_callback_may_allow_a_call(planned: Planned, policy: str) -> None:
    asked: list[DependentCall] = []

    def confirm(call: DependentCall) -> bool:
        asked.append(call)
        return True

    trace = await planned.ask(f'order("pen")\n{DEPENDENT}', confirm=confirm, flow=policy)
    assert (trace.error, planned.orders) == (None, ["pen", "Ada"])
    assert [(call.tool, call.args, call.line) for call in asked] == [("order", ("Ada",), 4)]
    assert [passage.id for passage in asked[0].passages] == ["alpha"]
    assert "its argument 1 depends on retrieved text" in str(asked[0])


async def test_asynchronous_callbacks_are_awaited(planned: Planned) -> None:
    async def confirm(call: DependentCall) -> bool:
        await asyncio.sleep(0)
        return call.args == ("Ada",)

    trace = await planned.ask(DEPENDENT, confirm=confirm)
    assert (trace.error, planned.orders) == (None, ["Ada"])


@pytest.mark.parametrize("reply", [False, None, "yes", 1])
async def test_anything_but_true_refuses(planned: Planned, reply: Any) -> None:
    assert "it was not confirmed" in refusal_of(await planned.ask(DEPENDENT, confirm=lambda call: reply))
    assert planned.orders == []


async def test_a_callback_that_fails_refuses(planned: Planned) -> None:
    def confirm(call: DependentCall) -> bool:
        raise RuntimeError("no terminal")

    message = refusal_of(await planned.ask(DEPENDENT, confirm=confirm))
    assert "the callback confirm failed with RuntimeError: no terminal" in message
    assert planned.orders == []


async def test_confirm_without_a_callback_says_so(planned: Planned) -> None:
    assert "nobody can confirm it here" in refusal_of(await planned.ask(DEPENDENT, flow="confirm"))


@pytest.mark.parametrize("confirm", [None, lambda call: True, lambda call: False])
async def test_replays_repeat_the_decision(planned: Planned, confirm: Any) -> None:
    trace = await planned.ask(DEPENDENT, confirm=confirm, keep=True)
    before = list(planned.orders)
    again = await planned.ask("unused", recording=Recording(trace.exchanges))
    assert (again.error, again.answer, planned.orders) == (trace.error, trace.answer, before)


def test_confirm_must_be_callable() -> None:
    with pytest.raises(ConfigError, match="confirm is a function"):
        PyRAG(confirm="yes")  # type: ignore[arg-type]


def test_pyrag_takes_the_callback() -> None:
    desk = Desk()
    with desk.open(confirm=lambda call: True) as rag:
        trace, orders = desk.run(rag, f"{SEARCH}order(fact)\nfinal_answer = fact")
    assert (trace.error, orders) == (None, ["yes"])


async def test_searches_with_effects_send_no_passage(planned: Planned) -> None:
    trace = await planned.ask(f'{SEARCH}final_answer = answer("q", retrieve(f"who is {{fact}}"))', search_effects=True)
    assert "retrieve('who is Ada') in line 3" in refusal_of(trace)
    assert planned.queries == ["town"]


async def test_plain_searches_with_effects_are_made(planned: Planned) -> None:
    source = f'{SEARCH}more = retrieve("hill")\nfinal_answer = fact'
    trace = await planned.ask(source, search_effects=True)
    assert (trace.error, planned.queries) == (None, ["town", "hill"])


async def test_unknown_answers_cause_no_further_search(planned: Planned) -> None:
    settings = {"search_effects": True, "recovery": "rewrite+boost", "whole_question": True}
    replies = {"answer": ["unknown"] * 9, "rewrite": ["the mayor Ada"] * 9}
    await planned.ask(f"{SEARCH}final_answer = fact", replies=replies, **settings)
    assert planned.queries == ["town"]


async def test_methods_that_search_twice_are_guarded(planned: Planned) -> None:
    replies = {"reason": ["Ada is a mayor.", "So the answer is: Ada."]}
    trace = await planned.ask("unused", method="ircot", search_effects=True, replies=replies)
    refusal_of(trace)
    assert planned.queries == ["How many?"]
