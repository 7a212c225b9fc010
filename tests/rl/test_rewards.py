"""Rewards against completions that models do write when they are paid for it."""

from __future__ import annotations

import asyncio
import inspect
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrag.agents.protocol import Decomposition, Plan, Reading
from pyrag.errors import ContextLengthError, RetryableServiceError
from pyrag.evaluation.metrics import score_text
from pyrag.llm.protocol import Message
from pyrag.retrieval.filters.tree import Filter
from pyrag.retrieval.protocol import Retriever, search
from pyrag.runtime.engines import open_engines
from pyrag.settings import Settings
from pyrag.trace.codec import from_json
from pyrag.trace.events import AgentFinished, AgentStarted, Searched
from pyrag.trace.model import Passage
from pyrag_rl.config import TrainConfig, load_config, save_config
from pyrag_rl.data.rows import Document, TrainRow, as_columns, write_rows
from pyrag_rl.folder import RunFolder, read_lines
from pyrag_rl.prompting import prompt_of
from pyrag_rl.rewards.environment import (
    REWARDS,
    OutsideFailureError,
    RewardEnvironment,
    compute_score,
    reward_named,
)
from pyrag_rl.rewards.score import KEYS, OUTSIDE, Score
from pyrag_rl.rewards.services import Deadline, Memo, Waits

RUNTIME = {"llm": "embedded", "retriever": None, "recovery": "none", "deadline": 30}
QUESTION = "In which city was the director of The Seventh Seal born?"
SUBS = ("Who directed The Seventh Seal?", "In which city was that director born?")
TWO_STEPS = """```python
director = answer("Who directed The Seventh Seal?", retrieve("Who directed The Seventh Seal?"))
city = answer(f"In which city was {director} born?", retrieve(f"In which city was {director} born?"))
final_answer = city
```"""


def config(agent: str, **changes: object) -> TrainConfig:
    made = load_config(agent, runtime=RUNTIME)
    return replace(made, **changes)  # type: ignore[arg-type]


def row(agent: str, **changes: object) -> TrainRow:
    given = TrainRow(
        index=0, id="q", agent=agent, source="toy", question=QUESTION, answers=("Uppsala",), messages=(),
        sub_queries=SUBS, documents=(Document(id="d", title="Bergman", text="Bergman was born in Uppsala."),),
    )  # fmt: skip
    return replace(given, **changes)  # type: ignore[arg-type]


async def scored(agent: str, completion: str, *, changes: dict[str, object] | None = None, **more: object) -> Score:
    frozen = RewardEnvironment(config(agent, **(changes or {})))
    try:
        return await frozen.score(row(agent, **more), completion)
    finally:
        await frozen.aclose()


async def test_a_right_answer_in_form_is_worth_one() -> None:
    score = await scored("answer", "<answer>Uppsala [Doc 1]</answer>")
    assert (score.score, score.f1, score.em, score.form, score.error) == (1.0, 1.0, 1.0, 1.0, "")


async def test_a_joint_row_is_rewarded_without_sub_queries() -> None:
    program = (
        'q1 = "Who directed The Seventh Seal?"\na1 = answer(q1, retrieve(q1))\n'
        'q2 = f"In which city was {a1} born?"\na2 = answer(q2, retrieve(q2))\nfinal_answer = a2'
    )
    score = await scored("plan", f"```python\n{program}\n```", sub_queries=(), documents=None)
    assert (score.score, score.error) == (1.0, "")
    assert score.trace is not None
    assert len(score.trace.steps) == 4


async def test_a_reply_without_its_tags_scores_nothing_as_released() -> None:
    score = await scored("answer", "Uppsala")
    assert (score.score, score.error) == (0.0, "bad_form")


async def test_yes_with_more_words_has_the_release_s_f1() -> None:
    changes = {"source": "hotpotqa", "question": "Where was he born?", "answers": ("yes",)}
    score = await scored("answer", "<answer>surely yes indeed</answer>", **changes)
    assert score.score == pytest.approx(0.7 * 0.5)


async def test_weights_are_the_config_s() -> None:
    score = await scored("answer", "<answer>Uppsala in Sweden</answer>", changes={"f1_weight": 0.5, "em_weight": 0.5})
    assert score.score == pytest.approx(0.5 * 0.5)  # one of three tokens: F1 = 2 · (1/3 · 1) / (4/3)


