"""Why an answer is wrong, and where gold passages were found, on traces made by hand: one for each class."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from pyrag.evaluation.datasets.layout import Question, SubQuestion
from pyrag.evaluation.failures import WrongAnswerCause
from pyrag.evaluation.reports.summary import set_stats
from pyrag.evaluation.reports.tables import opera_table, role_table
from pyrag.evaluation.retrieval_recall import hops_of, ndcg_at, recall_at
from pyrag.evaluation.scoring import critical_path, is_binary, score
from pyrag.trace.model import Answer, Attempt, Passage, Program, RoleUsage, Step, Trace, TraceError

# Who directed Alpha? Ada Bell (passage film). Where was Ada Bell born? Rome (passage person).
QUESTION = Question(
    "q", "Where was the director of Alpha born?", ("Rome",), hops=2, supporting=("film", "person"),
    decomposition=(
        SubQuestion("Who directed Alpha?", "Ada Bell", "film"), SubQuestion("Where was #1 born?", "Rome", "person"),
    ),
)  # fmt: skip
TITLES = {"film": "Alpha (film)", "person": "Ada Bell"}
TWO = 'd = retrieve("Who directed Alpha?")\na = answer("?", d)\ne = retrieve(f"{a}")\nfinal_answer = answer("?", e)\n'
ONE = 'd = retrieve("Where was the director of Alpha born?")\nfinal_answer = answer("?", d)\n'


def found(number: int, query: str, *passages: str, after: tuple[int, ...] = ()) -> Step:
    return Step(number, "retrieve", query, topk=5, passages=passages, depends_on=after, seconds=1.0)


def read(number: int, said: str, *passages: str, after: tuple[int, ...] = ()) -> Step:
    answer = Answer(said, known=said != "unknown")
    return Step(number, "answer", "?", passages=passages, mode="evidence", answer=answer, depends_on=after, seconds=2.0)


def trace(*steps: Step, said: str = "Oslo", source: str = TWO, error: TraceError | None = None) -> Trace:
    ids = {one for step in steps for one in step.passages}
    texts = {"film": "Ada Bell directed it.", "person": "Ada Bell was born in Rome."}
    passages = {one: Passage(one, TITLES.get(one, ""), texts.get(one, "Nothing.")) for one in ids}
    answer = Answer(said, known=said != "unknown")
    return Trace(
        QUESTION.question, answer, programs=(Program(source, "p"),), steps=steps, passages=passages, error=error
    )


def chain(middle: str, *second: str, said: str = "Oslo", query: str | None = None) -> Trace:
    """Two hops: the film's passage, the answer in the middle, what the second retrieval brought, the final answer."""
    return trace(
        found(0, "Who directed Alpha?", "noise", "film"),
        read(1, middle, "noise", "film", after=(0,)),
        found(2, query or f"Where was {middle} born?", *second, after=(1,)),
        read(3, said, *second, after=(2,)),
        said=said,
    )


def kind(given: Trace, question: Question = QUESTION, titles: dict[str, str] | None = None) -> WrongAnswerCause:
    failure = score("musique", "pyrag", question, given, TITLES if titles is None else titles).failure
    assert failure is not None
    return failure


def failed(kind: str, cause: str = "") -> Trace:
    return trace(error=TraceError(kind, "a sentence", cause=cause), said="unknown")


BARE = replace(QUESTION, decomposition=())
CASES = [
    ("retrieval_missing", chain("Ada Bell", "noise")),  # the right page was asked for and did not come
    ("retrieval_missing", trace(found(0, "Who directed Alpha?", "x"), found(1, "Where?", "y"), read(2, "Oslo", "x"))),
    ("under_decomposition", trace(found(0, QUESTION.question, "film"), read(1, "Oslo", "film"), source=ONE)),
    ("intermediate_error", chain("Bob Ray", "noise")),  # wrong name from present evidence, so the second look-up missed
    ("intermediate_error",
     trace(found(0, "Who directed Alpha?", "film"), read(1, "unknown", "film", after=(0,)), said="unknown")),
    ("intermediate_error", chain("Bob Ray", "person")),  # nothing is missing, but a wrong name was carried on
    ("misreading", chain("Ada Bell", "person")),
    ("final_refusal", chain("Ada Bell", "person", said="unknown")),
    ("no_retrieval", trace(said="Oslo", source="")),
]  # fmt: skip


