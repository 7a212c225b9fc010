"""The coach over a scripted model: what it is shown, what it may say, and what becomes of replies out of form."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrag.agents.prompts import load_prompts
from pyrag.errors import BadOutputError, ContextLengthError
from pyrag.llm.clients.scripted import ScriptedChat, role_of
from pyrag.methods.hera.coach.agent import (
    MAX_INSIGHTS,
    MAX_LINE,
    LLMCoach,
    parse_blame,
    parse_guidance,
    parse_insights,
    parse_rules,
    parse_settlement,
)
from pyrag.methods.hera.coach.protocol import AXES, Guidance, Seen
from pyrag.methods.hera.experience.entry import Experience
from pyrag.methods.hera.topology import Agent, Characterisation, Topology

ENTRIES = [Experience(4, Characterisation("bridge"), "Validate first.", 2, 3)]
THERE: tuple[Agent, ...] = ("retriever", "answer_generator")


def coach(*replies: Any) -> tuple[LLMCoach, ScriptedChat]:
    model = ScriptedChat([json.dumps(one) if not isinstance(one, str) else one for one in replies])
    return LLMCoach(model, load_prompts()), model


async def test_each_task_shows_the_coach_what_it_needs() -> None:
    one, model = coach(
        {"insights": ["Retrieve side by side."]},
        {"operation": "merge", "entries": [4, 9], "insight": "Validate before answering."},
        {"agents": ["Answer Generator"]},
        {"rules": ["- Read every document."]},
        {"rules": ["Read all."], "principles": ["Doubt."]},
        {"rules": ["Read."], "principles": []},
    )
    profile = Characterisation("comparison", "easy", "yes/no")
    assert await one.reflect(
        profile, [Seen(Topology(()), 1.0, "first trajectory"), Seen(Topology(()), 0.0, "second")]
    ) == ("Retrieve side by side.",)
    settled = await one.settle("Check before you answer.", ENTRIES)
    assert (settled.operation, settled.entries, settled.insight) == ("MERGE", (4,), "Validate before answering.")
    assert await one.blame("a failed one", THERE) == ("answer_generator",)
    assert await one.vary("answer_generator", "thoroughness", ["failure"]) == ("Read every document.",)
    assert await one.distil("answer_generator", ["failure"], ["result"]) == Guidance(("Read all.",), ("Doubt.",))
    assert await one.shorten("answer_generator", Guidance(("long rule",), ("p",)), 40) == Guidance(("Read.",))
    asked = [messages[-1].content for messages in model.calls]
    assert all(role_of(messages) == "coach" for messages in model.calls)
    told = ["1. first trajectory\n\n2. second", "4: Validate first. (helped 2 of 3 times)", "a failed one", "failure"]
    for expected, text in zip([*told, "result", "at most 40 characters"], asked, strict=True):
        assert expected in text
    assert "You are the Answer Generator Agent" in asked[3]
    assert "{{" not in "".join(asked)


async def test_what_is_shortened_may_keep_all_its_lines() -> None:
    rules = tuple(f"Rule {number}." for number in range(6))
    one, _ = coach({"rules": list(rules), "principles": []})
    assert await one.shorten("reflect", Guidance(rules), 40) == Guidance(rules)


async def test_a_full_window_is_no_service_failure() -> None:
    def refuses(_: object) -> str:
        raise ContextLengthError("9000 tokens are too many")

    one = LLMCoach(ScriptedChat(refuses), load_prompts())
    with pytest.raises(BadOutputError, match="the prompt of the coach is too long: 9000 tokens"):
        await one.reflect(Characterisation(), [Seen(Topology(()), 1.0, "a long one")])


async def test_every_axis_has_words_of_its_own() -> None:
    one, model = coach(*({"rules": ["r"]} for _ in AXES))
    for axis in AXES:
        await one.vary("reflect", axis, [])
    assert len({messages[-1].content for messages in model.calls}) == len(AXES)


async def test_a_reply_out_of_form_is_asked_for_once_more() -> None:
    one, model = coach("no idea", {"agents": ["retriever"]})
    assert await one.blame("t", THERE) == ("retriever",)
    assert "no JSON object with the key" in model.calls[1][-1].content
    one, _ = coach("no idea", "still none")
    with pytest.raises(BadOutputError):
        await one.blame("t", THERE)


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ({"operation": "DROP", "entries": []}, "must be one of ADD, MERGE"),
        ({"operation": "MERGE", "entries": [5], "insight": "x"}, 'needs "entries", numbers among 4'),
        ({"operation": "PRUNE", "entries": "4"}, 'needs "entries"'),
        ({"operation": "MERGE", "entries": [4], "insight": " "}, 'needs an "insight"'),
    ],
)
def test_settlements_that_cannot_be_carried_out(reply: dict[str, Any], said: str) -> None:
    with pytest.raises(BadOutputError, match=said):
        parse_settlement(json.dumps(reply), [4])


def test_agents_that_took_no_part_cannot_be_blamed() -> None:
    with pytest.raises(BadOutputError, match="'reflect' is not one of the agents retriever, answer_generator"):
        parse_blame('{"agents": ["reflect"]}', THERE)
    assert parse_blame('{"agents": []}', THERE) == ()
    assert parse_blame('{"agents": ["Answer-Generator Agent", "answer_generator"]}', THERE) == ("answer_generator",)


def test_rules_that_are_too_long_are_refused() -> None:
    with pytest.raises(BadOutputError, match=f"at most {MAX_LINE} are allowed"):
        parse_rules(json.dumps({"rules": ["x" * (MAX_LINE + 1)]}))


@given(st.lists(st.text(max_size=80), max_size=6), st.lists(st.text(max_size=80), max_size=6))
def test_what_is_learned_is_single_printable_lines(rules: list[str], principles: list[str]) -> None:
    reply = json.dumps({"insights": rules, "rules": rules, "principles": principles})
    found = parse_guidance(reply)
    for line in (*found.lines, *parse_insights(reply)):
        assert line
        assert line.isprintable()
        assert line.splitlines() == [line]
    assert len(parse_insights(reply)) <= MAX_INSIGHTS


@given(st.text(max_size=200))
def test_any_text_is_a_result_or_bad_output(text: str) -> None:
    for parse in (parse_insights, parse_guidance, parse_rules, lambda one: parse_settlement(one, [1])):
        with contextlib.suppress(BadOutputError):
            parse(text)  # type: ignore[operator]


@pytest.mark.parametrize(
    "reply",
    [
        '{"rules": ["Name the person.", "Cite."]}',
        '{"rules": "- Name the person.\\n- Cite."}',
        '{"rules": [{"rule": "Name the person."}, {"rule": "Cite."}]}',
        '{"rules": {"1": "Name the person.", "2": "Cite."}}',
        '{"Operational Rules": ["* Name the person.", "* Cite."]}',
    ],
)
def test_rules_in_any_form_of_list(reply: str) -> None:
    assert parse_rules(reply) == ("Name the person.", "Cite.")


def test_entries_are_numbers_however_they_are_written() -> None:
    reply = '{"operation": "prune", "entries": ["#4", "entry 9"]}'
    assert parse_settlement(reply, [4, 5]).entries == (4,)