async def test_ten_guesses_are_not_one_answer() -> None:
    cities = "Paris, London, Rome, Berlin, Oslo, Uppsala, Madrid, Vienna, Prague, Lisbon"
    score = await scored("answer", f"<answer>{cities}</answer>")
    assert score.em == 0.0
    assert score.score == pytest.approx(0.7 * 2 / 11)


async def test_of_several_answers_the_last_counts() -> None:
    score = await scored("answer", "<answer>Uppsala</answer> or rather <answer>Paris</answer>")
    assert score.score == 0.0


@given(st.lists(st.from_regex(r"[b-z]{2,9}", fullmatch=True), min_size=1, max_size=30, unique=True), st.data())
def test_guessing_more_pays_less(guesses: list[str], data: st.DataObject) -> None:
    """Of k single-word guesses with the gold among them, F1 is 2 / (k + 1): hedging never beats answering."""
    gold = data.draw(st.sampled_from(guesses))
    kept = [one for one in guesses if one not in ("the", "an")]
    if gold not in kept:
        return
    _, f1, _ = score_text(", ".join(kept), [gold])
    assert f1 == pytest.approx(2 / (len(kept) + 1))


async def test_repeating_the_gold_pays_less_than_saying_it() -> None:
    score = await scored("answer", "<answer>" + "Uppsala " * 20 + "</answer>")
    assert 0 < score.score < 0.7 * 0.1


@pytest.mark.parametrize(
    "completion",
    [
        "",
        "   \n",
        "I think that it may be one of several cities, " * 20,
        "<answer>",
        "<think>Uppsala",
        "<answer></answer>",
    ],
)
async def test_what_is_no_answer_scores_nothing_and_says_why(completion: str) -> None:
    score = await scored("answer", completion)
    assert score.score == 0.0
    assert score.error in ("bad_form", "unknown")


async def test_the_prompt_copied_back_scores_nothing() -> None:
    one = row("answer")
    assert one.documents is not None
    passages = [document.passage() for document in one.documents]
    messages = await prompt_of(lambda agents: agents.answerer.answer(one.question, passages))
    score = await scored("answer", "\n".join(message.content for message in messages))
    assert score.score < 0.1


@pytest.mark.parametrize(
    "piece", ["Uppsala ", "<answer>Uppsala</answer>", "<answer>Uppsala ", "<think>Uppsala</think>"]
)
async def test_ten_megabytes_are_read_and_bounded(piece: str) -> None:
    text = piece * (10_000_000 // len(piece))
    score = await scored("answer", text)
    assert 0.0 <= score.score <= 1.0
    assert score.error in ("", "bad_form", "unknown")


async def test_unknown_is_named() -> None:
    assert (await scored("answer", "<answer>unknown</answer>")).error == "unknown"


@pytest.mark.parametrize(("completion", "worth"), [("unknown", 1.0), ("Uppsala", 1.0), ("Lund", 0.0)])
async def test_unknown_is_right_over_passages_without_the_answer(completion: str, worth: float) -> None:
    score = await scored("answer", f"<answer>{completion}</answer>", sufficient=False)
    assert (score.score, score.error) == (worth, "")


async def test_an_answer_without_documents_is_read_in_aggregation_mode() -> None:
    score = await scored("answer", "<answer>yes</answer>", documents=None, query="Given: x. Answer the question: Who?")
    assert score.error == "bad_form"  # yes to a who question: the agent asks again, and the completion is spent


async def test_a_program_is_run_in_the_sandbox() -> None:
    score = await scored("plan", TWO_STEPS)
    assert (score.score, score.error) == (1.0, "")
    assert score.trace is not None
    assert [step.primitive for step in score.trace.steps] == ["retrieve", "answer", "retrieve", "answer"]


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("I would search for the director first.", "no_program"),
        ("", "no_program"),
        ("```python\nfinal_answer = answer('x', retrieve('x')\n```", "syntax_error"),
        ("```python\nd = retrieve('Uppsala')\nfinal_answer = d[99].text\n```", "runtime_error"),
        ("```python\nd = retrieve('Uppsala')\nraise SystemExit\nfinal_answer = 'Uppsala'\n```", "runtime_error"),
        ("```python\nd = retrieve('Uppsala')\nexit()\nfinal_answer = 'Uppsala'\n```", "runtime_error"),
        ("```python\nimport os\nd = retrieve('Uppsala')\nfinal_answer = os.getcwd()\n```", "runtime_error"),
        (
            "```python\nd = retrieve('Uppsala')\nx = 0\nwhile True:\n    x += 1\nfinal_answer = 'Uppsala'\n```",
            "timeout",
        ),
    ],
)
async def test_what_a_program_fails_by_is_named(program: str, reason: str) -> None:
    score = await scored("plan", program)
    assert (score.score, score.error) == (0.0, reason)