@pytest.mark.parametrize(("wanted", "given"), CASES, ids=[f"{i}-{name}" for i, (name, _) in enumerate(CASES)])
def test_each_class_is_told_from_the_others(wanted: str, given: Trace) -> None:
    assert kind(given).kind == wanted


def test_without_decomposition_the_title_of_the_missing_page_decides() -> None:
    assert kind(chain("Bob Ray", "noise"), BARE).kind == "intermediate_error"
    assert kind(chain("Ada Bell", "noise"), BARE).kind == "retrieval_missing"


def test_a_right_answer_has_no_failure() -> None:
    assert score("musique", "pyrag", QUESTION, chain("Ada Bell", "person", said="Rome")).failure is None


@pytest.mark.parametrize(
    ("given", "failure"),
    [
        (failed("program", "NameError"), WrongAnswerCause("program_error", "NameError")),
        (failed("program", "refused"), WrongAnswerCause("program_error", "refused")),
        (failed("program", "check"), WrongAnswerCause("program_error", "plan check")),
        (failed("program", "no_answer"), WrongAnswerCause("program_error", "no final answer")),
        (failed("program", "memory"), WrongAnswerCause("program_error", "limit")),
        (failed("program"), WrongAnswerCause("program_error", "other")),
        (failed("bad_output"), WrongAnswerCause("program_error", "bad output")),
        (failed("budget"), WrongAnswerCause("budget", "budget")),
        (failed("deadline"), WrongAnswerCause("budget", "deadline")),
        (failed("service"), WrongAnswerCause("service_error", "service")),
        (failed("crash"), WrongAnswerCause("service_error", "crash")),
    ],
)  # fmt: skip
def test_errors_are_classed_by_their_kind(given: Trace, failure: WrongAnswerCause) -> None:
    assert kind(given) == failure


def test_without_gold_passages_the_answers_in_the_texts_decide() -> None:
    bare = replace(QUESTION, supporting=())
    assert kind(chain("Ada Bell", "noise"), bare).kind == "retrieval_missing"
    assert kind(chain("Ada Bell", "person"), bare).kind == "misreading"
    yes = replace(bare, answers=("yes",), decomposition=())
    assert kind(chain("Ada Bell", "noise"), yes).kind == "misreading"


def test_evidence_without_a_gold_spelling_is_said_so() -> None:
    odd = replace(QUESTION, answers=("Roma Capitale",), decomposition=())
    assert kind(chain("Ada Bell", "person"), odd) == WrongAnswerCause("misreading", "no gold spelling in any passage")


def rewritten(given: Trace) -> Trace:
    """The same with a rewritten query at its last step."""
    last = given.steps[-1]
    attempts = (Attempt("first", last.query), Attempt("rewrite", "Rome, Ada Bell", 10, ("noise",)))
    return replace(given, steps=(*given.steps[:-1], replace(last, attempts=attempts)))


INDEPENDENT = trace(found(0, "Who directed Alpha?", "film"), found(1, "Where was the director born?", "noise"))


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (trace(found(0, "Alpha", "film"), read(1, "Rom", "film", after=(0,)), source=ONE), "incorrect decomposition"),
        (failed("program", "ValueError"), "incorrect decomposition"),
        (INDEPENDENT, "missing dependencies"),
        (chain("Ada Bell", "noise", query="Ada Bell born"), "retrieval without rewrite"),
        (rewritten(chain("Ada Bell", "noise", query="Ada Bell born")), "retrieval despite rewrite"),
        (chain("Bob", "person", "noise"), "misextraction from context"),
        (chain("Ada Bell", "person"), "misextraction from context"),
        (chain("Bob", "noise"), "incorrect YES decision"),
        (chain("unknown", "noise", said="unknown"), "incorrect NO decision"),
        (chain("Ada Bell", "person", said="unknown"), "incorrect NO decision"),
        (failed("service"), ""),
        (failed("budget"), ""),
    ],
)
def test_the_lines_of_operas_table_11(given: Trace, line: str) -> None:
    assert kind(given).opera == line


def test_operas_lines_sum_up_to_their_sources() -> None:
    given = [INDEPENDENT, chain("Ada Bell", "person"), chain("Bob", "noise"), chain("Bob", "person")]
    rows = [replace(score("musique", "pyrag", QUESTION, one, TITLES), id=str(n)) for n, one in enumerate(given)]
    shown = {row[0]: row[1] for row in opera_table([set_stats("musique", "pyrag", rows)]).rows}
    assert (shown["wrong answers"], shown["planning errors"], shown["reasoning errors"]) == ("4", "25.0", "75.0")
    assert (shown["missing dependencies"], shown["misextraction from context"]) == ("25.0", "50.0")


