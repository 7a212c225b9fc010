"""The PyRAG method over a scripted world: calls made, steps recorded, repairs, recovery, budgets, faults."""

from __future__ import annotations

import asyncio

import pytest

from pyrag.agents.protocol import Plan
from pyrag.errors import ContextLengthError, RetryableServiceError, UsageError
from pyrag.trace.events import Event, Recovering, StepFinished, StepStarted
from pyrag.trace.model import Trace
from tests.runtime.conftest import World

CHAIN = """
docs1 = retrieve("Who directed Alpha?")
director = answer("Who directed Alpha?", docs1)
docs2 = retrieve(f"When was {director} born?")
born = answer(f"When was {director} born?", docs2)
final_answer = answer(f"Given: {born}. Answer the question: What?")
"""
CHAIN_FACTS = {"Who directed Alpha?": ("Ada", 1), "When was Ada born?": ("1 May 1950", 2)}
COMPARISON = """
docs1 = retrieve("Who directed Alpha?")
docs2 = retrieve("Who directed Beta?")
a = answer("Who directed Alpha?", docs1)
b = answer("Who directed Beta?", docs2)
final_answer = f"{a} and {b}"
"""
COMPARISON_FACTS = {"Who directed Alpha?": ("Ada", 8), "Who directed Beta?": ("Bob", 1)}


def chain(world: World) -> World:
    world.programs, world.facts = [CHAIN], dict(CHAIN_FACTS)
    return world


def queries(trace: Trace) -> list[tuple[str, str]]:
    return [(step.primitive, step.query) for step in trace.steps]


async def test_a_chain_makes_the_fewest_calls_and_cites_every_hop(world: World) -> None:
    trace = await chain(world).ask()
    assert (trace.answer.text, trace.answer.known, trace.error) == ("1 May 1950", True, None)
    assert (trace.usage.model_calls, trace.usage.retrievals) == (5, 2)
    assert [one.passage for one in trace.citations] == ["Who directed Alpha?-1", "When was Ada born?-2"]
    assert [one.number for one in trace.citations] == [1, 2]
    assert trace.variables["director"] == "Ada"
    assert trace.steps[3].depends_on == (1, 2)


async def test_joint_mode_writes_sub_queries_and_program_in_one_call(world: World) -> None:
    trace = await chain(world).ask(joint=True)
    assert trace.sub_queries == ("What?",)
    assert (world.count("decompose"), world.count("plan"), trace.usage.model_calls) == (0, 1, 4)


async def test_a_needless_synthesis_is_not_asked_for(world: World) -> None:
    question = "When was the director of Alpha born?"
    chain(world).programs = [CHAIN.replace("What?", question)]
    paper, fast = await world.ask(question), await world.ask(question, joint=True, synthesis="needed")
    assert (paper.usage.model_calls, fast.usage.model_calls) == (5, 3)
    assert fast.answer.text == paper.answer.text == "1 May 1950"
    assert fast.citations == paper.citations
    assert fast.programs[0].source.endswith("final_answer = born\n")


async def test_independent_steps_run_side_by_side_in_program_order(world: World) -> None:
    world.programs, world.facts, world.delay = (
        [COMPARISON],
        {**COMPARISON_FACTS, "Who directed Alpha?": ("Ada", 1)},
        0.02,
    )
    trace = await world.ask()
    assert world.most_in_flight == 2
    assert queries(trace) == [
        ("retrieve", "Who directed Alpha?"),
        ("retrieve", "Who directed Beta?"),
        ("answer", "Who directed Alpha?"),
        ("answer", "Who directed Beta?"),
    ]
    assert [step.id for step in trace.steps] == [0, 1, 2, 3]


async def test_parallel_off_runs_one_step_at_a_time(world: World) -> None:
    world.programs, world.facts = [COMPARISON], {**COMPARISON_FACTS, "Who directed Alpha?": ("Ada", 1)}
    trace = await world.ask(parallel=False)
    assert (world.most_in_flight, trace.answer.text) == (1, "Ada and Bob")


async def test_recovery_deepens_the_documents_that_were_passed(world: World) -> None:
    """Both retrievals come before both answers: the right one must be deepened."""
    world.programs, world.facts = [COMPARISON], COMPARISON_FACTS
    trace = await world.ask()
    assert trace.answer.text == "Ada and Bob"
    assert [text for kind, text in world.log if kind == "retrieve 10"] == ["Who directed Alpha?"]
    step = trace.steps[2]
    assert [(one.policy, one.topk, one.answer and one.answer.known) for one in step.attempts] == [
        ("first", None, False),
        ("boost", 10, True),
    ]
    assert step.usage.model_calls == 2
    assert trace.citations[0].passage == "Who directed Alpha?-8"