async def test_a_call_budget_is_named() -> None:
    greedy = "\n".join(f"a{i} = answer('Who directed film {i}?', retrieve('film {i}'))" for i in range(6))
    runtime = {**RUNTIME, "max_calls": 2}
    program = f"```python\n{greedy}\nfinal_answer = a5\n```"
    score = await scored("plan", program, changes={"runtime": runtime})
    assert (score.score, score.error) == (0.0, "call_budget")


async def test_a_program_is_not_repaired_by_itself() -> None:
    """The completion is the only thing that the Plan agent says; a second program would be somebody else's."""
    score = await scored("plan", "```python\nd = retrieve('Uppsala')\nfinal_answer = d['nothing']\n```")
    assert score.trace is not None
    assert len(score.trace.programs) == 1


async def test_sub_queries_go_through_the_frozen_agents() -> None:
    score = await scored("decompose", json.dumps(SUBS))
    assert score.trace is not None
    assert score.trace.sub_queries == SUBS
    assert score.trace.programs[0].planner == "embedded"
    assert score.score == 1.0


async def test_no_list_of_sub_queries_is_bad_form() -> None:
    assert (await scored("decompose", "First find the director.")).error == "bad_form"


class _Down:
    """A frozen Answer agent whose server is down."""

    async def answer(self, query: str, passages: Sequence[Passage] | None) -> Reading:
        raise RetryableServiceError("openai:x at http://127.0.0.1:1: connection refused", service="openai:x")


def with_answerer(
    answerer: object, agent: str = "plan", folder: RunFolder | None = None, **changes: object
) -> RewardEnvironment:
    engines = open_engines(Settings())
    engines.agents = replace(engines.agents, answerer=answerer)  # type: ignore[arg-type]
    frozen = RewardEnvironment(config(agent, **changes), folder, engines)
    frozen.pauses = (0.0, 0.0, 0.0)
    return frozen


async def test_an_unreachable_frozen_server_is_no_reward_of_zero(tmp_path: Path) -> None:
    frozen = with_answerer(_Down(), folder=RunFolder(tmp_path))
    with pytest.raises(OutsideFailureError, match="connection refused"):
        await frozen.numbers(as_columns(row("plan"))["extra_info"], TWO_STEPS)
    await frozen.aclose()
    (line,) = next(iter(read_lines(path)[0] for path in (tmp_path / "scores").glob("*.jsonl")))
    assert (line["reason"], line["infra"], line["retries"]) == ("service", 1.0, 3.0)
    assert "connection refused" in line["detail"]


class _Recovering:
    """A frozen Answer agent whose server is down for some calls."""

    def __init__(self, failures: int) -> None:
        self.failures = failures

    async def answer(self, query: str, passages: Sequence[Passage] | None) -> Reading:
        self.failures -= 1
        if self.failures >= 0:
            raise RetryableServiceError("down", service="openai:x")
        return Reading("Ingmar Bergman" if query.startswith("Who") else "Uppsala", known=True)


async def test_a_server_that_comes_back_costs_no_reward() -> None:
    frozen = with_answerer(_Recovering(2))
    score = await frozen.score(row("plan"), TWO_STEPS)
    await frozen.aclose()
    assert (score.score, score.error, score.retries) == (1.0, "", 2.0)


class _Slow:
    async def answer(self, query: str, passages: Sequence[Passage] | None) -> Reading:
        await asyncio.sleep(60)
        raise AssertionError("nobody waits so long")


@pytest.mark.parametrize(("agent", "completion"), [("plan", TWO_STEPS), ("decompose", json.dumps(SUBS))])
async def test_a_deadline_spent_in_frozen_agents_is_their_failure(agent: str, completion: str) -> None:
    frozen = with_answerer(_Slow(), agent, runtime={**RUNTIME, "deadline": 2.0})
    frozen.pauses = (0.0,)
    await started(frozen)
    score = await frozen.score(row(agent), completion)
    await frozen.aclose()
    assert (score.error, score.retries) == ("service", 1.0)
    assert score.waited >= 1.0
    assert "in frozen agents and retriever" in score.detail


