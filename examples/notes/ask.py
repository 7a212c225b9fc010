"""Ask an index of notes, and print the answer with the notes that it rests on."""

from __future__ import annotations

import sys

from pyrag import PyRAG


def main(question: str) -> None:
    with PyRAG(index="my-index") as rag:
        trace = rag.ask(question)
    if trace.error:
        raise SystemExit(trace.error.message)
    print(trace.answer.text)
    for citation in trace.citations:
        passage = trace.passages[citation.passage]
        print(f"[{citation.number}] {passage.source}: {passage.text.strip()}")
    if trace.remark:
        print(trace.remark)


if __name__ == "__main__":
    main(" ".join(sys.argv[1:]))
