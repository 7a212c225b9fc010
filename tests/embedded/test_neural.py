"""The neural answerer around its network: ranking, abstention, what it leaves to the lexical reader, missing files.

The network is replaced by one that knows its spans; the shipped one is tested where its packages are installed.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Barrier

import pytest

from pyrag.embedded.reader.neural import answerer as neural
from pyrag.embedded.reader.neural.answerer import NeuralAnswerer
from pyrag.embedded.reader.neural.decode import MarkedSpan
from pyrag.embedded.reader.neural.network import MODEL_FOLDER, Calibration
from pyrag.errors import ServiceError
from pyrag.trace.model import Passage

ALPHA = Passage("1", "Alpha (film)", "Alpha is a 1967 Indian film directed by Ann Lee.")
BETA = Passage("2", "Beta", "Beta was directed by American director Bo Ray.")


@dataclass(frozen=True)
class Scripted:
    """Marks given words, with a margin for each passage."""

    marks: dict[str, tuple[str, float]]  # title -> marked text, margin
    calibration: Calibration = Calibration(threshold=0.5)

    def spans(self, question: str, texts: Sequence[tuple[str, str]], count: int = 3) -> list[MarkedSpan]:
        found = []
        for place, (title, text) in enumerate(texts):
            marked, margin = self.marks[title]
            start = text.index(marked)
            found.append(MarkedSpan(place, start, start + len(marked), margin))
        return sorted(found, key=lambda span: -span.margin)


def answerer(first: float, second: float, calibration: Calibration | None = None) -> NeuralAnswerer:
    marks = {"Alpha (film)": ("Ann Lee", first), "Beta": ("American director Bo Ray", second)}
    return NeuralAnswerer(reader=Scripted(marks, calibration or Calibration(threshold=0.5)))


async def test_the_surest_passage_answers_and_is_cited() -> None:
    reading = await answerer(1.0, 4.0).answer("Who directed it?", [ALPHA, BETA])
    assert (reading.text, reading.known, reading.citations) == ("Bo Ray", True, (1,))
    assert reading.confidence is not None
    assert reading.confidence > 0.9


async def test_a_margin_below_the_threshold_is_unknown() -> None:
    reading = await answerer(-3.0, -2.0).answer("Who directed it?", [ALPHA, BETA])
    assert (reading.text, reading.known, reading.citations) == ("unknown", False, ())
    assert reading.confidence is not None
    assert reading.confidence < 0.5


async def test_the_subjects_own_page_counts_for_more() -> None:
    reading = await answerer(1.0, 1.5, Calibration(about=2.0)).answer("Who directed Alpha?", [ALPHA, BETA])
    assert reading.text == "Ann Lee"


async def test_the_lexical_readers_agreement_counts() -> None:
    reading = await answerer(1.0, 3.0, Calibration(agrees=6.0)).answer("Who directed Alpha?", [ALPHA, BETA])
    assert (reading.text, reading.citations) == ("Ann Lee", (0,))


async def test_what_the_network_missed_the_lexical_reader_may_add() -> None:
    marks = {"Alpha (film)": ("1967 Indian film", 1.0)}
    reader = NeuralAnswerer(reader=Scripted(marks, Calibration(agrees=6.0)))
    assert (await reader.answer("Who directed Alpha?", [ALPHA])).text == "Ann Lee"


async def test_no_passages_are_unknown() -> None:
    assert not (await answerer(9.0, 9.0).answer("Who directed it?", [])).known


async def test_aggregation_and_yes_no_need_no_network() -> None:
    reader = NeuralAnswerer(folder=Path("/nowhere"))
    facts = "Given: Alpha was released in 1967. Beta was released in 1980."
    facts += " Answer the question: Which film came first, Alpha or Beta?"
    assert "Alpha" in (await reader.answer(facts, None)).text
    assert (await reader.answer("Is Alpha an Indian film?", [ALPHA])).text in ("yes", "no", "unknown")


def test_evidence_is_a_probability_for_each_passage() -> None:
    alpha, beta = answerer(3.0, -4.0).evidence("Who directed Alpha?", [ALPHA, BETA])
    assert (alpha > 0.9, beta < 0.1) == (True, True)
    assert answerer(3.0, -4.0).evidence("Who directed Alpha?", []) == []


async def test_a_missing_model_says_what_to_do() -> None:
    with pytest.raises(ServiceError, match="no model in /nowhere: reinstall pyrag-runtime"):
        await NeuralAnswerer(folder=Path("/nowhere")).answer("What does Alpha complain about?", [ALPHA])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("calibration.json", b"{"),
        ("calibration.json", b"[]"),
        ("calibration.json", b'{"scale": "a"}'),
        ("calibration.json", b'{"scale": 0}'),
        ("calibration.json", b'{"threshold": 1}'),
        ("calibration.json", b'"\xff"'),
        ("tokenizer.json", b"{}"),
        ("tokenizer.json", None),
        ("reader.int8.onnx", b"no network"),
        ("reader.int8.onnx", (MODEL_FOLDER / "embedder.int8.onnx").read_bytes()),
    ],
)
async def test_a_broken_own_reader_is_named(name: str, content: bytes | None, tmp_path: Path) -> None:
    for file in ("reader.int8.onnx", "tokenizer.json", "calibration.json"):
        shutil.copy(MODEL_FOLDER / file, tmp_path / file)
    (tmp_path / name).unlink()
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ServiceError, match=f"the reader in {tmp_path} cannot be used"):
        await NeuralAnswerer(folder=tmp_path).answer("What does Alpha complain about?", [ALPHA])


def test_questions_of_one_moment_load_the_model_once(monkeypatch: pytest.MonkeyPatch) -> None:
    all_there, loaded = Barrier(4), []

    def load(folder: Path) -> Scripted:
        loaded.append(folder)
        time.sleep(0.05)
        return Scripted({"Beta": ("Bo Ray", 2.0)})

    def read(_: int) -> str:
        all_there.wait()
        return reader.read("What does Beta taste of?", [BETA]).text

    monkeypatch.setattr(neural, "load", load)
    reader = NeuralAnswerer()
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(read, range(4))) == ["Bo Ray"] * 4
    assert len(loaded) == 1


async def test_a_sure_pattern_needs_no_model() -> None:
    reading = await NeuralAnswerer(folder=Path("/nowhere")).answer("Who directed Alpha?", [ALPHA])
    assert reading.known
    assert reading.text in ALPHA.text


async def test_the_shipped_model_reads() -> None:
    reader = NeuralAnswerer()
    first = await reader.answer("Who directed Alpha?", [BETA, ALPHA])
    assert (first.text, first.citations) == ("Ann Lee", (1,))
    assert first == await reader.answer("Who directed Alpha?", [BETA, ALPHA])