async def started(frozen: RewardEnvironment) -> None:
    """Wait for the sandbox, which is no service of a question."""
    await frozen.engines.sandbox.run("x = 1", {})


class _SlowRetriever:
    name = "slow"

    def __init__(self, inner: Retriever, seconds: float) -> None:
        self.inner, self.seconds = inner, seconds

    async def retrieve(self, query: str, topk: int, where: Filter | None = None) -> list[Passage]:
        await asyncio.sleep(self.seconds)
        return await search(self.inner, query, topk, where)

    async def aclose(self) -> None:
        await self.inner.aclose()


def with_slow_retriever(seconds: float, agent: str, **runtime: object) -> RewardEnvironment:
    engines = open_engines(Settings())
    engines = replace(engines, retriever=_SlowRetriever(engines.retriever, seconds))
    frozen = RewardEnvironment(config(agent, runtime={**RUNTIME, **runtime}), None, engines)
    frozen.pauses = (0.0, 0.0, 0.0)
    return frozen


async def test_a_slow_retriever_is_waited_for_over_several_tries() -> None:
    """Each try finds what the tries before it had searched for."""
    frozen = with_slow_retriever(1.2, "plan", deadline=2.0)
    await started(frozen)
    score = await frozen.score(row("plan"), TWO_STEPS)
    await frozen.aclose()
    assert (score.score, score.error) == (1.0, "")
    assert score.retries >= 1


async def test_a_retriever_that_never_replies_fails_outside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pyrag_rl.rewards.environment._BEYOND_DEADLINE", 0.1)
    frozen = with_slow_retriever(60.0, "rewrite", deadline=0.2)
    score = await frozen.score(
        row("rewrite", supporting=("d",)), json.dumps({"query": "Bergman", "strategy": "", "keywords": []})
    )
    await frozen.aclose()
    assert score.error == "service"


async def test_a_program_that_idles_is_to_blame_for_its_deadline() -> None:
    idle = "```python\nd = retrieve('Uppsala')\nx = 0\nwhile True:\n    x += 1\nfinal_answer = 'Uppsala'\n```"
    frozen = with_slow_retriever(0.0, "plan", deadline=1.0)
    score = await frozen.score(row("plan"), idle)
    await frozen.aclose()
    assert (score.score, score.error) == (0.0, "timeout")


async def test_waits_side_by_side_count_once() -> None:
    waits = Waits(own=("plan",))
    waits(Searched(0, "q", 5, seconds=3.0))
    waits(Searched(1, "q", 5, seconds=2.0))
    waits(AgentStarted(2, "plan"))
    waits(AgentFinished(2, "plan", 60.0))
    assert waits.seconds == pytest.approx(3.0, abs=0.1)


async def test_a_paused_deadline_lets_no_time_pass() -> None:
    deadline = Deadline(0.3)

    async def work(paused: float) -> str:
        with deadline.paused():
            await asyncio.sleep(paused)
        await asyncio.sleep(0.05)
        return "done"

    assert await deadline.bound(work(0.6)) == "done"
    with pytest.raises(TimeoutError):
        await deadline.bound(asyncio.sleep(5))


class _Narrow:
    async def answer(self, query: str, passages: Sequence[Passage] | None) -> Reading:
        raise ContextLengthError("the prompt is longer than the window")


async def test_a_prompt_beyond_a_window_is_the_program_s_fault() -> None:
    frozen = with_answerer(_Narrow())
    score = await frozen.score(row("plan"), TWO_STEPS)
    await frozen.aclose()
    assert (score.error, score.retries) == ("runtime_error", 0.0)


@pytest.mark.parametrize(("golds", "share"), [(("the-seventh-seal",), 1.0), (("the-seventh-seal", "no-such"), 0.5)])
async def test_coverage_is_the_share_of_gold_passages_retrieved(golds: tuple[str, ...], share: float) -> None:
    wrong = TWO_STEPS.replace("final_answer = city", "final_answer = 'nowhere'")
    scores = [
        await scored("plan", wrong, changes={"reward": kind}, supporting=golds) for kind in ("answer", "coverage")
    ]
    assert [score.coverage for score in scores] == [share, share]
    assert [score.score for score in scores] == [0.0, share]


