"""`make demo`: the bundled demo questions, the first with its full trace, the others in one line each."""

from __future__ import annotations

import asyncio
import json
from importlib.resources import files

from rich.text import Text

from pyrag.api import PyRAG
from pyrag.cli.views.live import LiveView, SafeConsole
from pyrag.trace.model import shorten
from pyrag.trace.words import counted


async def demo() -> None:
    """Answer the demo questions and print them."""
    console = SafeConsole()
    lines = (files("pyrag") / "data" / "demo.jsonl").read_bytes().splitlines()
    questions = [str(json.loads(line)["question"]) for line in lines]
    async with PyRAG() as rag:
        console.print(Text(f"\n$ pyrag ask {questions[0]!r}\n", style="bold"))
        with LiveView(rag.engines.agents.name, rag.engines.retriever.name, console) as view:
            trace = await rag.aask(questions[0], observer=view)
        view.finish(trace)
        console.print(Text("\nMore questions over the same corpus:\n", style="bold"))
        async for trace in rag.aask_many(questions[1:]):
            hops = sum(step.primitive == "retrieve" for step in trace.steps)
            console.print(Text(f"  {trace.question}"))
            answer = Text.assemble("    → ", (shorten(trace.answer.text), "bold green"))
            console.print(answer + Text(f"  ({counted(hops, 'retrieval')}, {trace.usage.seconds:.2f} s)", style="dim"))
    console.print("\nAsk your own: .venv/bin/pyrag index NOTES --out my-index, then ", end="")
    console.print('.venv/bin/pyrag ask "…" --index my-index')


if __name__ == "__main__":
    asyncio.run(demo())
