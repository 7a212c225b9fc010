"""Answers of the shipped reader that the recalibration marks as weak."""

from __future__ import annotations

import pytest

from pyrag import PyRAG
from pyrag.testing import InMemoryRetriever
from pyrag.trace.model import Passage


@pytest.mark.parametrize(
    ("question", "text", "is_weak"),
    [
        ("Where was Ada Berg born?", "Ada Berg was born in Uppsala.", False),
        ("Who founded the mill of Alpha?", "The mill of Alpha was founded by Ada Berg.", False),
        ("What is Peter's occupation?", "Peter was a nationalist politician.", True),
    ],
)
def test_plain_statement_about_a_full_name_is_sure(question: str, text: str, is_weak: bool) -> None:
    with PyRAG(llm="embedded", retriever=InMemoryRetriever([Passage("1", "note", text)])) as rag:
        trace = rag.ask(question)
    assert trace.answer.text.lower() in text.lower()
    assert trace.weak is is_weak
