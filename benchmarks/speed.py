"""Benchmark of the runtime's own cost, on scripted engines: `make bench-speed`.

Models and retrievers wait for a fixed time, so the rest of the time is the runtime's. Every figure is compared with a
baseline of the same run, as a ratio:

    executor    compared with a function that only awaits the same calls with the same dependencies; its wall time is
                also compared with the longest chain of waits
    streaming   a question whose program runs while it is written, at 50 tokens a second, compared with one whose
                program runs after that
    sandbox     compared with `exec` of the same program in this process
    retrieval   compared with plain tantivy (its query parser and default ranking) over the same passages

`make bench-harness` compares other implementations over HTTP, and `make bench` measures accuracy.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from benchmarks.harness_adapter import cpu_seconds
from pyrag.agents.llm import LLMPlanner
from pyrag.agents.prompts import load_prompts
from pyrag.agents.protocol import Agents, Decomposition, Plan, Reading
from pyrag.cli.main import guarded
from pyrag.evaluation.datasets.suite import default_sets, open_set
from pyrag.evaluation.reports.writer import Table
from pyrag.llm.protocol import Message, Reply, Sampling
from pyrag.retrieval.bundled import BundledRetriever, bundled_passages
from pyrag.runtime.answering import answer_question
from pyrag.runtime.engines import Engines
from pyrag.settings import Settings
from pyrag.trace.model import Passage, Usage
from pyrag_sandbox import Call, Sandbox

SAMPLING = Sampling()
MODEL, RETRIEVER = 0.05, 0.0125  # seconds per call, a quarter of a small served model's time
TOKENS = 50  # tokens a second of a planner that streams; four characters each
LEVELS = (1, 8, 32, 128)


@dataclass(frozen=True, slots=True)
class Scenario:
    """Question with chains of dependent look-ups (`chains` holds their lengths). The final answer joins the chains."""

    name: str
    chains: tuple[int, ...]

    @property
    def path(self) -> float:
        """Seconds of the longest chain of waits: decomposition, plan, longest chain of look-ups, final answer."""
        return 3 * MODEL + max(self.chains) * (MODEL + RETRIEVER)

    @property
    def calls(self) -> int:
        return 3 + sum(self.chains)

    @property
    def sub_queries(self) -> tuple[str, ...]:
        return tuple(f"chain {i} hop {hop}?" for i, depth in enumerate(self.chains) for hop in range(depth))

    @property
    def program(self) -> str:
        lines, facts = [], []
        for i, depth in enumerate(self.chains):
            before = ""
            for hop in range(depth):
                query = f'f"chain {i} hop {hop}? {{{before}}}"' if before else f'"chain {i} hop {hop}?"'
                lines += [f"d{i}_{hop} = retrieve({query})", f"a{i}_{hop} = answer({query}, d{i}_{hop})"]
                before = f"a{i}_{hop}"
            facts.append(f"{{{before}}}")
        lines.append(f'final_answer = answer(f"Given: {", ".join(facts)}. Answer the question: {self.name}?")')
        return "\n".join(lines)


SCENARIOS = (Scenario("chain", (2,)), Scenario("comparison", (2, 2)), Scenario("four branches", (1, 1, 1, 1)))
_PASSAGES = [Passage(f"p{n}", f"Title {n}", "A text of some words. " * 20, 1 / n) for n in range(1, 6)]


class Scripted:
    """Scripted agents and retriever. `calls` counts model calls."""

    name = "scripted"

    def __init__(self, scenario: Scenario, seconds: float = MODEL) -> None:
        self._scenario = scenario
        self._seconds = seconds
        self.calls = 0

    async def _model(self) -> Usage:
        self.calls += 1
        await asyncio.sleep(self._seconds)
        return Usage(model_calls=1)

    async def decompose(self, question: str) -> Decomposition:
        return Decomposition(self._scenario.sub_queries, usage=await self._model())

    async def plan(self, question: str, sub_queries: Sequence[str] | None) -> Plan:
        return Plan(self._scenario.program, usage=await self._model())

    async def repair(self, question: str, sub_queries: Sequence[str], source: str, error: str) -> Plan:
        raise AssertionError(f"the program of {self._scenario.name} must not need a repair: {error}")

    async def answer(self, query: str, passages: Sequence[Passage] | None) -> Reading:
        return Reading("Ada", known=True, citations=(0,) if passages else (), usage=await self._model())

    async def retrieve(self, query: str, topk: int) -> list[Passage]:
        await asyncio.sleep(RETRIEVER)
        return _PASSAGES[:topk]

    async def aclose(self) -> None:
        """Do nothing, since nothing is open."""


async def walk(scenario: Scenario, engine: Scripted) -> None:
    """Run the baseline: only the same calls with the same dependencies."""

    async def chain(depth: int) -> None:
        for _ in range(depth):
            await engine.answer("?", await engine.retrieve("?", 5))

    await engine.plan("?", (await engine.decompose("?")).sub_queries)
    await asyncio.gather(*(chain(depth) for depth in scenario.chains))
    await engine.answer("?", None)


@dataclass(frozen=True, slots=True)
class LoadFigures:
    """Figures at one concurrency. `ratio` is the median wall time divided by the longest chain of waits.

    If a question failed, the other figures are meaningless, and `error` is the last error message.
    """

    scenario: str
    concurrency: int
    calls: float
    ratio: float
    walker_ratio: float
    cpu_ms: float
    walker_cpu_ms: float
    per_second: float
    walker_per_second: float
    failed: int = 0
    error: str = ""


Ask = Callable[[int], Awaitable[object]]


async def measure(ask: Ask, count: int, concurrency: int) -> tuple[float, float, float]:
    """Return the median seconds and the CPU seconds per question, and the questions per second."""
    slots, seconds = asyncio.Semaphore(concurrency), []

    async def ask_one(number: int) -> None:
        async with slots:
            began = time.perf_counter()
            await ask(number)
            seconds.append(time.perf_counter() - began)

    cpu, began = cpu_seconds(), time.perf_counter()
    await asyncio.gather(*map(ask_one, range(count)))
    wall = time.perf_counter() - began
    return median(seconds), (cpu_seconds() - cpu) / count, count / wall


async def load(scenario: Scenario, concurrency: int, rounds: int) -> LoadFigures:
    count = max(8, rounds * concurrency)
    engine, walker = Scripted(scenario), Scripted(scenario)
    engines = Engines(Agents("scripted", engine, engine, engine), engine, Sandbox())
    settings = Settings(concurrency=concurrency)
    errors: list[str] = []

    async def ask(number: int) -> None:
        trace = await answer_question(f"{scenario.name} {number}?", engines, settings)
        if trace.error:
            errors.append(trace.error.message)

    try:
        await asyncio.gather(*map(ask, range(-concurrency, 0)))  # starts the sandbox processes
        engine.calls = 0
        errors.clear()
        wall, cpu, rate = await measure(ask, count, concurrency)
    finally:
        await engines.aclose()
    base, base_cpu, base_rate = await measure(lambda _: walk(scenario, walker), count, concurrency)
    return LoadFigures(
        scenario.name, concurrency, engine.calls / count, wall / scenario.path, base / scenario.path,
        1000 * cpu, 1000 * base_cpu, rate, base_rate, len(errors), errors[-1] if errors else "",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Versus:
    """Figure and its baseline."""

    what: str
    unit: str
    ours: float
    baseline: str
    theirs: float

    @property
    def ratio(self) -> float:
        return self.ours / self.theirs


class Writer:
    """Chat model that always writes the same text, at the speed of `TOKENS`."""

    name = "writer"

    def __init__(self, text: str) -> None:
        self._text = text

    async def complete(self, messages: Sequence[Message], sampling: Sampling = SAMPLING) -> Reply:
        return await self.stream(messages, sampling, lambda _: None)

    async def stream(self, messages: Sequence[Message], sampling: Sampling, on_text: Callable[[str], None]) -> Reply:
        began = time.perf_counter()
        for number, start in enumerate(range(0, len(self._text), 4), start=1):
            await asyncio.sleep(max(0.0, began + number / TOKENS - time.perf_counter()))
            on_text(self._text[start : start + 4])
        return Reply(self._text)

    async def aclose(self) -> None:
        """Do nothing."""


async def streaming_gain(scenario: Scenario, questions: int = 4) -> Versus:
    """Return the median seconds per question with and without streaming. Replies other than programs have 20 tokens.

    Every call that is started early must be used.
    """
    engine = Scripted(scenario, 20 / TOKENS)
    planner = LLMPlanner(Writer(f"```python\n{scenario.program}\n```"), load_prompts(None))
    engines = Engines(Agents("scripted", engine, planner, engine), engine, Sandbox())

    async def seconds(stream: bool) -> float:
        async def ask(number: int) -> None:
            trace = await answer_question(f"{scenario.name} {number}?", engines, Settings(stream=stream))
            assert trace.error is None
            assert trace.usage.unused_calls + trace.usage.unused_retrievals == 0

        await ask(0)  # starts the sandbox
        return (await measure(ask, questions, 1))[0]

    try:
        return Versus(f"streaming, {scenario.name}", "s/question", await seconds(True), "waiting", await seconds(False))
    finally:
        await engines.aclose()


async def sandbox_cost(runs: int = 200) -> list[Versus]:
    """Return the milliseconds of a small program, warm and from a cold start, and without a sandbox."""
    source = 'names = [shout(w) for w in ("a", "b", "c")]\nfinal_answer = ", ".join(names)'

    async def shout(call: Call) -> str:
        return str(call.args[0]).upper()

    sandbox = Sandbox()
    try:
        began = time.perf_counter()
        await sandbox.run(source, {"shout": shout})
        cold = 1000 * (time.perf_counter() - began)
        began = time.perf_counter()
        for _ in range(runs):
            outcome = await sandbox.run(source, {"shout": shout})
            assert outcome.value == "A, B, C"
        warm = 1000 * (time.perf_counter() - began) / runs
    finally:
        await sandbox.aclose()
    bare = _bare_exec(source, 20 * runs)
    return [
        Versus("sandbox, warm", "ms/run", warm, "exec() in this process", bare),
        Versus("sandbox, first run", "ms/run", cold, "exec() in this process", bare),
    ]


def _bare_exec(source: str, runs: int) -> float:
    began = time.perf_counter()
    for _ in range(runs):
        exec(compile(source, "program", "exec"), {"shout": str.upper})  # noqa: S102 - our own text, as the baseline
    return 1000 * (time.perf_counter() - began) / runs


async def retrieval_rate(rounds: int = 20) -> Versus:
    """Return the queries per second over the bundled corpus, top-5, in sequence."""
    queries = [question.question for name in default_sets(None) for question in open_set(name, None).questions]
    retriever = BundledRetriever()
    await retriever.retrieve("warm up", 5)
    began = time.perf_counter()
    for _ in range(rounds):
        for query in queries:
            await retriever.retrieve(query, 5)
    ours = rounds * len(queries) / (time.perf_counter() - began)
    return Versus("BM25, bundled corpus", "queries/s", ours, "bare tantivy", _bare_tantivy(queries, rounds))


def _bare_tantivy(queries: Sequence[str], rounds: int) -> float:
    import tantivy

    schema = tantivy.SchemaBuilder()
    for field in ("title", "body"):
        schema.add_text_field(field, stored=True, tokenizer_name="en_stem")
    index = tantivy.Index(schema.build())
    writer = index.writer(15_000_000, 1)
    for passage in bundled_passages():
        writer.add_document(tantivy.Document(title=passage.title, body=passage.text))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()
    began = time.perf_counter()
    for _ in range(rounds):
        for query in queries:
            parsed, _errors = index.parse_query_lenient(query, ["title", "body"])
            hits = searcher.search(parsed, 5, count=False).hits
            _texts = [searcher.doc(address)["body"] for _score, address in hits]
    return rounds * len(queries) / (time.perf_counter() - began)


def load_table(loads: Sequence[LoadFigures]) -> Table:
    header = (
        "scenario", "at once", "calls", "wall / path", "walker", "CPU ms", "walker", "ratio", "questions/s", "walker",
        "ratio", "failed",
    )  # fmt: skip
    return Table(header, [_load_cells(figures) for figures in loads])


def _load_cells(figures: LoadFigures) -> list[str]:
    level = [figures.scenario, str(figures.concurrency)]
    if figures.failed:
        return [*level, *["–"] * 9, str(figures.failed)]
    return [
        *level, f"{figures.calls:.1f}", f"{figures.ratio:.2f}", f"{figures.walker_ratio:.2f}", f"{figures.cpu_ms:.1f}",
        f"{figures.walker_cpu_ms:.1f}", f"{figures.cpu_ms / figures.walker_cpu_ms:.1f}", f"{figures.per_second:.1f}",
        f"{figures.walker_per_second:.1f}", f"{figures.per_second / figures.walker_per_second:.2f}", "0",
    ]  # fmt: skip


def versus_table(comparisons: Sequence[Versus]) -> Table:
    rows = [
        [figure.what, figure.baseline, figure.unit, f"{figure.ours:.3g}", f"{figure.theirs:.3g}", f"{figure.ratio:.3g}"]
        for figure in comparisons
    ]
    return Table(("what", "baseline", "unit", "ours", "theirs", "ratio"), rows, left=3)


async def run(levels: Sequence[int], rounds: int) -> tuple[list[LoadFigures], list[Versus]]:
    loads = [await load(scenario, level, rounds) for scenario in SCENARIOS for level in levels]
    streaming = [await streaming_gain(scenario) for scenario in SCENARIOS]
    return loads, [*streaming, *await sandbox_cost(), await retrieval_rate()]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--concurrency", default=",".join(map(str, LEVELS)), help="questions at once, with commas")
    parser.add_argument("--rounds", type=int, default=2, help="questions for each one at once")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    levels = [int(level) for level in options.concurrency.split(",")]
    loads, others = asyncio.run(run(levels, options.rounds))
    if options.json:
        content: dict[str, Any] = {"load": [*map(asdict, loads)], "versus": [*map(asdict, others)]}
        print(json.dumps(content))
        return
    print(f"{1000 * MODEL:g} ms a model call, {1000 * RETRIEVER:g} ms a retrieval; path: the longest chain of waits\n")
    print(load_table(loads))
    for error in dict.fromkeys(figures.error for figures in loads if figures.error):
        print(f"\nfailed with: {error}")
    print(f"\n{versus_table(others)}")


if __name__ == "__main__":
    guarded(main)
