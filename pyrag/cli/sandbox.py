"""`pyrag sandbox check`: verdicts on one program or on a suite of labelled ones."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from pyrag.cli.output import print_json
from pyrag.errors import ConfigError, DataError, ServiceError, nearest
from pyrag_sandbox import SandboxError
from pyrag_sandbox.host.check import MODES, Judgement, Mode, Sample, Summary, judge, load, summarise


def check(file: Path, mode: str, *, as_json: bool) -> None:
    """Print a verdict per program; exit with code 1 if a labelled suite does not pass.

    Args:
        file: A program, or a `.jsonl` suite.
        mode: "both", "policy" or "kernel".
        as_json: Print JSON lines.

    Raises:
        ConfigError: There is no such mode.
        DataError: The file cannot be read.
        ServiceError: The sandbox cannot be used.
    """
    if mode not in MODES:
        raise ConfigError(f"there is no mode {mode!r}{nearest(mode, MODES)}")
    chosen: Mode = next(one for one in MODES if one == mode)
    try:
        summary = asyncio.run(_judge(file, chosen, as_json))
    except SandboxError as error:
        raise ServiceError(str(error), service="sandbox") from error
    if summary.labelled and not as_json:
        print(
            f"{mode}: contained {summary.contained}/{summary.programs}, "
            f"benign {summary.benign}/{summary.benign_total}, labels {summary.agreed}/{summary.labelled}"
        )
    if summary.labelled and not summary.passed:
        sys.exit(1)


async def _judge(file: Path, mode: Mode, as_json: bool) -> Summary:
    judgements = []
    async for judgement in judge(_samples(file), mode=mode):
        judgements.append(judgement)
        _print(judgement, as_json)
    return summarise(judgements, mode)


def _samples(file: Path) -> list[Sample]:
    try:
        return load(file)
    except OSError as error:
        raise DataError(f"cannot read {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{file} is not UTF-8 text: save it as such") from error
    except ValueError as error:
        raise DataError(f"{file}: {error}") from error


def _print(judgement: Judgement, as_json: bool) -> None:
    if as_json:
        print_json(judgement.as_dict())
        return
    mark = "" if judgement.agrees is not False else f"  (expected {judgement.expect})"
    where = f" line {judgement.line}:" if judgement.line else ""
    print(
        f"{judgement.verdict:8} {judgement.id:24} {judgement.seconds:.3f} s {where} {judgement.reason}{mark}",
        flush=True,
    )