async def test_an_unknown_step_is_recovered_before_anything_consumes_it(world: World) -> None:
    chain(world).facts["Who directed Alpha?"] = ("Ada", 9)
    trace = await world.ask()
    assert trace.answer.text == "1 May 1950"
    assert "When was unknown born?" not in [text for _, text in world.log]
    assert (trace.usage.model_calls, trace.usage.retrievals) == (6, 3)


async def test_recovery_can_be_switched_off(world: World) -> None:
    chain(world).facts["When was Ada born?"] = ("1 May 1950", 9)
    trace = await world.ask(boost_topk=0)
    assert world.count("retrieve 10") == 0
    assert trace.steps[3].answer is not None
    assert not trace.steps[3].answer.known


async def test_a_larger_topk_of_the_program_is_deepened_too(world: World) -> None:
    chain(world).facts["Who directed Alpha?"] = ("Ada", 15)
    world.programs = [CHAIN.replace('retrieve("Who directed Alpha?")', 'retrieve("Who directed Alpha?", topk=10)')]
    trace = await world.ask()
    assert trace.answer.text == "1 May 1950"
    assert world.count("retrieve 20") == 1


async def test_sliced_and_joined_documents_keep_their_identity(world: World) -> None:
    world.facts = COMPARISON_FACTS
    world.programs = [
        'docs = retrieve("Who directed Alpha?")[:3] + retrieve("Who directed Beta?")[:2]\n'
        'final_answer = answer("Who directed Alpha?", docs)'
    ]
    trace = await world.ask(unknown="allow")
    assert trace.answer.text == "Ada"
    assert len(trace.steps[2].attempts) == 2
    assert trace.citations[0].passage == "Who directed Alpha?-8"


async def test_an_unknown_answer_never_becomes_a_query(world: World) -> None:
    del chain(world).facts["Who directed Alpha?"]
    world.programs.append('docs = retrieve("Alpha facts")\nfinal_answer = answer("Who directed Alpha?", docs)')
    world.facts["Alpha facts"] = ("Ada", 1)
    trace = await world.ask()
    assert "UnknownAnswerError" in world.errors[0]
    assert "When was unknown born?" not in [text for _, text in world.log]
    assert trace.repairs == 1
    assert (trace.answer.known, trace.error) == (False, None)


async def test_an_unknown_answer_is_rerouted_once_only(world: World) -> None:
    del chain(world).facts["Who directed Alpha?"]
    world.programs += [CHAIN + "# again", CHAIN + "# and again"]
    trace = await world.ask()
    assert world.count("repair") == 1
    assert (trace.answer.known, trace.answer.text, trace.error) == (False, "unknown", None)
    assert any("no way around" in one for one in trace.warnings)


async def test_policy_allow_lets_unknown_through(world: World) -> None:
    del chain(world).facts["Who directed Alpha?"]
    trace = await world.ask(unknown="allow")
    assert "When was unknown born?" in [text for _, text in world.log]
    assert trace.repairs == 0


async def test_an_answer_that_contains_the_word_unknown_is_an_answer(world: World) -> None:
    world.programs = [CHAIN.replace("Who directed Alpha?", "Which album?")]
    world.facts = {"Which album?": ("Unknown Pleasures", 1), "When was Unknown Pleasures born?": ("1979", 1)}
    trace = await world.ask()
    assert (trace.answer.text, trace.answer.known, trace.repairs) == ("1979", True, 0)


async def test_a_program_may_test_for_unknown(world: World) -> None:
    world.programs = [
        'a = answer("Who?", retrieve("Who?"))\n'
        'final_answer = "nobody" if a == "unknown" and not a.known and not is_known(a) else "somebody"'
    ]
    trace = await world.ask()
    assert (trace.answer.text, trace.answer.known) == ("nobody", True)


