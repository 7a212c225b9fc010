"""Runner of checks over a case, with a result for each check."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

Case = TypeVar("Case")
CheckOf = Callable[[Case], Awaitable[None]]
MAX_SECONDS = 60.0  # time limit of a check


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Result of a check; `problem` is empty if it passed."""

    check: str
    problem: str = ""

    @property
    def passed(self) -> bool:
        """True if the check found no problem."""
        return not self.problem


async def findings(checks: Sequence[CheckOf[Case]], case: Case, *, seconds: float = MAX_SECONDS) -> list[CheckResult]:
    """Run checks one after another, and return a result for each.

    Args:
        checks: Checks, such as `RETRIEVER_CHECKS`.
        case: Object to check, with its examples.
        seconds: Time limit of a check, in seconds.
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
    except Exception as error:  # raised by the object under test
        return CheckResult(name, f"it raised {type(error).__name__}: {error}")
    return CheckResult(name)


async def assert_all(checks: Sequence[CheckOf[Case]], case: Case, *, seconds: float = MAX_SECONDS) -> None:
    """Run checks and raise `AssertionError` with all problems.

    Args:
        checks: Checks, such as `RETRIEVER_CHECKS`.
        case: Object to check, with its examples.
        seconds: Time limit of a check, in seconds.
    """
    failed = [result for result in await findings(checks, case, seconds=seconds) if not result.passed]
    if failed:
        raise AssertionError("\n".join(f"{result.check}: {result.problem}" for result in failed))


def expect(condition: object, problem: str) -> None:
    """Raise `AssertionError` if a condition is false, even if Python runs without `assert` statements.

    Args:
        condition: Condition that must be true.
        problem: Message if it is not.
    """
    if not condition:
        raise AssertionError(problem)


def shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:99]}…"