def test_time_by_role_is_grouped() -> None:
    roles = {
        "decompose": RoleUsage(1, 1.0),
        "plan": RoleUsage(2, 3.0),
        "retrieve": RoleUsage(2, 0.5),
        "odd": RoleUsage(9, 9.0),
    }
    row = score("musique", "pyrag", QUESTION, replace(INDEPENDENT, roles=roles), TITLES)
    assert role_table([set_stats("musique", "pyrag", [row, replace(row, id="2", roles={})])]).rows == [
        ["musique", "pyrag", "plan", "1.50", "1.33", "2.00"],
        ["musique", "pyrag", "retrieval", "1.00", "0.25", "0.25"],
    ]


def test_hops_say_which_retrieval_found_which_passage() -> None:
    first, second = hops_of(QUESTION, chain("Ada Bell", "a", "b", "person"))
    assert (first.step, first.retrieval, first.rank) == (0, 1, 2)
    assert (second.step, second.retrieval, second.rank) == (2, 2, 3)
    assert recall_at((first, second), 2) == 0.5
    assert recall_at((first, second), 5) == 1.0
    assert recall_at((), 5) is None


def test_alternatives_titles_and_recovery_count() -> None:
    alternative = replace(QUESTION, supporting=("gone",), supporting_alt={"gone": ("film",)})
    assert hops_of(alternative, chain("Ada Bell", "x"))[0].is_found
    titled = replace(QUESTION, supporting=(), supporting_titles=("Ada Bell",))
    assert hops_of(titled, chain("Ada Bell", "person"))[0].is_found
    tries = (
        Attempt("first", "?", None, ("x",), Answer("unknown", known=False)),
        Attempt("boost", "?", 10, ("x", "film")),
    )
    step = replace(read(1, "unknown", "x", after=(0,)), attempts=tries)
    (hop, _) = hops_of(QUESTION, trace(found(0, "Who?", "x"), step))
    assert (hop.step, hop.rank, hop.recovered) == (1, 2, True)


def test_the_critical_path_is_the_longest_chain_of_each_round() -> None:
    branches = (found(0, "a", "x"), found(1, "b", "y"), read(2, "A", after=(0,)), read(3, "B", after=(1,)))
    join = read(4, "C", after=(2, 3))
    assert critical_path((*branches, join)) == 1 + 2 + 2
    again = replace(found(5, "c", "z"), round=1)
    assert critical_path((*branches, join, again)) == 6


def test_a_row_counts_repairs_and_recoveries() -> None:
    tries = (Attempt("first", "?"), Attempt("boost", "?", 10))
    step = replace(read(1, "Rome", "film"), attempts=tries)
    programs = (Program(ONE, "p"), Program(ONE, "p", "check"), Program(ONE, "p", "repair"))
    row = score("musique", "pyrag", QUESTION, replace(trace(step, said="Rome"), programs=programs))
    assert (row.repairs, row.revisions, row.unknowns, row.recovered) == (1, 1, 1, 1)


@pytest.mark.parametrize(
    ("question", "gold", "binary"),
    [
        ("Is Rome a city?", "yes", True), ("Who is older, Ada or Bob?", "Bob", True), ("Who is Ada?", "Bob", False),
        ("Where is the Oregon trail of Ada?", "Ada", False), ("A claim.", "NOT_SUPPORTED", True),
    ],
)  # fmt: skip
def test_chance_answers_questions_of_two_options(question: str, gold: str, binary: bool) -> None:
    assert is_binary(Question("q", question, (gold,))) is binary


def test_agents_that_only_read_are_no_retrievals() -> None:
    """HERA's evidence selector puts passages in another order: where they were found is the retriever's rank."""
    kept = Step(1, "select", "?", passages=("film",), depends_on=(0,))
    asked = trace(found(0, "Who directed Alpha?", "noise", "film"), kept)
    (first, _) = hops_of(QUESTION, replace(asked, method="hera"))
    assert first.rank == 2


def test_ndcg_counts_the_best_rank_of_each_gold_passage() -> None:
    hops = hops_of(QUESTION, chain("Ada Bell", "a", "b", "person"))  # the film at rank 2, the person at rank 3
    assert ndcg_at(hops, 10) == pytest.approx((1 / math.log2(3) + 1 / 2) / 2)
    assert ndcg_at(hops, 2) == pytest.approx(1 / math.log2(3) / 2)
    assert ndcg_at((), 10) is None
