"""`pyrag train data` and `prescore`: training sets from data sets and runs, candidate plans."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pyrag.cli import options
from pyrag.cli.bench.app import names
from pyrag.cli.output import print_json
from pyrag.settings import Settings
from pyrag.trace.words import counted

if TYPE_CHECKING:
    from pyrag_rl.data.build import BuildCounts, Request


_LIMITS = {
    False: "a training run leaves out what exceeds its prompt_tokens",
    True: "with its reply, a training run leaves out what exceeds prompt_tokens + response_tokens",
}


@options.with_settings("llm", "decompose_llm", "topk", "prompts", "concurrency")
def data(
    settings: Settings,
    tasks: Annotated[
        list[str],
        typer.Argument(
            metavar="TASK...",
            help="answer, rag (whole questions), synthesis (answers without documents), plan, joint (sub-queries and "
            "program in one reply), "
            "decompose; OPERA's goals, analysis, rewrite.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Parquet file to write; an interrupted one is continued.")],
    folder: Annotated[Path | None, typer.Option("--data", help="Folder with one subfolder per set.")] = None,
    sets: Annotated[
        list[str] | None, typer.Option("--sets", help="Names of sets, separated by commas. Repeatable.")
    ] = None,
    split: Annotated[str, typer.Option(help="Questions of a set: train, or empty for its only ones.")] = "train",
    from_run: Annotated[
        list[Path] | None, typer.Option("--from-run", help="Run of pyrag bench. Repeatable.", show_default=False)
    ] = None,
    decompositions: Annotated[
        Path | None,
        typer.Option(help="Folder of questions with gold sub-questions (not for OPERA's tasks)."),
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option(
            help="Restrict --decompositions to sources by the beginning of their names, each with an optional maximum: "
            "NAME or NAME=NUMBER. Repeatable.",
            show_default=False,
        ),
    ] = None,
    splits: Annotated[
        str, typer.Option(help="Splits of --decompositions, separated by commas; empty for all.")
    ] = "train,none",
    single_share: Annotated[
        float,
        typer.Option(
            help="Share of --decompositions to add as questions that one search answers (their first step).",
            min=0,
            max=1,
        ),
    ] = 0.0,
    repair_share: Annotated[
        float,
        typer.Option(help="Share of --decompositions to add as failing programs with their repair.", min=0, max=1),
    ] = 0.0,
    repeat_rare: Annotated[
        int,
        typer.Option(help="Maximum times to repeat a row whose kind of question is rare in its source.", min=1),
    ] = 1,
    nested_share: Annotated[
        float,
        typer.Option(
            help="Share of --decompositions to add with a description in place of a name, which takes one more search. "
            "Not for answers.",
            min=0,
            max=1,
        ),
    ] = 0.0,
    planned: Annotated[
        int,
        typer.Option(
            help="Questions without sub-questions to add from MuSiQue, and from R1-Searcher; the embedded planner "
            "finds their steps. Not for answers.",
            min=0,
        ),
    ] = 0,
    method: Annotated[list[str] | None, typer.Option("--method", help="Restrict runs to these methods.")] = None,
    sft: Annotated[
        bool,
        typer.Option(
            "--sft",
            help="Write examples: prompts with right replies, from gold labels or right answers.",
        ),
    ] = False,
    eval_out: Annotated[Path | None, typer.Option(help="Parquet file for the questions of --eval-share.")] = None,
    eval_share: Annotated[
        float, typer.Option(help="Share of the questions to evaluate on (0 to 1).", min=0, max=1)
    ] = 0.0,
    held_out: Annotated[
        list[Path] | None,
        typer.Option(help="Held-out questions: a set, a run or a Parquet file. Repeatable.", show_default=False),
    ] = None,
    leave_out: Annotated[
        bool, typer.Option("--leave-out", help="Skip held-out questions instead of refusing them.")
    ] = False,
    depths: Annotated[
        str, typer.Option(help="Numbers of passages in a prompt; each question gets one of them.")
    ] = "3,5,8,10",
    limit: Annotated[int | None, typer.Option(help="Questions per set.", min=1)] = None,
    several_share: Annotated[
        float, typer.Option(help="Share of answer rows with several passages, one of them gold.")
    ] = 0.2,
    unknown_share: Annotated[float, typer.Option(help="Share of answer rows whose passages lack the answer.")] = 0.1,
    max_row_tokens: Annotated[
        int | None, typer.Option(help="Maximum length of a row, estimated as bytes / 4.", min=1, show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the samples.")] = 0,
    corpus: Annotated[list[Path] | None, typer.Option(help="Documents for sets without a corpus. Repeatable.")] = None,
    index: Annotated[str | None, typer.Option(help="Index folder for sets without a corpus.")] = None,
    retriever: Annotated[str | None, typer.Option(help="URL of a /retrieve server for all sets.")] = None,
    index_dir: Annotated[Path, typer.Option(help="Folder for the indexes of corpora.")] = Path("runs/indexes"),
    json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
) -> None:
    """Write a training set from the prompts that the agents send."""
    from pyrag.evaluation.datasets.suite import PassageOptions
    from pyrag_rl.data.answer_readings import ReadingMix
    from pyrag_rl.data.build import Request, build
    from pyrag_rl.data.decompositions.gold_examples import GoldRequest

    mix = ReadingMix(several=several_share, unknown=unknown_share, tokens=max_row_tokens, seed=seed)
    gold = None if decompositions is None else GoldRequest(
        folder=decompositions, splits=names([splits]), sources=source or (), seed=seed,
        repairs=repair_share, singles=single_share, repeats=repeat_rare, nested=nested_share, planned=planned,
        mix=mix, concurrency=settings.concurrency,
    )  # fmt: skip
    request = Request(
        tasks=names(tasks), out=out, data=folder, sets=names(sets), split=split, runs=from_run or (),
        decompositions=gold, methods=names(method), limit=limit, max_tokens=max_row_tokens, seed=seed,
        depths=_numbers(depths), held_out=held_out or (), leave_out=leave_out, eval_out=eval_out,
        eval_share=eval_share, sft=sft, mix=mix,
        passages=PassageOptions(tuple(corpus or ()), Path(index) if index else None, retriever, index_dir),
        settings=settings,
    )  # fmt: skip
    with _progress(lambda built: f"questions {built.questions} · rows {built.by_source.total()}") as tell:
        built = build(request, tell)
    _print(request, built, as_json=json)


def _numbers(text: str) -> tuple[int, ...]:
    from pyrag.errors import UsageError

    try:
        return tuple(int(number) for number in text.split(","))
    except ValueError:
        raise UsageError(f"--depths takes numbers with commas, such as 3,5,8,10, not {text!r}") from None


@contextmanager
def _progress(line: Callable[[Any], str]) -> Iterator[Callable[[Any], None]]:
    """Show a line about the progress on stderr, but only on a terminal."""
    from pyrag.cli.views.live import SafeConsole

    console = SafeConsole(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    with console.status("") as status:
        yield lambda counts: status.update(line(counts))


def _print(request: Request, built: BuildCounts, *, as_json: bool) -> None:
    if as_json:
        import msgspec

        print_json({"out": str(request.out), **msgspec.to_builtins(built)})
        return
    aside = f", {built.eval_rows} in {request.eval_out}" if request.eval_out else ""
    print(f"{counted(built.rows, 'row')} in {request.out}{aside}, from {counted(built.questions, 'question')}")
    print("by set: " + ", ".join(f"{name} {count}" for name, count in built.by_source.items()))
    if built.sufficient:
        print("documents: " + ", ".join(f"{name} {count}" for name, count in built.sufficient.items()))
    if built.passages:
        print("prompts: " + ", ".join(f"{count} with {kind}" for kind, count in built.passages.items()))
    if built.mended:
        print(f"mended: {counted(built.mended, 'program')}, which now search for the query that they ask")
    if built.dropped:
        print("left out: " + ", ".join(f"{count} {why}" for why, count in built.dropped.items()))
    print(f"longest prompt: about {built.longest} tokens ({_LIMITS[request.sft]})")
    print(
        "held out: " + (", ".join(built.held_out) or "nothing"), file=sys.stderr if not built.held_out else sys.stdout
    )


@options.with_settings("llm", "rewrite_llm", *options.SOURCE, "topk", "concurrency")
def prescore(
    settings: Settings,
    rows: Annotated[Path, typer.Argument(help="Parquet file of pyrag train data goals.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="File of candidates; an existing one is continued.")],
    author: Annotated[str | None, typer.Option(help="Model that writes the plans, such as openai:MODEL@URL.")] = None,
    completions: Annotated[
        Path | None, typer.Option(help="File of existing plans: JSON lines with source, id and completion.")
    ] = None,
    count: Annotated[int, typer.Option(help="Plans per question (paper: 10 to 15).", min=1)] = 12,
    temperature: Annotated[float, typer.Option(help="Sampling temperature of all plans but the first.", min=0)] = 0.8,
    near: Annotated[
        float, typer.Option(help="Minimum cosine of two plans to count as duplicates.", min=0, max=1)
    ] = 0.85,
    embedder: Annotated[
        str, typer.Option(help="Embedder of that cosine: bundled, onnx:DIR, st:NAME or openai:MODEL@URL.")
    ] = ("bundled"),
    json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
) -> None:
    """Write, run and score candidate plans. MAPGRPO reads them (its setting prescored)."""
    import asyncio

    from pyrag.errors import UsageError
    from pyrag.llm.cache import CachedChat
    from pyrag.llm.spec import open_chat_model
    from pyrag.retrieval.embedders.embedding import open_embedder
    from pyrag.runtime.role_agents import model_options
    from pyrag.settings import public
    from pyrag_rl.config import make_config
    from pyrag_rl.mapgrpo.candidates import Counts, Drawn, plan_rows, prescore, recorded, stored_replies
    from pyrag_rl.rewards.environment import RewardEnvironment

    if (author is None) == (completions is None):
        raise UsageError("name where plans come from: --author MODEL or --completions FILE")
    made, replies = plan_rows(rows), stored_replies(out)

    def written_by(spec: str) -> Drawn:
        model = open_chat_model(spec, model_options(settings))
        return Drawn(CachedChat(model, replies), count, temperature)

    async def work(tell: Callable[[Counts], None]) -> Counts:
        writer = written_by(author) if author else recorded(completions or Path())
        chosen = make_config({"agent": "plan", "algorithm": "mapgrpo", "runtime": public(settings)})
        frozen, vectors = RewardEnvironment(chosen), open_embedder(embedder)
        try:
            return await prescore(made, out, writer, frozen, vectors, near=near, tell=tell)
        finally:
            await frozen.aclose()
            await vectors.aclose()
            if isinstance(writer, Drawn):
                await writer.model.aclose()

    with _progress(lambda counts: f"questions {counts.questions} · candidates {counts.stored}") as tell:
        counts = asyncio.run(work(tell))
    if not counts.without:
        replies.remove()
    if json:
        print_json(counts)
        return
    high, middle = (sum(score >= bound for score in counts.scores) for bound in (0.8, 0.4))
    print(f"{counted(counts.stored, 'candidate')} of {counted(counts.questions, 'question')} in {out}")
    print(f"scores: {high} from 0.8, {middle - high} from 0.4, {len(counts.scores) - middle} below")
    print(f"left out: {counted(counts.duplicates, 'near-duplicate')}, {counts.unscored} that could not be run")
    if counts.without:
        print(f"without a candidate: {counted(counts.without, 'question')}, whose plans the same command runs again")