async def test_coverage_counts_what_the_program_reached_not_its_recovery() -> None:
    asked = "```python\nx = answer('Who?', retrieve('Who directed it?', topk=1))\nfinal_answer = x\n```"
    frozen = with_answerer(_Unknown(), reward="coverage", runtime={**RUNTIME, "recovery": "boost", "boost_topk": 40})
    score = await frozen.score(row("plan", supporting=("the-seventh-seal",)), asked)
    await frozen.aclose()
    assert score.trace is not None
    recovered = {one for step in score.trace.steps for attempt in step.attempts for one in attempt.passages}
    assert "the-seventh-seal" in recovered
    assert score.score == 0.0


class _Unknown:
    async def answer(self, query: str, passages: Sequence[Passage] | None) -> Reading:
        return Reading("unknown", known=False)


async def test_a_timeout_without_a_deadline_is_one_too() -> None:
    async def work() -> Score:
        raise TimeoutError

    frozen = RewardEnvironment(config("answer", runtime={**RUNTIME, "deadline": None}))
    score = await frozen.guarded(work())
    await frozen.aclose()
    assert score.error == "timeout"


class _Counting:
    def __init__(self) -> None:
        self.asked: list[str] = []

    async def answer(self, query: str, passages: Sequence[Passage] | None) -> Reading:
        self.asked.append(query)
        await asyncio.sleep(0.01)
        return Reading("Ingmar Bergman" if query.startswith("Who") else "Uppsala", known=True)


async def test_a_group_pays_once_for_what_its_completions_share() -> None:
    counting = _Counting()
    frozen = with_answerer(counting)
    extra = as_columns(row("plan"))["extra_info"]
    other = TWO_STEPS.replace("final_answer", "x = 1\nfinal_answer")  # another program, the same calls
    scores = await asyncio.gather(*(frozen.numbers(extra, one) for one in (TWO_STEPS, TWO_STEPS, other, other)))
    await frozen.aclose()
    assert {score["score"] for score in scores} == {1.0}
    assert sorted(counting.asked) == ["In which city was Ingmar Bergman born?", "Who directed The Seventh Seal?"]


async def test_rows_of_two_sets_that_count_alike_are_told_apart() -> None:
    frozen = RewardEnvironment(config("answer"))
    other = row("answer", question="Where was Greta Garbo born?", answers=("Stockholm",))
    both = [as_columns(one)["extra_info"] for one in (row("answer"), other)]
    told = [await frozen.numbers(extra, "<answer>Uppsala</answer>") for extra in both]
    await frozen.aclose()
    assert [one["score"] for one in told] == [1.0, 0.0]


async def test_an_evaluation_s_rows_are_its_own_whatever_they_say(tmp_path: Path) -> None:
    """A set that was built alone calls its rows `train`."""
    held = row("answer", question="Where was Greta Garbo born?")
    write_rows(tmp_path / "held.parquet", [replace(held, messages=(Message("user", "?"),))])
    folder = RunFolder(tmp_path / "run")
    frozen = RewardEnvironment(config("answer", eval_data=str(tmp_path / "held.parquet"), shuffle_rewards=True), folder)
    for one in (row("answer"), held):
        await frozen.numbers(as_columns(one)["extra_info"], "<answer>Uppsala</answer>")
    await frozen.aclose()
    (path,) = folder.scores.glob("*.jsonl")
    assert [line["split"] for line in read_lines(path)[0]] == ["train", "eval"]


async def test_a_failure_is_not_remembered() -> None:
    memo, tries = Memo(), []

    async def work() -> str:
        tries.append(1)
        if len(tries) == 1:
            raise RetryableServiceError("down")
        return "up"

    with pytest.raises(RetryableServiceError):
        await memo.get("key", work)
    assert await memo.get("key", work) == "up"


async def test_a_memo_forgets_what_was_used_longest_ago() -> None:
    memo, made = Memo(limit=2), []

    def making(name: str) -> Callable[[], object]:
        async def work() -> str:
            made.append(name)
            return name

        return work

    for name in ("a", "b", "a", "c", "a", "b"):
        await memo.get(name, making(name))  # type: ignore[arg-type]
    assert made == ["a", "b", "c", "b"]


class _BadPlanner:
    async def plan(self, question: str, sub_queries: Sequence[str] | None) -> Plan:
        raise ValueError("a fault of ours")

    async def repair(self, question: str, sub_queries: Sequence[str], source: str, error: str) -> Plan:
        raise ValueError("a fault of ours")


