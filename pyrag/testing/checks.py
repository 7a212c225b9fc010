"""Running checks: all of them over one case, each with its outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

Case = TypeVar("Case")
CheckOf = Callable[[Case], Awaitable[None]]
MAX_SECONDS = 60.0  # of one check


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The outcome of one check; `problem` is empty where it passed."""

    check: str
    problem: str = ""

    @property
    def passed(self) -> bool:
        """True if the check found no problem."""
        return not self.problem


async def findings(checks: Sequence[CheckOf[Case]], case: Case, *, seconds: float = MAX_SECONDS) -> list[CheckResult]:
    """Run checks one after another, and return an outcome for each.

    Args:
        checks: `RETRIEVER_CHECKS`, say, or some of them.
        case: What they check.
        seconds: Time of one check.
    """
    return [await _result(check, case, seconds) for check in checks]


async def _result(check: CheckOf[Case], case: Case, seconds: float) -> CheckResult:
    name = getattr(check, "__name__", str(check))
    try:
        async with asyncio.timeout(seconds):
            await check(case)
    except AssertionError as error:
        return CheckResult(name, str(error) or "it failed")
    except TimeoutError:
        return CheckResult(name, f"it did not end within {seconds:g} s")
    except Exception as error:  # of the object that is checked
        return CheckResult(name, f"it raised {type(error).__name__}: {error}")
    return CheckResult(name)


async def assert_all(checks: Sequence[CheckOf[Case]], case: Case, *, seconds: float = MAX_SECONDS) -> None:
    """Run checks and raise `AssertionError` with all problems.

    Args:
        checks: `RETRIEVER_CHECKS`, say, or some of them.
        case: What they check.
        seconds: Time of one check.
    """
    failed = [one for one in await findings(checks, case, seconds=seconds) if not one.passed]
    if failed:
        raise AssertionError("\n".join(f"{one.check}: {one.problem}" for one in failed))


def expect(condition: object, problem: str) -> None:
    """Raise `AssertionError` with a sentence, also where Python leaves `assert` statements out.

    Args:
        condition: What must hold.
        problem: The sentence, if it does not.
    """
    if not condition:
        raise AssertionError(problem)


def shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:99]}…"
