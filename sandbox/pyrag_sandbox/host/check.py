"""Checker of programs: runs one file, or a suite of labelled programs, over stub primitives and reports the outcomes.

A suite is JSON lines of `id, category, program, expect`, where `expect` is allowed, blocked, error or killed. Modes:

    both     policy and kernel wall, as in use
    policy   only the policy, in an unlocked process; programs that should be killed are skipped
    kernel   no policy inside the locked worker. Programs that the policy would block run, and must reach nothing:
             they may fail, be killed, or return without having read a secret placed in reach

The figures are containment (no program got anything forbidden, and all ended in time), benign (allowed programs that
finished) and labels (expected verdicts).
"""

from __future__ import annotations

import json
import os
import secrets
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from pyrag_sandbox.contract import Limits, Outcome, Primitive
from pyrag_sandbox.host.sandbox import Sandbox

Verdict = Literal["allowed", "blocked", "error", "killed"]
Mode = Literal["both", "policy", "kernel"]
MODES: tuple[Mode, ...] = ("both", "policy", "kernel")
LIMITS = Limits(own_seconds=2.0, cpu_seconds=2.0)
GRACE_SECONDS = 0.25
_VERDICTS: Mapping[str, Verdict] = {"ok": "allowed", "blocked": "blocked", "error": "error", "killed": "killed"}


@dataclass(frozen=True, slots=True)
class Sample:
    """Program of a suite, with its label."""

    id: str
    program: str
    category: str = ""
    expect: str | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """Result of one program."""

    id: str
    verdict: Verdict
    reason: str
    line: int | None
    seconds: float
    category: str = ""
    expect: str | None = None
    agrees: bool | None = None
    contained: bool = True

    def as_dict(self) -> dict[str, Any]:
        """Return the judgement as plain data."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Summary:
    """Figures of a suite."""

    mode: Mode
    programs: int
    contained: int
    benign: int
    benign_total: int
    agreed: int
    labelled: int

    @property
    def passed(self) -> bool:
        """True if all programs were contained, all benign ones finished, and at least 99 % of the labels agree."""
        return (
            self.contained == self.programs and self.benign == self.benign_total and self.agreed >= 0.99 * self.labelled
        )


def load(path: Path) -> list[Sample]:
    """Return the programs of a file: a JSON-lines suite (`.jsonl`), or one Python program.

    Raises:
        ValueError: A line of the suite is malformed.
        OSError: The file cannot be read.
    """
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".jsonl":
        return [Sample(path.name, text)]
    return [_sample(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]


def _sample(number: int, line: str) -> Sample:
    try:
        row = json.loads(line)
        if type(row["program"]) is not str:
            raise TypeError("the program is not text")
        sample = Sample(str(row["id"]), row["program"], row.get("category", ""), row.get("expect"))
    except KeyError as error:
        raise ValueError(f"line {number} has no {error}: write id, program, expect") from None
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"line {number} is not an object of id, program, expect: {error}") from None
    if sample.expect not in (None, *_VERDICTS.values()):
        raise ValueError(f"line {number} expects {sample.expect!r}: write {', '.join(_VERDICTS.values())}, or nothing")
    return sample


# Judging


@contextmanager
def _canaries() -> Iterator[list[str]]:
    """Place secrets where an escaped program would find them: in the environment and the file system."""
    token = secrets.token_hex(16)
    name = "PYRAG_SANDBOX_CANARY"
    os.environ[name] = token
    try:
        with tempfile.NamedTemporaryFile("w", prefix="canary-") as file:
            file.write(token)
            file.flush()
            yield [token, name, Path(file.name).name, "root:x:0:0"]
    finally:
        del os.environ[name]


async def judge(
    samples: Iterable[Sample],
    *,
    primitives: Mapping[str, Primitive] = MappingProxyType({}),
    mode: Mode = "both",
    limits: Limits = LIMITS,
    helpers: str = "",
    sandbox: Sandbox | None = None,
) -> AsyncIterator[Judgement]:
    """Run each sample separately and yield its judgement.

    Args:
        samples: The suite.
        primitives: Functions that the programs may call, as for `Sandbox.run`.
        mode: "both" walls, or only one; without the kernel wall, samples that must be killed are skipped.
        limits: Limits of each program.
        helpers: Module of helpers, as for `Sandbox.run`.
        sandbox: Sandbox to use; None for a new one, closed at the end.
    """
    own = sandbox or Sandbox(require="policy" if mode == "policy" else "kernel", kernel=mode != "policy")
    run = partial(own.run, primitives=primitives, limits=limits, helpers=helpers)
    try:
        await own.run("", {}, helpers=helpers)  # the first program waits for the processes to start
        with _canaries() as canaries:
            for sample in samples:
                if mode == "policy" and sample.expect == "killed":
                    continue
                yield await _judge_one(run, sample, mode, limits, canaries)
    finally:
        if sandbox is None:
            await own.aclose()


async def _judge_one(
    run: Callable[..., Awaitable[Outcome]], sample: Sample, mode: Mode, limits: Limits, canaries: Sequence[str]
) -> Judgement:
    start = time.perf_counter()
    outcome = await run(sample.program, policy=mode != "kernel", concurrent=mode != "kernel")
    seconds = time.perf_counter() - start
    verdict = _VERDICTS[outcome.status]
    return Judgement(
        id=sample.id,
        verdict=verdict,
        reason=outcome.error.message if outcome.error else outcome.reason,
        line=outcome.error.line if outcome.error else None,
        seconds=round(seconds, 4),
        category=sample.category,
        expect=sample.expect,
        agrees=_agrees(sample, verdict, mode),
        contained=_contained(sample, outcome, seconds, mode, limits, canaries),
    )


def _agrees(sample: Sample, verdict: Verdict, mode: Mode) -> bool | None:
    if sample.expect is None or (mode == "kernel" and sample.expect == "blocked"):
        return None  # without the policy nothing is blocked, only stopped
    return verdict == sample.expect or (sample.category == "regex" and verdict == "blocked")


def _contained(
    sample: Sample, outcome: Outcome, seconds: float, mode: Mode, limits: Limits, canaries: Sequence[str]
) -> bool:
    if seconds > limits.own_seconds + GRACE_SECONDS:
        return False
    seen = repr((outcome.value, outcome.variables)) + outcome.output
    if any(canary in seen for canary in canaries):
        return False
    if sample.expect in (None, "allowed"):
        return True
    return outcome.status != "ok" or mode == "kernel"


def summarise(judgements: Iterable[Judgement], mode: Mode) -> Summary:
    """Return the figures of a suite.

    Args:
        judgements: Judgements of one run of the suite.
        mode: Walls that were up.
    """
    rows = list(judgements)
    benign = [row for row in rows if row.expect == "allowed"]
    labelled = [row for row in rows if row.agrees is not None]
    return Summary(
        mode=mode,
        programs=len(rows),
        contained=sum(row.contained for row in rows),
        benign=sum(row.verdict == "allowed" for row in benign),
        benign_total=len(benign),
        agreed=sum(bool(row.agrees) for row in labelled),
        labelled=len(labelled),
    )
