"""pyrag as a task of inspect_ai, with the real package: `make test-integrations`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pyrag import PyRAG
from pyrag.errors import UsageError
from pyrag.trace.codec import from_json

inspect_ai = pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")
# inspect_ai 0.3.285 drops the stream of a sample's events without closing it, with any solver (`drain_sample_events` of
# its hooks/_hooks.py); anyio says so when the stream is collected.
pytestmark = pytest.mark.filterwarnings("ignore:Unclosed <MemoryObjectReceiveStream:ResourceWarning")

QUESTION = "In which city was the director of The Seventh Seal born?"


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    lines = [
        {"id": "right", "question": QUESTION, "answers": ["Uppsala"]},
        {"id": "half", "question": "Who directed The Seventh Seal?", "answers": ["Ingmar Bergman the Swede"]},
    ]
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy/questions.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    return tmp_path


def evaluated(task: Any, folder: Path) -> Any:
    (log,) = inspect_ai.eval(task, model="mockllm/model", log_dir=str(folder / "logs"), display="none")
    return log


@pytest.mark.parametrize("own", [False, True])
def test_question_sets_are_an_inspect_task(questions: Path, own: bool) -> None:
    from pyrag.integrations.inspect_ai import STORED, question_sets

    with PyRAG(topk=4) as rag:
        chosen: dict[str, Any] = {"rag": rag} if own else {"settings": {"topk": 4}}
        log = evaluated(question_sets("toy", str(questions), **chosen), questions)
    assert log.status == "success", log.error
    means = {score.name: score.metrics["mean"].value for score in log.results.scores}
    assert means == {"em": 0.5, "f1": pytest.approx((1 + 0.8) / 2)}
    right, half = sorted(log.samples, key=lambda sample: sample.id != "toy:right")
    assert (right.output.completion, right.metadata["known"], right.metadata["set"]) == ("Uppsala", True, "toy")
    assert half.scores["answer_scorer"].value == {"em": 0.0, "f1": pytest.approx(0.8)}
    trace = from_json(json.dumps(right.store[STORED]))
    assert (trace.question, trace.answer.text, trace.config["topk"]) == (QUESTION, "Uppsala", 4)
    assert right.metadata["citations"] == [one.passage for one in trace.citations]
    assert log.samples[0].model_usage == {}, "the model of the evaluation is not asked"


def test_a_transient_failure_is_an_error_and_no_score(questions: Path, dead_url: str) -> None:
    from pyrag.integrations.inspect_ai import question_sets

    settings = {"retriever": dead_url, "retrieve_timeout": 1.0}
    log = evaluated(question_sets("toy", str(questions), limit=1, settings=settings), questions)
    assert (log.status, log.results) == ("error", None)
    assert dead_url in log.error.message


def test_an_unknown_set_is_refused(questions: Path) -> None:
    from pyrag.integrations.inspect_ai import question_sets

    with pytest.raises(UsageError, match="toys"):
        question_sets("toys", str(questions))
