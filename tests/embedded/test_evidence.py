"""The evidence gate beside other engines: an answerer's check, a reranker, a reader of one's own; real weights."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from pyrag.agents.protocol import Reading
from pyrag.embedded.evidence import CheckedAnswerer
from pyrag.embedded.reader.neural.network import MODEL_FOLDER
from pyrag.errors import ConfigError
from pyrag.retrieval.memory import InMemoryRetriever
from pyrag.retrieval.rerank import reranked
from pyrag.runtime.engines import open_engines
from pyrag.settings import Settings
from pyrag.trace.model import Passage

MILL = Passage("m", "Dorn Mill", "Dorn Mill is a watermill. It was founded by Ann Lee in 1821.")
SONG = Passage(
    "s", "Dorn Mill Song", "The Dorn Mill Song is about the mill of Dorn and whoever founded it, nobody knows."
)


@dataclass(frozen=True)
class Remembering:
    """A language model that answers whatever it is given."""

    said: str = "Bo Ray"

    async def answer(self, query: str, passages: Sequence[Passage] | None) -> Reading:
        return Reading(self.said, True, (0,), "as everybody knows")


async def test_an_answer_without_evidence_is_unknown_and_says_why() -> None:
    reading = await CheckedAnswerer(Remembering(), 0.1).answer("Which river drives the mill?", [SONG])
    assert (reading.text, reading.known, reading.citations) == ("unknown", False, ())
    assert reading.rationale.startswith("not believed: 'Bo Ray'; the passages' evidence is 0.0")
    assert reading.rationale.endswith("below 0.1 (as everybody knows)")


async def test_an_answer_with_evidence_stands() -> None:
    reading = await CheckedAnswerer(Remembering("Ann Lee"), 0.1).answer("Who founded Dorn Mill?", [SONG, MILL])
    assert reading == await Remembering("Ann Lee").answer("", None)


@pytest.mark.parametrize(("query", "passages"), [("Who founded Dorn Mill?", None), ("Is Dorn Mill a song?", [SONG])])
async def test_what_no_span_answers_is_not_checked(query: str, passages: list[Passage] | None) -> None:
    assert (await CheckedAnswerer(Remembering("no"), 0.9).answer(query, passages)).known


async def test_the_setting_checks_any_engine() -> None:
    engines = open_engines(Settings(llm="embedded", least_evidence=0.2))
    assert isinstance(engines.agents.answerer, CheckedAnswerer)
    await engines.aclose()
    with pytest.raises(ConfigError, match="least_evidence must be between 0 and 1"):
        Settings(least_evidence=2)


async def test_the_reader_reranks() -> None:
    retriever = reranked(InMemoryRetriever({"Who founded Dorn Mill?": [SONG, MILL]}), "reader")
    best, other = await retriever.retrieve("Who founded Dorn Mill?", 2)
    assert (best.id, other.id) == ("m", "s")
    assert best.score == best.parts["rerank"] > other.score
    assert retriever.name.startswith("rerank:reader(")
    await retriever.aclose()


async def test_a_reader_of_ones_own(tmp_path: Path) -> None:
    shutil.copytree(MODEL_FOLDER, tmp_path / "mine")
    engines = open_engines(Settings(llm=f"embedded:{tmp_path / 'mine'}"))
    reading = await engines.agents.answerer.answer("Who founded Dorn Mill?", [MILL])
    assert reading.text == "Ann Lee"
    await engines.aclose()


def test_a_folder_without_a_reader_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"there is no reader\.int8\.onnx in lexcal: name a folder that make reader"):
        open_engines(Settings(llm="embedded:lexcal"))


def test_the_lexical_engine_is_gone_and_says_so() -> None:
    with pytest.raises(ConfigError, match="there is no engine embedded:lexical any more: use embedded"):
        open_engines(Settings(llm="embedded:lexical"))
