"""The three agents over a scripted model: retries, fallbacks, what is counted and kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pyrag.agents.llm import RETRIES, make_llm_agents
from pyrag.agents.protocol import Agents
from pyrag.errors import BadOutputError, ConfigError, RetryableServiceError
from pyrag.llm.clients.scripted import DEFAULT_SAMPLING, ScriptedChat
from pyrag.llm.protocol import Message, Reply, Sampling
from pyrag.trace.model import Passage, Usage

GOOD = 'docs = retrieve("q")\nfinal_answer = answer("q", docs)'
BROKEN = 'docs = retrieve("q"\nfinal_answer = answer("q", docs)'
CHAIN = """q1 = "Who directed Dracula?"
a1 = answer(q1, retrieve(q1))
q2 = f"When was {a1} born?"
a2 = answer(q2, retrieve(q2))
final_answer = a2"""
PASSAGES = (Passage("p1", "Alpha", "Alpha is a film."), Passage("p2", "Ada", "Ada directed Alpha."))


def fenced(source: str) -> str:
    return f"```python\n{source}\n```"


def scripted(*replies: Any) -> tuple[Agents, ScriptedChat]:
    """Agents over a model that gives these replies; each costs 10 prompt and 1 completion token."""
    entries = [reply if isinstance(reply, dict) else {"reply": reply} for reply in replies]
    model = ScriptedChat([{"prompt_tokens": 10, "completion_tokens": 1, **entry} for entry in entries])
    return make_llm_agents(model), model


def cost(calls: int) -> Usage:
    return Usage(model_calls=calls, prompt_tokens=10 * calls, completion_tokens=calls)


class TestDecomposer:
    async def test_first_reply(self) -> None:
        agents, _ = scripted('["a?", "b?"]')
        found = await agents.decomposer.decompose("q?")
        assert (found.sub_queries, found.usage, found.raw, found.note) == (("a?", "b?"), cost(1), ('["a?", "b?"]',), "")

    async def test_shows_its_bad_reply_and_what_was_wrong(self) -> None:
        agents, model = scripted("I would search.", '["a?", 3]', '["a?"]')
        found = await agents.decomposer.decompose("q?")
        assert (found.sub_queries, found.usage) == (("a?",), cost(3))
        assert found.raw == ("I would search.", '["a?", 3]', '["a?"]')
        assert [message.role for message in model.calls[-1]] == ["system", "user", "assistant", "user"]
        assert model.calls[-1][2].content == '["a?", 3]'
        assert "must be a string, but one is 3" in model.calls[-1][3].content

    async def test_falls_back_to_the_question(self) -> None:
        agents, _ = scripted(*["no"] * (RETRIES + 1))
        found = await agents.decomposer.decompose("q?")
        assert (found.sub_queries, found.usage, len(found.raw)) == (("q?",), cost(4), 4)
        assert "not decomposed" in found.note
        assert "no JSON list" in found.note

    async def test_a_cut_off_reply_gets_more_room(self) -> None:
        asked: list[Sampling] = []

        class Model(ScriptedChat):
            async def complete(self, messages: Any, sampling: Sampling = DEFAULT_SAMPLING) -> Reply:
                asked.append(sampling)
                return await super().complete(messages, sampling)

        model = Model([{"reply": '["a?", "b', "finish_reason": "length"}, "", '["a?"]'])
        found = await make_llm_agents(model).decomposer.decompose("q?")
        assert found.sub_queries == ("a?",)
        assert [sampling.max_tokens for sampling in asked] == [1024, 2048, 2048]
        assert "cut off at the limit of 1024 tokens" in model.calls[1][3].content
        assert model.calls[2][2].content == "(an empty reply)"


class TestPlanner:
    async def test_first_reply(self) -> None:
        agents, model = scripted(fenced(GOOD))
        plan = await agents.planner.plan("Q {x} $y?", ["a?", "b {z}?"])
        assert (plan.source, plan.usage, plan.sub_queries, plan.raw) == (GOOD, cost(1), (), (fenced(GOOD),))
        assert "Question: Q {x} $y?\nSub-queries:\n1. a?\n2. b {z}?" in model.calls[0][1].content

    async def test_syntax_error_is_repaired_within_the_generation(self) -> None:
        agents, model = scripted(fenced(BROKEN), fenced(GOOD))
        plan = await agents.planner.plan("q?", ["a?"])
        assert (plan.source, plan.usage, len(plan.raw)) == (GOOD, cost(2), 2)
        shown = model.calls[1][-1].content
        assert "SyntaxError: '(' was never closed (line 1)" in shown
        assert BROKEN in shown

    async def test_no_program_is_asked_for_again(self) -> None:
        agents, _ = scripted("Let me think.", fenced(GOOD))
        assert (await agents.planner.plan("q?", ["a?"])).source == GOOD

    async def test_gives_up(self) -> None:
        agents, model = scripted(*[fenced(BROKEN)] * (RETRIES + 1))
        with pytest.raises(BadOutputError, match=r"scripted wrote no program that compiles.*SyntaxError.*--plan-llm"):
            await agents.planner.plan("q?", ["a?"])
        assert len(model.calls) == RETRIES + 1

    async def test_joint(self) -> None:
        agents, _ = scripted(f'```json\n["a?", "b?"]\n```\n{fenced(GOOD)}')
        plan = await agents.planner.plan("q?", None)
        assert (plan.source, plan.sub_queries, plan.usage) == (GOOD, ("a?", "b?"), cost(1))

    async def test_joint_with_a_repaired_program_keeps_the_list(self) -> None:
        agents, _ = scripted(f'```json\n["a?"]\n```\n{fenced(BROKEN)}', fenced(GOOD))
        plan = await agents.planner.plan("q?", None)
        assert (plan.source, plan.sub_queries, plan.usage) == (GOOD, ("a?",), cost(2))

    @pytest.mark.parametrize("reply", [fenced(CHAIN), CHAIN])
    async def test_joint_program_alone_shows_its_questions(self, reply: str) -> None:
        agents, _ = scripted(reply)
        plan = await agents.planner.plan("q?", None)
        assert plan.sub_queries == ("Who directed Dracula?", "When was #1 born?")
        assert plan.note == ""

    async def test_joint_program_without_questions(self) -> None:
        agents, _ = scripted(fenced("final_answer = 'yes'"))
        plan = await agents.planner.plan("q?", None)
        assert plan.sub_queries == ()
        assert "no list of sub-queries" in plan.note

    async def test_small_repair_shows_only_the_error_line(self) -> None:
        model = ScriptedChat([fenced(BROKEN), fenced(GOOD), fenced(GOOD)])
        planner = make_llm_agents(model, prompts_dir="small").planner
        await planner.plan("q?", None)
        assert model.calls[1][-1].content.endswith("SyntaxError: '(' was never closed (line 1)\nCorrect the program.")
        error = 'Traceback (most recent call last):\n  File "<program>", line 1\nNameError: x'
        await planner.repair("q?", ["a?"], "final_answer = x", error)
        assert model.calls[2][-1].content == "q?\n```python\nfinal_answer = x\n```\nNameError: x\nCorrect the program."

    async def test_repair_shows_program_and_traceback(self) -> None:
        agents, model = scripted(fenced(GOOD))
        error = 'Traceback (most recent call last):\n  File "<program>", line 1\nNameError: x'
        assert (await agents.planner.repair("q?", ["a?"], "final_answer = x", error)).source == GOOD
        user = model.calls[0][1].content
        assert all(part in user for part in ("q?", "1. a?", "final_answer = x", error, "stopped with an exception"))

    async def test_repair_of_what_was_not_accepted(self) -> None:
        agents, model = scripted(fenced(BROKEN), fenced(GOOD))
        plan = await agents.planner.repair("q?", ["a?"], "x = 1", "under-decomposition: one retrieve")
        assert (plan.source, plan.usage) == (GOOD, cost(2))
        assert "was not accepted" in model.calls[0][1].content
        assert "under-decomposition: one retrieve" in model.calls[0][1].content


class TestAnswerer:
    async def test_evidence(self) -> None:
        reply = "<redacted_thinking>Doc [2] says so.</redacted_thinking><answer>Ada</answer>"
        agents, model = scripted(reply)
        reading = await agents.answerer.answer("Who directed Alpha?", PASSAGES)
        assert (reading.text, reading.known, reading.citations) == ("Ada", True, (1,))
        assert (reading.rationale, reading.usage, reading.raw) == ("Doc [2] says so.", cost(1), (reply,))
        assert "[Doc 1]\nAlpha is a film.\n\n[Doc 2]\nAda directed Alpha.\n</documents>" in model.calls[0][1].content

    @pytest.mark.parametrize("again", ["Ada", "Brennick"])
    async def test_the_example_is_never_the_answer(self, again: str) -> None:
        copied = "<redacted_thinking>Doc [1] says so.</redacted_thinking><answer>Brennick</answer>"
        agents, model = scripted(copied, f"<answer>{again}</answer>")
        reading = await agents.answerer.answer("Who directed Alpha?", PASSAGES)
        assert (reading.text, len(model.calls)) == ("Ada" if again == "Ada" else "unknown", 2)

    async def test_the_examples_name_is_an_answer_where_documents_hold_it(self) -> None:
        agents, _ = scripted("<answer>Brennick</answer>")
        reading = await agents.answerer.answer("Who?", [Passage("1", "Brennick", "Brennick directed Alpha.")])
        assert reading.text == "Brennick"

    async def test_title_is_written_once(self) -> None:
        agents, model = scripted("<answer>x</answer>")
        await agents.answerer.answer("q?", [Passage("1", "Halka", "An opera."), Passage("2", "Halka", "Halka is one.")])
        assert "[Doc 1]\nHalka\nAn opera.\n\n[Doc 2]\nHalka is one." in model.calls[0][1].content

    async def test_unknown(self) -> None:
        agents, _ = scripted("<redacted_thinking>Doc [1] is not it.</redacted_thinking><answer>Unknown.</answer>")
        reading = await agents.answerer.answer("q?", PASSAGES)
        assert (reading.text, reading.known, reading.citations) == ("unknown", False, ())

    async def test_aggregation_sends_the_query_alone(self) -> None:
        agents, model = scripted("<answer>Ada</answer>")
        await agents.answerer.answer("Given: {x}. Answer the question: Who?", None)
        assert model.calls[0][1] == Message("user", "Given: {x}. Answer the question: Who?")

    async def test_nothing_to_read_costs_nothing(self) -> None:
        agents, model = scripted()
        reading = await agents.answerer.answer("q?", ())
        assert (reading.known, reading.usage, model.calls) == (False, Usage(), [])

    async def test_bad_output_is_asked_for_once_more(self) -> None:
        agents, model = scripted("It is\nhard to say.", "<answer>Ada</answer>")
        reading = await agents.answerer.answer("q?", PASSAGES)
        assert (reading.text, reading.usage, len(reading.raw)) == ("Ada", cost(2), 2)
        assert "it has no <answer>" in model.calls[1][-1].content

    async def test_then_plain_text_counts(self) -> None:
        agents, _ = scripted("a\nb", "Reading closely:\nAnswer: Ada")
        assert (await agents.answerer.answer("q?", PASSAGES)).text == "Ada"

    async def test_then_it_is_unknown_with_a_note(self) -> None:
        agents, _ = scripted("", "word " * 200)
        reading = await agents.answerer.answer("q?", PASSAGES)
        assert (reading.text, reading.known, reading.usage) == ("unknown", False, cost(2))
        assert "no usable answer" in reading.rationale

    async def test_yes_to_a_wh_question_is_asked_again_once(self) -> None:
        query = "Given: Ada directed Alpha. Answer the question: Who directed Alpha?"
        agents, _ = scripted("<answer>Yes</answer>", "<answer>Ada</answer>")
        assert (await agents.answerer.answer(query, None)).text == "Ada"
        agents, _ = scripted("<answer>Yes</answer>", "<answer>Yes</answer>")
        assert (await agents.answerer.answer(query, None)).text == "Yes"


async def test_faults_of_the_service_pass_unchanged() -> None:
    def down(_: Any) -> str:
        raise RetryableServiceError("down", service="model server")

    agents = make_llm_agents(ScriptedChat(down))
    with pytest.raises(RetryableServiceError):
        await agents.decomposer.decompose("q?")
    with pytest.raises(RetryableServiceError):
        await agents.planner.plan("q?", ["a?"])
    with pytest.raises(RetryableServiceError):
        await agents.answerer.answer("q?", PASSAGES)


def test_prompts_folder_is_checked_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no readable file decompose\.system\.txt"):
        make_llm_agents(ScriptedChat([]), prompts_dir=tmp_path)