async def test_a_fault_of_ours_is_counted_apart() -> None:
    engines = open_engines(Settings())
    engines.agents = replace(engines.agents, planner=_BadPlanner())
    frozen = RewardEnvironment(config("decompose"), None, engines)
    score = await frozen.score(row("decompose"), json.dumps(SUBS))
    await frozen.aclose()
    assert score.error == "crash"
    assert score.error in OUTSIDE
    assert "a fault of ours" in score.detail


def run_folder(path: Path, agent: str = "answer", **changes: object) -> Path:
    save_config(replace(config(agent, **changes), out=str(path)), path / "config.yaml")
    return path


async def test_verl_s_entry_returns_the_same_numbers_every_time(tmp_path: Path) -> None:
    run = str(run_folder(tmp_path))
    extra = as_columns(row("answer"))["extra_info"]
    for completion in ("<answer>Uppsala</answer>", "", "<answer>unknown</answer>"):
        numbers = await compute_score("toy", completion, "Uppsala", {**extra, "num_turns": 2}, run=run, other=1)
        assert tuple(numbers) == KEYS
        assert all(isinstance(value, float) and math.isfinite(value) for value in numbers.values())


@pytest.mark.parametrize("extra", [None, {}, {"index": "x"}, {"global_steps": object()}])
async def test_verl_s_entry_raises_where_it_cannot_score(extra: dict[str, object] | None, tmp_path: Path) -> None:
    for run in (str(run_folder(tmp_path)), str(tmp_path / "none")):
        with pytest.raises(OutsideFailureError):
            await compute_score("toy", "<answer>x</answer>", "x", extra, run=run)


async def test_agents_that_cannot_be_opened_are_no_zero_in_silence(tmp_path: Path) -> None:
    run = run_folder(tmp_path, "plan", runtime={"index": str(tmp_path / "none")})
    extra = {**as_columns(row("plan"))["extra_info"], "global_steps": 3}
    with pytest.raises(OutsideFailureError):
        await compute_score("toy", TWO_STEPS, "x", extra, run=str(run))
    (line,) = next(iter(read_lines(path)[0] for path in (run / "scores").glob("*.jsonl")))
    assert (line["reason"], line["step"], line["id"], line["split"]) == ("crash", 3, "q", "train")
    assert "none" in line["detail"]


async def test_a_score_is_returned_although_it_cannot_be_kept(tmp_path: Path) -> None:
    run = run_folder(tmp_path)
    (run / "scores").write_text("a file where the folder is to be")
    numbers = await compute_score(
        "toy", "<answer>Uppsala</answer>", "", as_columns(row("answer"))["extra_info"], run=str(run)
    )
    assert numbers["score"] == 1.0


async def test_traces_of_a_sample_are_kept(tmp_path: Path) -> None:
    run = run_folder(tmp_path, "plan", trace_every=1)
    numbers = await compute_score("toy", TWO_STEPS, "", as_columns(row("plan"))["extra_info"], run=str(run))
    assert numbers["score"] == 1.0
    (path,) = (run / "traces").glob("*.jsonl")
    assert from_json(path.read_bytes()).answer.text == "Uppsala"


async def test_shuffled_rewards_are_those_of_others() -> None:
    frozen = RewardEnvironment(config("answer", shuffle_rewards=True))
    extra = as_columns(row("answer"))["extra_info"]
    told = [await frozen.numbers(extra, f"<answer>{'Uppsala' if i % 2 else 'Paris'} </answer>") for i in range(200)]
    held = await frozen.numbers({**extra, "split": "eval"}, "<answer>Paris</answer>")
    await frozen.aclose()
    assert held["score"] == 0.0  # what is measured is not shuffled
    right = [one["score"] for one in told if one["em"]]
    wrong = [one["score"] for one in told if not one["em"]]
    assert 0.3 < sum(right) / len(right) < 0.7
    assert 0.3 < sum(wrong) / len(wrong) < 0.7


@pytest.mark.parametrize("name", REWARDS)
def test_every_reward_is_there(name: str) -> None:
    assert inspect.iscoroutinefunction(reward_named(name))


async def test_the_decomposer_s_row_falls_back_to_the_question() -> None:
    from pyrag_rl.rewards.pyrag_agents import GivenDecomposition

    assert await GivenDecomposition(()).decompose("Who?") == Decomposition(("Who?",))
