"""`pyrag evolve`: learns with a progress bar and a summary, and shows differences between versions of the prompts."""

from __future__ import annotations

from pathlib import Path

from pyrag.cli.output import print_json
from pyrag.cli.views.bar import ProgressBar
from pyrag.evolve.config import EvolveConfig
from pyrag.evolve.learning import LearningLimits, LearningSummary, evolve
from pyrag.evolve.prompt_versions import PromptVersions
from pyrag.evolve.questions import split
from pyrag.evolve.step_records import StepRecord
from pyrag.settings import Settings
from pyrag.trace.words import counted


def learn(
    train: Path,
    out: Path,
    validation: str,
    settings: Settings,
    config: EvolveConfig,
    limits: LearningLimits,
    *,
    limit: int | None,
    seed: int,
    as_json: bool,
) -> None:
    """Learn from questions, and print the summary.

    Args:
        train: File of the questions.
        out: Folder of the run.
        validation: File of validation questions, or their share of `train`, such as "0.2".
        settings: Engines, method and limits of each question.
        config: Settings of the algorithm.
        limits: Calls and tokens of the whole run.
        limit: Maximum number of questions to learn from. None for all.
        seed: Seed of the samples.
        as_json: Whether to print the summary as one JSON line.
    """
    questions = split(train, validation, limit=limit, seed=seed)
    with ProgressBar(len(questions.train) * config.epochs, 0, "learning", "measuring the start") as bar:

        def show(record: StepRecord) -> None:
            score, calls = f"validation F1 {100 * record.score:.1f}", counted(record.calls, "call")
            bar.show(record.step, "learning", f"{score} · prompts {record.version} · {calls}")

        summary = evolve(out, questions, settings, config, limits, show)
    _print(summary, out, config, as_json=as_json)


def _print(summary: LearningSummary, out: Path, config: EvolveConfig, *, as_json: bool) -> None:
    if as_json:
        print_json(summary)
        return
    cost = (
        f"{counted(summary.calls, 'call')}, {counted(summary.tokens, 'token')}"
        if summary.calls
        else "no model was asked"
    )
    print(f"{summary.steps} of {counted(summary.of, 'question')} learned from, {cost}")
    if config.topologies:
        print("learned which topologies suit which questions; the prompts stay as they are")
    if summary.stopped:
        print(f"stopped early: {summary.stopped}; run the same command to continue")
    if summary.before is not None and summary.after is not None:
        print(f"validation F1 {100 * summary.before:.1f} → {100 * summary.after:.1f}")
    results = f"{counted(summary.entries, 'experience')}, prompts version {summary.version}"
    print(f"{counted(summary.accepted, 'update')} accepted, {summary.refused} refused; {results}")
    print(
        f"{out}/report.html shows all; ask with --method hera --prompts {out}/prompts --experience {out}/experience.db"
    )


def show_difference(run: Path, old: int | None, new: int | None) -> None:
    """Print the difference between two versions of a run's prompts.

    Args:
        run: Folder of the run.
        old: Version to compare from. None for the version before `new`.
        new: Version to compare to. None for the current version.
    """
    versions = PromptVersions(run)
    new = versions.current() if new is None else new
    old = max(new - 1, 0) if old is None else old
    print(versions.difference(old, new).rstrip("\n") or f"versions {old} and {new} are the same")
