"""The profile `paper-release`: a whole question with replies in the form of PyRAG's release."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from pyrag.agents.llm import make_llm_agents
from pyrag.errors import ConfigError
from pyrag.llm.clients.scripted import ScriptedChat
from pyrag.runtime.answering import answer_question
from pyrag.runtime.engines import Engines, open_engines
from pyrag.settings import Settings, load_settings, make_settings
from pyrag.trace.model import Passage, Trace
from pyrag_sandbox import Sandbox

QUESTION = "When was the author of Alpha born?"
SUB_QUERIES = '["Who wrote Alpha?", "When was Ann Lee born?"]'
PROGRAM = """\
docs1 = retrieve("Who wrote Alpha?")
author = answer("Who wrote Alpha?", docs1)
docs2 = retrieve(f"When was {author} born?")
born = answer(f"When was {author} born?", docs2)
final_answer = answer(f"Given: {author} was born {born}. Answer the question: When was the author of Alpha born?")
"""


def answered(text: str, thought: str = "Doc [1] says so.") -> str:
    return f"<redacted_thinking>{thought}</redacted_thinking>\n<answer> {text} </answer>"


class Library:
    name = "library"

    def __init__(self, *, empty: bool = False) -> None:
        self.log: list[tuple[str, int]] = []
        self.empty = empty

    async def retrieve(self, query: str, topk: int) -> list[Passage]:
        self.log.append((query, topk))
        return [] if self.empty else [Passage(f"{query}-{n}", "", f"text {n}", 1 / n) for n in range(1, topk + 1)]

    async def aclose(self) -> None:
        return


async def ask(replies: Sequence[str], library: Library, **more: object) -> tuple[Trace, ScriptedChat]:
    model = ScriptedChat(replies)
    settings = make_settings({"profile": "paper-release", "stream": False, **more})
    agents = make_llm_agents(model, prompts_dir=settings.prompts, retries=settings.reply_retries)
    async with Sandbox() as sandbox:
        return await answer_question(QUESTION, Engines(agents, library, sandbox), settings), model


async def test_a_question_with_replies_of_the_release() -> None:
    replies = [SUB_QUERIES, PROGRAM, answered("Ann Lee"), answered("1962"), answered("1962", "The year is given.")]
    trace, model = await ask(replies, Library())
    assert (trace.answer.text, trace.error, trace.warnings) == ("1962", None, ())
    assert len(model.calls) == 5
    assert "Sub-queries to resolve:\n" + SUB_QUERIES in model.calls[1][1].content


async def test_an_unknown_step_is_searched_again_and_may_stay() -> None:
    nothing = answered("unknown")
    library = Library()
    trace, model = await ask([SUB_QUERIES, PROGRAM, nothing, nothing, nothing, nothing, answered("1962")], library)
    assert [topk for _, topk in library.log] == [5, 10, 5, 10]
    assert library.log[2][0] == "When was unknown born?"  # used in a query, as in the release
    assert (trace.answer.text, len(model.calls)) == ("1962", 7)


async def test_after_three_bad_lists_the_question_is_asked() -> None:
    program = f'docs = retrieve("{QUESTION}")\nfinal_answer = answer("{QUESTION}", docs)\n'
    trace, model = await ask(["no list", "no list", "no list", program, answered("1962")], Library())
    assert (trace.sub_queries, trace.fallbacks, trace.answer.text) == ((QUESTION,), ("decompose",), "1962")
    assert len(model.calls) == 5


async def test_three_syntax_errors_end_the_question() -> None:
    trace, model = await ask([SUB_QUERIES, "x = (", "x = (", "x = (", PROGRAM], Library())
    assert (trace.error is None, len(model.calls)) == (False, 4)


@pytest.mark.parametrize(("profile", "answer", "calls"), [("paper-release", "1962", 1), ("paper", "unknown", 0)])
async def test_an_empty_list_of_documents_aggregates(profile: str, answer: str, calls: int) -> None:
    program = f'final_answer = answer("Given: 1962. Answer the question: {QUESTION}", [])\n'
    replies = [SUB_QUERIES, program, answered("1962")]
    trace, model = await ask(replies, Library(), profile=profile, plan_checks=False, repairs=0)
    assert (trace.answer.text, len(model.calls)) == (answer, 2 + calls)


async def test_a_search_that_finds_nothing_aggregates_too() -> None:
    program = f'docs = retrieve("{QUESTION}")\nfinal_answer = answer("{QUESTION}", docs)\n'
    trace, model = await ask([SUB_QUERIES, program, answered("1962")], Library(empty=True))
    assert (trace.answer.text, trace.steps[1].mode) == ("1962", "aggregation")
    assert "No retrieved documents." in model.calls[-1][1].content


def test_the_profile_has_the_values_of_the_release() -> None:
    made = make_settings({"profile": "paper-release"})
    assert (made.prompts, made.request, made.structured) == ("paper", {"temperature": 0.7}, False)
    assert (made.reply_retries, made.repairs, made.topk, made.boost_topk) == (2, 3, 5, 10)
    assert (made.unknown, made.no_passages, made.plan_checks) == ("allow", "aggregate", False)
    assert made.max_calls is not None
    assert made.max_calls > 1_000


def test_other_options_win_over_the_profile() -> None:
    made = load_settings(
        {"profile": "paper-release", "prompts": "small", "request": ["seed=7"]}, environ={"PYRAG_MAX_CALLS": "9"}
    )
    assert (made.prompts, made.max_calls) == ("small", 9)
    assert made.request == {"temperature": 0.7, "seed": 7}
    cold = load_settings({"profile": "paper-release", "request": ["temperature=0"]}, environ={})
    assert cold.request == {"temperature": 0.0}


def test_the_profile_paper_is_unchanged() -> None:
    assert make_settings({"profile": "paper"}) == Settings()


def test_retries_must_not_be_negative() -> None:
    with pytest.raises(ConfigError, match="reply_retries"):
        make_settings({"reply_retries": -1})


async def test_engines_send_the_temperature_and_no_schema(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps([SUB_QUERIES]), encoding="utf-8")
    engines = open_engines(make_settings({"profile": "paper-release", "llm": f"scripted:{script}"}), Library())
    try:
        decomposer = engines.agents.decomposer
        assert (decomposer.sampling.temperature, decomposer.retries) == (0.7, 2)  # type: ignore[attr-defined]
        assert (await decomposer.decompose(QUESTION)).sub_queries[0] == "Who wrote Alpha?"
    finally:
        await engines.aclose()
