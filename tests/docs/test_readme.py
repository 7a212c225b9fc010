"""README's example is what pyrag writes: the program, the answer and its citations."""

from __future__ import annotations

import re

from pyrag import PyRAG

from .blocks import ROOT, blocks_of

README = ROOT / "README.md"


def test_the_example_is_what_pyrag_writes() -> None:
    blocks = blocks_of(README)
    command = next(block.text for block in blocks if block.text.startswith("$ pyrag ask"))
    program = next(block.text for block in blocks if block.text.startswith("docs_birth_date_1"))
    shown = next(block.text for block in blocks if block.text.startswith("Answer: "))
    with PyRAG() as rag:
        trace = rag.ask(command.split('"')[1])
    assert trace.program.strip() == program.strip()
    cited = [trace.passages[citation.passage] for citation in trace.citations]
    lines = [f"[{number}] {passage.title}: {passage.text}" for number, passage in enumerate(cited, start=1)]
    answer = f"Answer: {trace.answer.text} [1] [2] confidence {trace.answer.confidence:.2f}"
    words = " ".join(shown.split())
    assert words.startswith(answer)
    assert [" ".join(line.split())[:60] in words for line in lines] == [True, True]


def test_readme_is_short_and_contents_list_every_page() -> None:
    text = README.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 110
    assert "(docs/contents.md)" in text
    docs = ROOT / "docs"
    linked = set(re.findall(r"\]\(([\w/-]+\.md)\)", (docs / "contents.md").read_text(encoding="utf-8")))
    pages = {path.relative_to(docs).as_posix() for folder in (docs, docs / "tutorials") for path in folder.glob("*.md")}
    assert pages - {"contents.md"} <= linked
