"""Normal form of questions: without polite phrases, with a capital letter and a question mark."""

from __future__ import annotations

import re

_WH = r"(?=(?:who|whom|whose|what|which|when|where|why|how|in|on|at|by|if|whether|the name)\b)"
_COURTESY = re.compile(
    r"(?:(?:hi|hello|hey)(?: there)?[,!.]\s+|please[,:]?\s+"
    r"|(?:can|could|would|will) you (?:please )?(?:tell|remind|show) me[,:]?\s+(?:please[,:]?\s+)?"
    rf"|do you (?:happen to )?know[,:]?\s+{_WH}|(?:i'd|i would) like to know[,:]?\s+{_WH}"
    rf"|i (?:want|need) to know[,:]?\s+{_WH}"
    rf"|i wonder[,:]?\s+{_WH}|(?:please )?tell me[,:]?\s+{_WH}|so[,:]\s+|ok(?:ay)?[,:]\s+)",
    re.IGNORECASE,
)
_THANKS = re.compile(r"[,;.!?\s]+(?:please|thanks|thank you|thx)(?: (?:in advance|very much))?[.!?\s]*$", re.IGNORECASE)
_WHETHER = re.compile(r"(?:if|whether)\s+", re.IGNORECASE)


def plain_question(question: str) -> str:
    """Return a question without polite phrases and extra blanks, starting with a capital and ending with "?".

    Args:
        question: Question as the user typed it. "X >> relation" and "Given: …" are returned unchanged.
    """
    if ">>" in question or question.lstrip().lower().startswith("given"):
        return question
    text = " ".join(question.split())
    while courtesy := _COURTESY.match(text):
        text = text[courtesy.end() :]
    text = _THANKS.sub("", text).rstrip(" ?!.…")
    if not text:
        return question
    if whether := _WHETHER.match(text):
        text = f"Is it true that {text[whether.end() :]}"
    return f"{text[:1].upper()}{text[1:]}?"
