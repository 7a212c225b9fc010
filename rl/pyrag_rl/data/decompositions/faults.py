"""Programs broken in the way small models break them, used for learning repairs.

Syntax errors are not included: they are repaired within a conversation, and verl's trainer would also learn the broken
reply in it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from pyrag._io.lines import lines_of
from pyrag_rl.data.decompositions.programs import GoldProgram

_ANSWER = re.compile(r"\{a(\d+)\}")
_LAST = re.compile(r"^(?P<indent> *)final_answer = (?P<value>.+)$", re.MULTILINE)
_HELPER = re.compile(r"\b(?:parse_date|same_entity)\(")
_NAMES = ("director", "person", "answer1", "docs", "result")


def _unknown_name(source: str, draw: random.Random) -> str:
    """Return a program in which a later question uses a name that no statement sets."""
    used = list(_ANSWER.finditer(source))
    if not used:
        return source
    reference = draw.choice(used)
    return f"{source[: reference.start()]}{{{draw.choice(_NAMES)}}}{source[reference.end() :]}"


def _lost_step(source: str, draw: random.Random) -> str:
    """Return a program without a step whose answer later steps use."""
    lines = lines_of(source)
    steps = [place for place, line in enumerate(lines) if re.match(r"a\d+ = ", line)]
    del lines[draw.choice(steps)]
    return "\n".join(lines)


def _wrong_result(source: str, _: random.Random) -> str:
    """Return a program whose result is the first answer, so that the last one is not used."""
    return re.sub(r"^final_answer = a\d+$", "final_answer = a1", source, flags=re.MULTILINE)


def _no_result(source: str, _: random.Random) -> str:
    """Return a program that ends before it sets its result."""
    first = _LAST.search(source)
    return source[: first.start()].removesuffix("try:\n").rstrip() if first else source


def _converted(source: str, draw: random.Random) -> str:
    """Return a program that converts an answer in prose to a number."""
    kind = draw.choice(("int", "float"))
    if _HELPER.search(source) is None:
        return re.sub(r"^final_answer = (a\d+)$", rf"final_answer = {kind}(\1)", source, flags=re.MULTILINE)
    plain = re.sub(r"^try:\n    (.+)\nexcept ValueError:\n.+$", r"\1", source, flags=re.MULTILINE)
    return plain.replace("parse_date(", f"{kind}(")


def _attribute(source: str, draw: random.Random) -> str:
    """Return a program that treats an answer as an object or a mapping."""
    end = draw.choice((".answer", ".value", '["answer"]', ".text.strip()"))
    return re.sub(r"^final_answer = (a\d+)$", rf"final_answer = \1{end}", source, flags=re.MULTILINE)


def _unknown_helper(source: str, draw: random.Random) -> str:
    """Return a program that calls a helper that does not exist."""
    return _HELPER.sub(f"{draw.choice(('compare_dates', 'to_date', 'is_same', 'get_year'))}(", source)


FAULTS: dict[str, Callable[[str, random.Random], str]] = {
    "unknown name": _unknown_name,
    "lost step": _lost_step,
    "wrong result": _wrong_result,
    "no result": _no_result,
    "converted": _converted,
    "attribute": _attribute,
    "unknown helper": _unknown_helper,
}


def broken(program: GoldProgram, draw: random.Random) -> str:
    """Return a program with one fault.

    Args:
        program: A correct program.
        draw: Random generator that chooses the fault.
    """
    forms = [made for make in FAULTS.values() if (made := make(program.source, draw)) != program.source]
    return draw.choice(forms)
