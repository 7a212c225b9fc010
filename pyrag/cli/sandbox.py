"""`pyrag sandbox check`: verdicts on a program, or on a suite of labelled programs."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyrag.cli.output import print_json
from pyrag.errors import ConfigError, DataError, ServiceError, nearest
from pyrag_helpers import MODULE
from pyrag_sandbox import Call, Primitive, PrimitiveError, SandboxError, bind
from pyrag_sandbox.host.check import MODES, Judgement, Mode, Sample, Summary, judge, load, summarise


def check(file: Path, mode: str, *, as_json: bool) -> None:
    """Print a verdict per program; exit with code 1 if a labelled suite does not pass.

    Args:
        file: Program, or `.jsonl` suite of programs.
        mode: Layers to test: "both", "policy" or "kernel".
        as_json: Print JSON lines instead.

    Raises:
        ConfigError: The mode is unknown.
        DataError: The file cannot be read.
        ServiceError: The sandbox cannot be used.
    """
    if mode not in MODES:
        raise ConfigError(f"there is no mode {mode!r}{nearest(mode, MODES)}")
    chosen: Mode = next(item for item in MODES if item == mode)
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
    async for judgement in judge(_samples(file), primitives=STUBS, mode=mode, helpers=MODULE):
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


# Primitives of the programs that are checked

_MAX_QUERY_BYTES = 8 * 1024


def _text(name: str, value: Any) -> str:
    if type(value) is not str:
        raise PrimitiveError(f"{name} must be text, not {type(value).__name__}", "TypeError")
    if len(value.encode()) > _MAX_QUERY_BYTES:
        raise PrimitiveError(f"{name} is longer than {_MAX_QUERY_BYTES} bytes")
    return value


async def retrieve(call: Call) -> list[str]:
    """Return made-up results, as the stub of `retrieve(query: str, topk: int = 5) -> list`."""
    values = bind(call, ("query", "topk"), {"topk": 5})
    query = _text("query", values["query"])
    topk = values["topk"]
    if type(topk) is not int:
        raise PrimitiveError(f"topk must be a whole number, not {type(topk).__name__}", "TypeError")
    if not 1 <= topk <= 100:
        raise PrimitiveError("topk must be between 1 and 100")
    return [f"document {number} about {query[:100]}" for number in range(topk)]


async def answer(call: Call) -> str:
    """Return a made-up result, as the stub of `answer(query: str, docs: list | None = None) -> str`."""
    values = bind(call, ("query", "docs"), {"docs": None})
    _text("query", values["query"])
    docs = values["docs"]
    if docs is not None and not (isinstance(docs, (list, tuple)) and all(type(doc) is str for doc in docs)):
        raise PrimitiveError("docs must be a list of documents", "TypeError")
    return "1969"


STUBS: Mapping[str, Primitive] = {"retrieve": retrieve, "answer": answer}
