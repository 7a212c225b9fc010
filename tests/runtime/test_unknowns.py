"""Unknown answers in programs as models write them: how programs test for them, use them, and end with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from pyrag.agents.protocol import Reading
from pyrag.episode.synthesis import facts_in
from pyrag.trace.model import UNKNOWN, UNPLANNED, Answer, Passage, Trace, Usage
from tests.runtime.conftest import World

LOST, FOUND = "Where was Ada born?", "What is the birthplace of Ada?"
LOOK = f'x = answer("{LOST}", retrieve("{LOST}"))\n'
BRANCH = LOOK + f'if TEST:\n    x = answer("{FOUND}", retrieve("{FOUND}"))\nfinal_answer = x\n'
FACTS = {FOUND: ("Marrow Bay", 1), "Who directed Alpha?": ("Ada", 1)}


async def ended(world: World, *programs: str, **settings: object) -> Trace:
    world.programs, world.facts = list(programs), dict(FACTS)
    return await world.ask(**settings)


TESTS = [
    "not x",
    "x is None",
    "x == 'unknown'",
    "x == 'Unknown'",
    "x == 'N/A'",
    "x == 'Not found.'",
    "x.lower() == 'none'",
    "not is_known(x)",
    "not x.known",
    "'not found' in x",
    "'not found' in x.lower()",
    "'unknown' in x.lower() or 'not' in x.lower()",
    "'cannot' in x.lower() or 'unable' in x.lower()",
    "'insufficient' in x.lower()",
    "'no information' in x",
    "x.lower() in ('none', 'n/a', 'not available')",
    "x.strip().lower().rstrip('.') in {'not mentioned', 'n/a'}",
    "x in ['', 'None', 'N/A']",
    "any(word in x.lower() for word in ['not mentioned', 'not specified'])",
    "x.lower().startswith('not ') or x.lower().startswith('no ')",
    "x.lower().startswith(('unknown', 'not found'))",
    "len(x.strip()) == 0",
    "not x.strip() or x.strip().lower() == 'not provided'",
    "str(x).lower() == 'not known'",
    "x.find('not found') > -1",
    "x.split('.')[0].strip() == 'Not stated'",
]


async def test_a_test_for_unknown_takes_its_branch(world: World) -> None:
    traces = {test: await ended(world, BRANCH.replace("TEST", test)) for test in TESTS}
    found = {test: (trace.answer.text, trace.answer.known, trace.repairs) for test, trace in traces.items()}
    assert found == dict.fromkeys(TESTS, ("Marrow Bay", True, 0))


VALUES = ["'yes' in x.lower()", "x.lower().startswith('no')", "x == 'Paris'", "'no' in x.lower()", "'known' == x"]


async def test_a_test_for_a_value_does_not(world: World) -> None:
    traces = {test: await ended(world, BRANCH.replace("TEST", test), recovery="none") for test in VALUES}
    assert {
        test: (trace.answer.known, trace.repairs, len(trace.steps)) for test, trace in traces.items()
    } == dict.fromkeys(VALUES, (False, 0, 2))


async def test_a_known_answer_of_such_words_passes_all_tests(world: World) -> None:
    world.facts[LOST] = ("Unknown Pleasures", 1)
    world.programs = [BRANCH.replace("TEST", "not x or x == 'unknown' or x is None or 'not found' in x.lower()")]
    trace = await world.ask()
    assert (trace.answer.text, world.count("answer")) == ("Unknown Pleasures", 1)


NO_ANSWERS = [
    "None",
    "''",
    "'  '",
    "[]",
    "{}",
    "()",
    "[None]",
    "'unknown'",
    "'Unknown.'",
    "'N/A'",
    "'None'",
    "str(None)",
    "'Information not available'",
    "'Not found'",
    "'The documents do not say where she was born.'",
    "x",
    "x.strip()",
    "x or 'not found'",
    "f'{x}'",
    "f'Ada was born in {x}'",
    "'Ada: ' + x",
    "[x]",
    "['Ada', x]",
    "(x, 0.4)",
    "{'answer': x}",
    "{'answer': None, 'confidence': 0.1}",
    "{'town': x, 'person': 'Ada'}",
]


async def test_a_final_value_without_an_answer_is_unknown(world: World) -> None:
    traces = {value: await ended(world, LOOK + f"final_answer = {value}") for value in NO_ANSWERS}
    found = {value: (trace.answer.text, trace.answer.known, trace.error) for value, trace in traces.items()}
    assert found == dict.fromkeys(NO_ANSWERS, (UNKNOWN, False, None))


ANSWERS = {
    "{'answer': x}": "Ada",
    "{'answer': x, 'film': 'Alpha'}": "Ada",
    "{'film': 'Alpha', 'Final Answer': x}": "Ada",
    "{'final_answer': {'answer': x}}": "Ada",
    "{'result': [x]}": "Ada",
    "{'director': x}": "Ada",
    "{'director': x, 'film': 'Alpha'}": "director: Ada, film: Alpha",
    "[x]": "Ada",
    "[x, 'Bob']": "Ada, Bob",
    "(x, 'Bob')": "Ada, Bob",
    "(x, 0.9)": "Ada",
    "(x, True)": "Ada",
    "(x, None)": "Ada",
    "[x, 1921]": "Ada, 1921",
    "[1, 2]": "1, 2",
    "x == 'Ada'": "yes",
    "x is None": "no",
    "len(x)": "3",
    "6 / 2": "3",
    "f'{x}, {x}'": "Ada, Ada",
    "x.upper()": "ADA",
}


async def test_a_final_value_reads_as_an_answer(world: World) -> None:
    look = 'x = answer("Who directed Alpha?", retrieve("Who directed Alpha?"))\n'
    traces = {value: await ended(world, look + f"final_answer = {value}") for value in ANSWERS}
    assert {value: trace.answer.text for value, trace in traces.items()} == ANSWERS
    assert all(trace.answer.known and not trace.repairs for trace in traces.values())


@pytest.mark.parametrize("value", ["docs", "docs[0]", "{'answer': docs[0]}"])
async def test_documents_are_no_answer(world: World, value: str) -> None:
    good = 'final_answer = answer("Who directed Alpha?", retrieve("Who directed Alpha?"))'
    trace = await ended(world, f'docs = retrieve("Who directed Alpha?")\nfinal_answer = {value}', good)
    assert (trace.answer.text, trace.repairs) == ("Ada", 1)
    assert "document" in world.errors[0]


USES = [
    "parse_date(x)",
    "years_between(x, '1901')",
    "same_entity(x, 'Ada')",
    "common(x, 'Ada')",
    "overlap(x, '1901')",
    "parse_number(x.strip())",
    "int(x)",
    "float(x.split()[0])",
    "x < '1901'",
    "max(x, '1901')",
    "x == y",
    "y == x",
    "x in y",
    "int(x[-4:])",
    "{'a': 1}[x] if False else int(f'{x} ')",
    "x.split(' ')[2]",
    "{'Ada': 1}[x]",
    "datetime.date.fromisoformat(x)",
    "re.search(r'[0-9]{4}', x).group()",
    "json.loads(x)",
]


async def test_a_use_of_unknown_is_rerouted_once_and_no_bug(world: World) -> None:
    look = LOOK + 'y = answer("Who directed Alpha?", retrieve("Who directed Alpha?"))\n'
    found = {}
    for use in USES:
        source = "import datetime, json, re\n" + look + f"z = {use}\nfinal_answer = f'{{z}}, {{y}}'"
        world.errors.clear()
        trace = await ended(world, *[f"{source}\n# {n}" for n in range(4)])
        found[use] = (len(world.errors), trace.answer.known, trace.error)
    assert found == dict.fromkeys(USES, (1, False, None))


@pytest.mark.parametrize("caught", ["UnknownAnswerError", "ValueError", "Exception", "UnknownAnswerError as e", ""])
async def test_programs_may_catch_it(world: World, caught: str) -> None:
    source = (
        LOOK + f"try:\n    final_answer = parse_year(x)\nexcept {caught}:\n"
        f'    final_answer = answer("{FOUND}", retrieve("{FOUND}"))'
    )
    trace = await ended(world, source)
    assert (trace.answer.text, trace.repairs, trace.warnings) == ("Marrow Bay", 0, ())


@pytest.mark.parametrize(
    "ending",
    ["f'Error: {e}'", "str(e)", "None", "''", "'Could not be determined: ' + str(e)"],
)
async def test_a_caught_error_is_no_answer(world: World, ending: str) -> None:
    source = LOOK + f"try:\n    final_answer = parse_year(x)\nexcept Exception as e:\n    final_answer = {ending}"
    trace = await ended(world, source)
    assert (trace.answer.text, trace.answer.known, trace.error) == (UNKNOWN, False, None)


@pytest.mark.parametrize("end", ["raise ValueError('no birthplace')", "assert is_known(x), 'no birthplace'"])
async def test_a_program_that_gives_up_is_rerouted_once(world: World, end: str) -> None:
    source = LOOK + f"if not is_known(x):\n    {end}\nfinal_answer = x"
    trace = await ended(world, *[f"{source}\n# {n}" for n in range(4)])
    assert (world.count("repair"), trace.answer.known, trace.error) == (1, False, None)


async def test_a_bug_beside_an_unknown_answer_is_a_bug(world: World) -> None:
    source = LOOK + "y = [][0]\nfinal_answer = x if y else x"
    trace = await ended(world, *[f"{source}\n# {n}" for n in range(5)])
    assert trace.error is not None
    assert (trace.error.kind, world.count("repair")) == ("program", 3)


async def test_no_branch_for_unknown_is_rerouted_once(world: World) -> None:
    source = LOOK + "if is_known(x):\n    final_answer = x"
    trace = await ended(world, source, source + "\n# again", source + "\n# and again")
    assert (world.count("repair"), trace.answer.known, trace.error) == (1, False, None)


@dataclass
class Unsure(World):
    """Its synthesis of given facts finds nothing."""

    async def answer(self, query: str, passages: Sequence[Passage] | None) -> Reading:
        reading = await super().answer(query, passages)
        return reading if passages is not None else Reading(UNKNOWN, known=False, usage=Usage(model_calls=1))


SYNTHESIS = """
docs = retrieve("Who directed Alpha?")
x = answer("Who directed Alpha?", docs)
y = answer("Where?", retrieve("Where?"))
final_answer = answer(f"Given: {x}, {y}. Answer the question: What?")
"""


@pytest.fixture
async def unsure(world: World) -> Unsure:
    return Unsure(sandbox=world.sandbox, programs=[SYNTHESIS], facts={**FACTS, "Where?": ("Here", 1)})


async def retrieve_evidence(query: str, topk: int) -> list[Passage]:
    """Evidence for each query at the first place, and for the whole question at the eighth."""
    texts = {1: f"evidence for {query}", 8: "evidence for What?"}
    return [Passage(f"{query}-{n}", "title", texts.get(n, "noise")) for n in range(1, topk + 1)]


async def test_an_unknown_synthesis_is_tried_over_deeper_passages(unsure: Unsure) -> None:
    unsure.facts["What?"] = ("Ada of Alpha", 1)
    unsure.retrieve = retrieve_evidence  # type: ignore[method-assign]
    trace = await unsure.ask()
    assert (trace.answer.text, trace.answer.known, trace.usage.model_calls) == ("Ada of Alpha", True, 6)
    assert [(step.primitive, step.topk) for step in trace.steps[-3:]] == [
        ("retrieve", 10),
        ("retrieve", 10),
        ("answer", None),
    ]
    assert trace.citations[0].passage == "Who directed Alpha?-8"


async def test_the_last_try_is_made_once(unsure: Unsure) -> None:
    trace = await unsure.ask()
    assert (trace.answer.known, trace.usage.model_calls, trace.usage.retrievals) == (False, 6, 4)


@pytest.mark.parametrize("settings", [{"recovery": "none"}, {"boost_topk": 0}, {"max_calls": 5}])
async def test_no_last_try_without_recovery_or_budget(unsure: Unsure, settings: dict[str, object]) -> None:
    trace = await unsure.ask(**settings)
    assert (trace.answer.known, trace.error, trace.usage.model_calls) == (False, None, 5)


async def test_no_last_try_after_a_step_was_recovered(unsure: Unsure) -> None:
    unsure.facts["Where?"] = ("Here", 9)
    trace = await unsure.ask()
    assert (trace.answer.known, trace.usage.model_calls) == (False, 6)


async def test_a_sentence_goes_back_once(world: World) -> None:
    look = 'x = answer("Who directed Alpha?", retrieve("Who directed Alpha?"))\n'
    sentence = look + 'final_answer = f"{x} directed Alpha."'
    good = look + 'final_answer = answer(f"Given: {x}. Answer the question: What?")'
    trace = await ended(world, sentence, good)
    assert (trace.answer.text, [one.origin for one in trace.programs]) == ("Ada", ["plan", "check"])


async def test_a_planner_that_insists_on_a_sentence_gets_it(world: World) -> None:
    look = 'x = answer("Who directed Alpha?", retrieve("Who directed Alpha?"))\n'
    trace = await ended(world, look + 'final_answer = f"{x} directed Alpha."')
    assert (trace.answer.text, world.count("repair")) == ("Ada directed Alpha.", 1)
    assert any("plan check" in one for one in trace.warnings)


ENDINGS = {
    "a step stays unknown": LOOK + "final_answer = x",
    "an unknown answer in a query": LOOK + 'final_answer = answer(f"Who is {x}?", retrieve(f"Who is {x}?"))',
    "a program that fails": "final_answer = 1 / 0",
}


@pytest.mark.parametrize("source", ENDINGS.values(), ids=ENDINGS)
async def test_programs_without_an_answer_end_in_the_whole_question(world: World, source: str) -> None:
    world.programs, world.facts = [source], {"What?": ("Ada of Alpha", 7)}
    trace = await world.ask(whole_question=True)
    assert (trace.answer.text, trace.answer.known, trace.error) == ("Ada of Alpha", True, None)
    assert [one.origin for one in trace.programs][-1] == UNPLANNED
    assert [(step.primitive, step.query) for step in trace.steps[-2:]] == [("retrieve", "What?"), ("answer", "What?")]
    assert trace.citations[0].passage == "What?-7"  # recovered on ten passages as any step


async def test_an_answer_needs_no_whole_question(world: World) -> None:
    trace = await ended(world, LOOK.replace(LOST, FOUND) + "final_answer = x", whole_question=True)
    assert (trace.answer.text, len(trace.programs)) == ("Marrow Bay", 1)


@pytest.mark.parametrize("settings", [{}, *({"whole_question": True, "max_calls": most} for most in (4, 5))])
async def test_the_whole_question_costs_nothing_unbidden(world: World, settings: dict[str, object]) -> None:
    world.facts = {"What?": ("Ada of Alpha", 1)}
    world.programs = [LOOK + "final_answer = x"]
    trace = await world.ask(**settings)
    assert (trace.answer.known, trace.error, world.count("answer")) == (False, None, 2)


async def test_an_unknown_whole_question_leaves_the_programs_result(world: World) -> None:
    trace = await ended(world, LOOK + "final_answer = x", whole_question=True)
    assert (trace.answer.known, trace.error) == (False, None)


TWO_FACTS = """\
a = answer("Who directed Alpha?", retrieve("Who directed Alpha?"))
b = answer("Who directed Beta?", retrieve("Who directed Beta?"))
final_answer = answer(f"Given: FACTS. Answer the question: What?")
"""


async def test_a_synthesis_of_unknown_facts_is_unknown(world: World) -> None:
    """A model would guess: here it would say what was given."""
    world.programs = [TWO_FACTS.replace("FACTS", "Alpha by {a}, Beta by {b}")]
    trace = await world.ask()
    assert (trace.answer.text, trace.answer.known) == ("unknown", False)
    assert not [text for kind, text in world.log if kind == "answer" and text.startswith("Given")]


async def test_a_mixed_synthesis_is_answered_with_a_warning(world: World) -> None:
    world.facts = {"Who directed Beta?": ("Bo Lind", 1)}
    world.programs = [TWO_FACTS.replace("FACTS", "Alpha by {a}, Beta by {b}")]
    trace = await world.ask()
    assert (trace.answer.text, trace.answer.known) == ("Alpha by unknown, Beta by Bo Lind", True)
    assert any("the answer to 'Who directed Alpha?' is unknown" in one for one in trace.warnings)


async def test_a_known_answer_outside_the_synthesis_does_not_count(world: World) -> None:
    world.facts = {"Who directed Beta?": ("Bo Lind", 1)}
    world.programs = [TWO_FACTS.replace("FACTS", "Alpha by {a}")]
    assert not (await world.ask()).answer.known


async def test_policy_allow_lets_a_synthesis_of_unknown_facts_pass(world: World) -> None:
    world.programs = [TWO_FACTS.replace("FACTS", "Alpha by {a}, Beta by {b}")]
    assert (await world.ask(unknown="allow")).answer.known


def test_a_passage_without_text_is_no_fact() -> None:
    facts = facts_in("Given: unknown.", {"Who?": Answer(UNKNOWN, known=False)}, ["", " "])
    assert (facts.unknown, facts.has_known) == (("Who?",), False)


async def test_passages_in_a_synthesis_are_facts(world: World) -> None:
    world.facts = {"Who directed Beta?": ("Bo Lind", 1)}
    world.programs = [TWO_FACTS.replace("FACTS", "{a}, {retrieve('Who directed Beta?')[0].text}")]
    trace = await world.ask()
    assert trace.answer.known
    assert any("the answer to 'Who directed Alpha?' is unknown" in one for one in trace.warnings)
