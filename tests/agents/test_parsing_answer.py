"""Answers: tags, sentinels, citations."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyrag.agents.parsing.answers import (
    MAX_ANSWER,
    find_citations,
    is_evasive,
    is_unknown,
    parse_answer,
    salvage_answer,
    strip_citations,
)
from pyrag.errors import BadOutputError
from pyrag_helpers.unknown_words import ENGLISH, FOREIGN


@pytest.mark.parametrize(
    "reply",
    [
        "<redacted_thinking>Doc [1] says so.</redacted_thinking>\n<answer> Paris </answer>",
        "<answer>Rome</answer> no: <answer>Paris</answer>",
        "<ANSWER>**Paris**</ANSWER>",
        '<answer>"Paris"</answer>',
        "<answer>Paris",
        "<answer><answer>Paris</answer></answer>",
        "<redacted_thinking>so <answer>Paris</answer>",
        "<redacted_thinking>so <answer>Paris</answer></redacted_thinking>",
        "<answer>Paris (Doc [1])</answer>",
        "Paris",
        "Answer: Paris",
        "The final answer is: Paris",
        '{"answer": "Paris"}',
        "So it is \\boxed{Paris}",
        "<think>hm</think>Paris",
        "<answer>Paris</answer> I said <answer>",
    ],
)
def test_known(reply: str) -> None:
    parsed = parse_answer(reply, 1)
    assert (parsed.text, parsed.known) == ("Paris", True)


@pytest.mark.parametrize(
    "reply", ["", "<think>long", "One line.\nAnother.", "x" * 201, "<b>Paris</b>", "```\nParis\n```"]
)
def test_bad_output(reply: str) -> None:
    with pytest.raises(BadOutputError):
        parse_answer(reply)


def test_empty_answer_is_unknown() -> None:
    assert not parse_answer("<answer> </answer>").known
    assert not parse_answer("<answer>Doc [1]</answer>", 1).known


@pytest.mark.parametrize(
    "text",
    [
        "unknown", "Unknown.", " UNKNOWN ", "**unknown**", "(unknown)",
        "The answer is unknown.", "cannot answer", "Cannot be determined.",
        "not enough information", "Insufficient information", "I don't know.", "I don’t know",
        "N/A", "n/a", "No answer",
        "Not mentioned", "", "  ", "...", "-",
        "unknown (no document mentions it)", "Unknown. The documents do not say.",
        "unknown - the passages do not mention a date",
        "The provided documents do not mention who founded it.", "None of the documents contain a birth date.",
        "There is not enough information to answer.", "It cannot be determined from the documents.",
    ],
)  # fmt: skip
def test_unknown(text: str) -> None:
    assert is_unknown(text)
    assert parse_answer(f"<answer>{text}</answer>").text == "unknown"


@pytest.mark.parametrize(
    "text",
    [
        "Unknown Pleasures", "The Unknown", "Unknown (2011 film)", "Tomb of the Unknown Soldier", "The Known World",
        "I Don't Know How She Does It", "No", "none", "No Country for Old Men", "Information Society", "nobody",
        "Na", "0",
        "The Answer", "There Is No Evidence Department", "The Documents", "Cannot Buy My Soul",
        "The Texts", "?uestlove",
        "Unknown Pleasures and unknown",
    ],
)  # fmt: skip
def test_not_unknown(text: str) -> None:
    assert not is_unknown(text)
    assert parse_answer(f"<answer>{text}</answer>").text == text


@pytest.mark.parametrize(
    ("text", "plain", "cited"),
    [
        ("Paris Doc [2]", "Paris", (1,)),
        ("Paris [Doc 2]", "Paris", (1,)),
        ("Paris (Doc 2).", "Paris.", (1,)),
        ("Paris, Doc 2", "Paris", (1,)),
        ("Paris [Doc 1, Doc 3]", "Paris", (0, 2)),
        ("Paris Docs [1] and [3]", "Paris", (0, 2)),
        ("Paris Doc[3][1]", "Paris", (2, 0)),
        ("Paris Documents 1, 2 and 3", "Paris", (0, 1, 2)),
        ("According to Doc [1], Paris", "Paris", (0,)),
        ("According to Document 1, Paris", "Paris", (0,)),
        ("Paris [Doc 0] [Doc 4] [Doc 99999]", "Paris [Doc 99999]", ()),
        ("Doc 2", "Doc 2", (1,)),
        ("Doc Holliday (Doc)", "Doc Holliday (Doc)", ()),
        ("Apollo 13", "Apollo 13", ()),
        ("What's Up, Doc?", "What's Up, Doc?", ()),
    ],
)
def test_citations(text: str, plain: str, cited: tuple[int, ...]) -> None:
    assert strip_citations(text) == plain
    assert find_citations(text, 3) == cited


def test_citations_of_the_answer_go_before_those_of_the_thinking() -> None:
    reply = "<redacted_thinking>Doc [3] is about another; Doc [2] fits.</redacted_thinking><answer>x{}</answer>"
    assert parse_answer(reply.format(""), 3).citations == (2, 1)
    assert parse_answer(reply.format(" [Doc 2]"), 3).citations == (1,)
    assert parse_answer(reply.format(""), 3).rationale.startswith("Doc [3]")
    assert parse_answer("<redacted_thinking>Doc [1]</redacted_thinking><answer>unknown</answer>", 3).citations == ()


def test_long_answers_are_cut() -> None:
    parsed = parse_answer(f"<answer>{'ab ' * MAX_ANSWER}</answer>")
    assert len(parsed.text) <= MAX_ANSWER
    assert parsed.note == f"the answer was cut from {3 * MAX_ANSWER - 1} to {MAX_ANSWER} characters"


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("The documents are long.\nFinal answer: Paris", "Paris"),
        ("**Answer:** Paris\nas said", None),
        ("<b>Paris</b>", "Paris"),
        ("long " * 100, None),
        ("", None),
        ("<think>hm", None),
        ("I read it.\nI cannot answer", "unknown"),
    ],
)
def test_salvage(reply: str, text: str | None) -> None:
    parsed = salvage_answer(reply)
    if reply.startswith("**"):
        assert parsed is not None
        assert "Paris" in parsed.text
    else:
        assert (parsed.text if parsed else None) == text


@pytest.mark.parametrize(
    ("query", "answer", "evasive"),
    [
        ("Given: x is y. Answer the question: Who is older, A or B?", "yes", True),
        ("Given: x. Answer the question: In what year was A born?", "No.", True),
        ("Given: who knows. Answer the question: Is A older than B?", "no", False),
        ("Given: x. Answer the question: Who is older?", "A", False),
        ("Given: x. Answer the question: Which is it, yes or no?", "yes", False),
    ],
)
def test_evasive(query: str, answer: str, evasive: bool) -> None:
    assert is_evasive(query, answer) is evasive


GRAMMAR = frozenset(
    word for table in (ENGLISH, *FOREIGN.values()) for words in table.values() for word in words.split()
) | {"and", "or"}
ANSWERS = st.text(min_size=1, max_size=80).map(lambda text: " ".join(text.split())).filter(bool)


@given(ANSWERS)
def test_a_plain_word_around_the_sentinel_keeps_it_an_answer(text: str) -> None:
    if text.isalpha() and text.casefold() not in GRAMMAR:  # "birthplace unknown" and "still unknown" are none
        assert not is_unknown(f"Unknown {text}")
        assert not is_unknown(f"{text} unknown")


@given(st.text(alphabet=st.sampled_from("<>/answerthinkDoc [12]()\n.,\"'*`{}")), st.integers(0, 3))
@settings(max_examples=300)
def test_never_raises_anything_else(text: str, documents: int) -> None:
    for reply in (text, f"<answer>{text}</answer>"):
        try:
            parsed = parse_answer(reply, documents)
        except BadOutputError:
            continue
        assert parsed.text
        assert parsed.known or parsed.text == "unknown"
        assert all(0 <= position < documents for position in parsed.citations)
    salvage_answer(text, documents)


@pytest.mark.parametrize("char", [*list('< .[(-"\n'), "<answer>", "Doc ", "Doc [1", "the text ", "<think>"])
def test_runaway_replies_are_read_in_time(char: str) -> None:
    import time

    text = char * (40_000 // len(char))
    started = time.process_time()
    for reply in (text, f"<answer>{text}</answer>"):
        try:
            parse_answer(reply, 3)
        except BadOutputError:
            salvage_answer(reply, 3)
    assert time.process_time() - started < 2


def test_a_long_list_without_citations_is_read_quickly() -> None:
    answer = "(" + "Doc 1, " * 200 + "Rome"
    assert strip_citations(answer) == answer  # two ways to read each of them would be 2^200
    assert find_citations(answer, 3) == (0,)