async def test_a_repaired_program_pays_only_for_what_changed(world: World) -> None:
    chain(world).programs = [CHAIN.replace("final_answer = answer(", "x = [][0]\nfinal_answer = answer("), CHAIN]
    trace = await world.ask()
    assert trace.answer.text == "1 May 1950"
    assert (world.count("retrieve"), world.count("answer"), world.count("repair")) == (2, 3, 1)
    assert "IndexError" in world.errors[0]
    assert "line 6" in world.errors[0]
    assert [step.memo for step in trace.steps if step.round == 1] == [True, True, True, True, False]
    assert [program.origin for program in trace.programs] == ["plan", "repair"]
    assert trace.programs[0].error == world.errors[0]


async def test_repairs_end_after_three_rounds(world: World) -> None:
    world.programs = [f"x = [][{n}]\nfinal_answer = x" for n in range(9)]
    trace = await world.ask()
    assert world.count("repair") == 3
    assert trace.error is not None
    assert trace.error.kind == "program"
    assert "IndexError" in trace.error.message


async def test_a_planner_that_insists_ends_the_repairs(world: World) -> None:
    world.programs = ["x = [][0]\nfinal_answer = x"]
    trace = await world.ask()
    assert world.count("repair") == 1
    assert trace.error is not None


async def test_a_repair_beyond_the_window_ends_as_a_failed_program(world: World) -> None:
    async def too_long(*_: object) -> Plan:
        raise ContextLengthError("the prompt is too long")

    world.programs, world.repair = ["x = [][0]\nfinal_answer = x"], too_long  # type: ignore[method-assign]
    trace = await world.ask()
    assert trace.error is not None
    assert trace.error.kind == "program"
    assert "the prompt is too long" in " ".join(trace.warnings)


async def test_a_check_is_heard_once_and_costs_no_step(world: World) -> None:
    chain(world).programs = [CHAIN.replace("{director} born", "{the_director} born"), CHAIN]
    trace = await world.ask()
    assert "NameError" in world.errors[0]
    assert (trace.answer.text, world.count("answer"), world.count("repair")) == ("1 May 1950", 3, 1)
    assert trace.programs[0].error


async def test_a_planner_that_insists_on_an_opinion_gets_its_way(world: World) -> None:
    world.facts = {"Alpha": ("Ada", 1)}
    world.programs = ['final_answer = answer("Alpha", retrieve("Alpha"))']
    world.sub_queries = ("Who directed Alpha?", "When was Alpha's director born?")
    trace = await world.ask()
    assert "under-decomposition" in world.errors[0]
    assert trace.answer.text == "Ada"
    assert len(trace.programs) == 1
    assert any("under-decomposition" in one for one in trace.warnings)


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("x = 1", "never sets final_answer"),
        ("if False:\n    final_answer = 1", "without setting final_answer"),
        ("import os\nfinal_answer = os.getcwd()", "refused by the sandbox"),
        ("raise SystemExit(0)\nfinal_answer = 1", "SystemExit"),
        ("final_answer = retrieve('a', topk=1000)", "topk must be between 1 and 100"),
        ("final_answer = retrieve('')", "not empty"),
        ("final_answer = answer('q', ['text'])", "passages from retrieve"),
        ("final_answer = answer('q', docs=[], k=1)", "unexpected keyword argument"),
    ],
)
async def test_a_bad_program_is_an_error_that_says_why(world: World, program: str, said: str) -> None:
    world.programs = [program]
    trace = await world.ask()
    assert trace.error is not None
    assert said in trace.error.message
    assert said in world.errors[0]
    assert not trace.answer.known


async def test_a_dead_service_is_never_the_programs_fault(world: World) -> None:
    chain(world).fail["When was Ada born?"] = RetryableServiceError("retriever http://r is down", service="http://r")
    trace = await world.ask()
    assert trace.error is not None
    assert (trace.error.kind, trace.error.message) == ("service", "retriever http://r is down")
    assert world.count("repair") == 0
    assert trace.steps[-1].error == "retriever http://r is down"
    assert trace.steps[1].answer is not None


async def test_a_program_cannot_swallow_a_service_fault(world: World) -> None:
    chain(world).fail["Who directed Alpha?"] = RetryableServiceError("retriever http://r is down")
    world.programs = [
        'try:\n    docs = retrieve("Who directed Alpha?")\nexcept Exception:\n    docs = []\nfinal_answer = "x"'
    ]
    trace = await world.ask()
    assert trace.error is not None
    assert trace.error.kind == "service"


async def test_a_budget_ends_with_the_partial_answer(world: World) -> None:
    trace = await chain(world).ask(max_calls=3)
    assert trace.error is not None
    assert trace.error.kind == "budget"
    assert (trace.answer.text, trace.answer.known) == ("Ada", False)
    assert trace.usage.model_calls == 3
    assert trace.citations[0].passage == "Who directed Alpha?-1"


