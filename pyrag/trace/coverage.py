"""Coverage of a call of `each`, in numbers and in words."""

from __future__ import annotations

from dataclasses import dataclass

_SHOWN_ITEMS = 5  # names of missing items in a sentence


@dataclass(frozen=True, slots=True)
class Coverage:
    """Coverage of a call of `each`: how many of its items have an answer.

    Attributes:
        unknown: Number of items whose answer is unknown.
        weak: Number of answers with a confidence below `MIN_CONFIDENCE`.
        confidence: Lowest confidence of the answers, or None without confidences.
        missing: Number of items that were skipped because of a limit.
        what: Word for the items: "documents" or "items".
        reason: Reason why items are missing.
        unknown_items: Names of the first items with an unknown answer.
        missing_items: Names of the first missing items.
        weak_items: Names of the first items with a weak answer.
    """

    total: int
    answered: int
    unknown: int = 0
    missing: int = 0
    what: str = "items"
    reason: str = ""
    unknown_items: tuple[str, ...] = ()
    missing_items: tuple[str, ...] = ()
    weak: int = 0
    weak_items: tuple[str, ...] = ()
    confidence: float | None = None

    @property
    def complete(self) -> bool:
        """True if no item is missing."""
        return not self.missing

    def __str__(self) -> str:
        text = f"{self.answered:,} of {self.total:,} {self.what} answered, {self.unknown:,} unknown"
        if self.missing:
            names = ", ".join(self.missing_items[:_SHOWN_ITEMS])
            more = f" and {self.missing - _SHOWN_ITEMS:,} more" if self.missing > _SHOWN_ITEMS else ""
            text += f", {self.missing:,} not reached ({self.reason}): {names}{more}"
        return f"{text}; {self.weak_answers}" if self.weak else text

    @property
    def weak_answers(self) -> str:
        """Number of weak answers in words."""
        return f"{self.weak:,} of {self.answered:,} answers {'is' if self.weak == 1 else 'are'} weak"
