"""The final answer taken from the last step: where the question asks for just that, and nowhere else."""

from __future__ import annotations

import pytest

from pyrag.methods.pyrag.last_answer import without_synthesis

FIRST = 'd1 = retrieve("Who directed Alpha?")\ndirector = answer("Who directed Alpha?", d1)\n'


def chain(query: str, question: str, facts: str = "{director} directed Alpha; {found}") -> str:
    """A program of two hops whose last question is `query`, with a synthesis."""
    synthesis = f'final_answer = answer(f"Given: {facts}. Answer the question: {question}")\n'
    return f'{FIRST}d2 = retrieve(f"{query}")\nfound = answer(f"{query}", d2)\n{synthesis}'


def result(source: str) -> str:
    return source[source.index("\nfinal_answer") + 1 :] if "\nfinal_answer" in source else source


@pytest.mark.parametrize(
    ("question", "query"),
    [
        ("Where was the director of Alpha born?", "Where was {director} born?"),
        ("When did the director of the film Alpha die?", "When did {director} die?"),
        ("Who is the mother of the director of Alpha?", "Who is the mother of {director}?"),
        ("What nationality is the director of film Alpha?", "What is the nationality of {director}?"),
        ("What is the largest city in the country where Alpha was shot?", "What is the largest city in {director}?"),
        ("Which country is the director of Alpha from?", "From which country is {director}?"),
    ],
)
def test_the_last_answer_is_the_final_one(question: str, query: str) -> None:
    source = chain(query, question)
    taken = without_synthesis(source, question)
    assert taken == source[: source.index("final_answer")] + "final_answer = found\n"
    assert without_synthesis(taken, question) == taken


@pytest.mark.parametrize(
    ("question", "query"),
    [
        ("Who is the director of Alpha whose mother is Eve?", "Who is the mother of {director}?"),
        ("Which director of Alpha was born in 1950?", "When was {director} born?"),
        ("Was the director of Alpha born in Paris?", "Where was {director} born?"),
        ("What is the former name of the animal of Alpha?", "What is the former capital of {director}?"),
        ("Who is the director of Alpha?", "Who is {director}?"),
        ("What is the name of the director's father?", "What is the name of {director}?"),
        ("In what year was the director of Alpha born?", "Where was {director} born?"),
        ("How old was the director of Alpha?", "When was {director} born?"),
        ("Where was the director of Alpha born?", "Where was {director} of {director} born?"),
    ],
)
def test_another_question_keeps_its_synthesis(question: str, query: str) -> None:
    source = chain(query, question)
    assert without_synthesis(source, question) == source


def test_a_year_is_read_from_the_date() -> None:
    question = "In what year was the director of Alpha born?"
    taken = without_synthesis(chain("When was {director} born?", question), question)
    assert "    final_answer = str(parse_year(found))\nexcept ValueError:\n    final_answer = answer(f" in taken


QUESTION = "Where was the director of Alpha born?"
CHAIN = chain("Where was {director} born?", QUESTION)


@pytest.mark.parametrize(
    "source",
    [
        CHAIN.replace("{found}", "{len(found)} letters"),  # a computed fact
        CHAIN.replace("{found}", "a town"),  # the last answer is no fact
        CHAIN.replace("final_answer", "if True:\n    final_answer"),
        CHAIN.replace("final_answer =", "final_answer = 'unknown'\nfinal_answer ="),
        CHAIN.replace("d2 =", "other = answer('Who wrote Alpha?', d1)\nd2 ="),  # an answer beside the chain
        CHAIN.replace("found", "director"),
        CHAIN.replace('answer(f"Given', 'answer(d2, f"Given'),
        FIRST + 'final_answer = "yes"\n',
        'final_answer = answer("Given: nothing. Answer the question: W?")\n',
        "final_answer = (",
        "",
    ],
)
def test_any_other_program_stays_as_it_is(source: str) -> None:
    assert without_synthesis(source, QUESTION) == source


def test_a_query_in_a_variable_is_followed() -> None:
    source = CHAIN.replace(
        'd2 = retrieve(f"Where was {director} born?")', 'q = f"Where was {director} born?"\nd2 = retrieve(q)'
    )
    source = source.replace('answer(f"Where was {director} born?", d2)', "answer(q, d2)")
    assert without_synthesis(source, QUESTION).endswith("\nfinal_answer = found\n")


@pytest.mark.parametrize("character", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e"])
def test_only_line_ends_of_python_count(character: str) -> None:
    question, query = "Where was the director of Alpha born?", "Where was {director} born?"
    source = f'note = "a{character}b"\n' + chain(query, question)
    taken = without_synthesis(source, question)
    assert taken == source[: source.index("final_answer")] + "final_answer = found\n"
    windows = source.replace("\n", "\r\n")
    assert without_synthesis(windows, question) == windows[: windows.index("final_answer")] + "final_answer = found\n"