async def test_a_deadline_names_what_it_waited_for(world: World) -> None:
    chain(world).hang.add("When was Ada born?")
    trace = await world.ask(deadline=2)
    assert trace.error is not None
    assert trace.error.kind == "deadline"
    assert "2 s" in trace.error.message
    assert "waited for world" in trace.error.message
    assert world.in_flight == 0


async def test_a_cancelled_question_leaves_nothing_in_flight(world: World) -> None:
    chain(world).hang.add("When was Ada born?")
    task = asyncio.create_task(world.ask())
    await world.hanging.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert world.in_flight == 0
    world.hang.clear()
    assert (await world.ask()).answer.known


@pytest.mark.parametrize("question", ["", "  \n "])
async def test_an_empty_question_is_refused(world: World, question: str) -> None:
    with pytest.raises(UsageError, match="the question is empty"):
        await world.ask(question)


async def test_citations_follow_variables_containers_and_control_flow(world: World) -> None:
    world.facts = {"A?": ("1950", 1), "B?": ("1960", 2), "C?": ("Cleo", 3)}
    world.programs = [
        'years = {q: answer(q, retrieve(q)) for q in ["A?", "B?"]}\n'
        'other = answer("C?", retrieve("C?"))\n'
        'if parse_year(years["A?"]) < parse_year(years["B?"]):\n    first = "A"\nelse:\n    first = "B"\n'
        "final_answer = first\nnote = other"
    ]
    trace = await world.ask()
    assert trace.answer.text == "A"
    assert {one.passage for one in trace.citations} == {"A?-1", "B?-2"}


async def test_comprehension_elements_run_side_by_side(world: World) -> None:
    world.facts = {f"Q{n}?": (f"A{n}", 1) for n in range(6)}
    world.programs = ['final_answer = ", ".join([answer(f"Q{n}?", retrieve(f"Q{n}?")) for n in range(6)])']
    world.delay = 0.02
    trace = await world.ask()
    assert trace.answer.text == "A0, A1, A2, A3, A4, A5"
    assert world.most_in_flight == 6
    assert [step.query for step in trace.steps if step.primitive == "answer"] == [f"Q{n}?" for n in range(6)]


async def test_the_overlap_of_two_periods_is_their_intersection(world: World) -> None:
    """HERA's third case: the paper's system returned the union."""
    world.facts = {"When was A active?": ("1914–1938", 1), "When was B active?": ("1921–1944", 1)}
    world.programs = [
        'a = answer("When was A active?", retrieve("When was A active?"))\n'
        'b = answer("When was B active?", retrieve("When was B active?"))\n'
        "final_answer = overlap(a, b)"
    ]
    trace = await world.ask()
    assert trace.answer.text == "1921–1938"
    assert len(trace.citations) == 2


@pytest.mark.parametrize(
    ("value", "text"),
    [("True", "yes"), ("False", "no"), ("3", "3"), ("3.0", "3"), ('["a", "b"]', "a, b"), ("'Ada'", "Ada")],
)
async def test_values_read_as_answers(world: World, value: str, text: str) -> None:
    world.programs = [f'a = answer("q", retrieve("q"))\nfinal_answer = {value} if a else a']
    world.facts = {"q": ("yes", 1)}
    trace = await world.ask()
    assert (trace.answer.text, trace.answer.known, trace.error) == (text, True, None)


async def test_vanilla_is_one_retrieval_and_one_answer(world: World) -> None:
    world.facts = {'What "is" {it}?': ("this", 1)}
    trace = await world.ask('What "is" {it}?', method="vanilla")
    assert (trace.answer.text, trace.usage.model_calls, trace.usage.retrievals) == ("this", 1, 1)


async def test_events_tell_what_the_trace_tells(world: World) -> None:
    chain(world).facts["Who directed Alpha?"] = ("Ada", 9)
    seen: list[Event] = []
    trace = await world.ask(observer=seen.append)
    started = [event for event in seen if isinstance(event, StepStarted)]
    finished = [event.step for event in seen if isinstance(event, StepFinished)]
    assert [event.query for event in started] == [step.query for step in trace.steps]
    assert [step.answer for step in finished] == [step.answer for step in trace.steps]
    assert [event.topk for event in seen if isinstance(event, Recovering)] == [10]
