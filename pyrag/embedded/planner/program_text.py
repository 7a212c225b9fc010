"""Programs written for readings, with calls of `retrieve` and `answer`.

Text of the question enters a program only inside string literals, which are escaped here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyrag.agents.passages import with_facts
from pyrag.agents.python_text import braced, literal
from pyrag.embedded.planner.meaning import (
    Chain,
    Choice,
    Difference,
    Entity,
    Gather,
    Meaning,
    Node,
    RelationStep,
    Same,
    Shared,
    Verdict,
    Whole,
)
from pyrag.embedded.planner.wording import SLOT, name, search_name, sub_question

TOPK = 5


def whole_program(question: str, topk: int = TOPK) -> str:
    """Return the program that asks a question in one step.

    Args:
        question: Text of the question, which is also the search query.
        topk: Number of passages to retrieve.
    """
    text = literal(question)
    return f"docs = retrieve({text}, topk={topk})\nfinal_answer = answer({text}, docs)\n"


def listed_program(question: str, sub_queries: Sequence[str], topk: int = TOPK) -> str:
    """Return a program with one step per sub-query and a last step that answers from all their answers.

    Args:
        question: Question that the last step answers.
        sub_queries: Sub-queries in order. "#1" to "#99" in a sub-query stand for the answers of earlier ones.
        topk: Number of passages to retrieve per sub-query.
    """
    lines = []
    for number, query in enumerate(sub_queries, start=1):
        text = _referring(query, number)
        lines.append(f"docs_{number} = retrieve({text}, topk={topk})")
        lines.append(f"answer_{number} = answer({text}, docs_{number})")
    facts = "; ".join(f"{braced(query)} {{answer_{number}}}" for number, query in enumerate(sub_queries, start=1))
    lines.append(f'final_answer = answer(f"{with_facts(facts, braced(question))}")')
    return "\n".join(lines) + "\n"


def _referring(query: str, number: int) -> str:
    """Return a sub-query as a literal, with references such as "#1" replaced by variables of earlier answers."""
    parts = re.split(r"#([1-9]\d?)(?!\d)", query)
    texts = [braced(parts[0])]
    for reference, rest in zip(parts[1::2], parts[2::2], strict=True):
        earlier = int(reference) < number
        texts += [f"{{answer_{int(reference)}}}" if earlier else f"#{reference}", braced(rest)]
    return 'f"' + "".join(texts) + '"' if any(text.startswith("{answer_") for text in texts) else literal(query)


def write_program(question: str, meaning: Meaning, topk: int = TOPK) -> str:
    """Return the program of a reading, which ends in an assignment to `final_answer`.

    Args:
        question: The question as the user asked it, for steps that ask it unchanged.
        meaning: Reading of the question.
        topk: Number of passages to retrieve per step.
    """
    return _Writer(question, topk).program(meaning)


def sub_queries(question: str, meaning: Meaning) -> tuple[str, ...]:
    """Return the questions that a reading's program asks, in the program's order. Each can be understood on its own.

    Args:
        question: The question as the user asked it. It is the only sub-query if the reading has no steps.
        meaning: Reading of the question.
    """
    writer = _Writer(question)
    writer.program(meaning)
    return tuple(writer.questions) or (question,)


class _Writer:
    """Program that is being written line by line."""

    def __init__(self, question: str, topk: int = TOPK) -> None:
        self.question = question
        self.topk = topk
        self.lines: list[str] = []
        self.questions: list[str] = []
        self.values: dict[tuple[int, RelationStep], str] = {}  # a step used twice in a branch is asked once
        self.names: set[str] = set()
        self.last_docs = ""

    def program(self, meaning: Meaning) -> str:
        """Write the program of a reading and return it."""
        match meaning:
            case Chain(RelationStep() as node):
                self.lines.append(f"final_answer = {self.value(node)}")
            case Choice():
                self._choice(meaning)
            case Verdict() | Difference() | Same(by="day" | "year") | Shared(by="period"):
                self._compute(meaning)
            case Same():
                self._same(meaning)
            case Shared():
                self._shared(meaning)
            case Gather():
                self._gather(meaning)
            case Chain() | Whole():
                return whole_program(self.question, self.topk)
        return "\n".join(self.lines) + "\n"

    # Steps

    def value(self, node: Node, branch: int = 0) -> str:
        """Write the steps that find a node's value, and return an expression for the value."""
        if isinstance(node, Entity):
            return literal(node.text)
        if (branch, node) not in self.values:
            for arg in node.args:
                self.value(arg, branch)
            self._ask(node, branch)
        return self.values[branch, node]

    def _ask(self, step: RelationStep, branch: int) -> None:
        """Write the search and the `answer` call of a step."""
        variable = self._new_name(step.variable, branch)
        docs = self._new_name("docs_" + step.variable, branch)
        self.lines.append(
            f"{docs} = retrieve({self._text(step.query, step, branch, searching=True)}, topk={self.topk})"
        )
        self.lines.append(f"{variable} = answer({self._text(step.question, step, branch)}, {docs})")
        self.questions.append(sub_question(step))
        self.values[branch, step] = variable
        self.last_docs = docs

    def _new_name(self, base: str, branch: int) -> str:
        """Return a new variable name."""
        wanted = f"{base}_{branch}" if branch else base
        number = 2
        while wanted in self.names:
            wanted = f"{base}_{branch}_{number}" if branch else f"{base}_{number}"
            number += 1
        self.names.add(wanted)
        return wanted

    def _text(self, template: str, step: RelationStep, branch: int, *, searching: bool = False) -> str:
        """Return a template as a literal with its slots filled: names as text, values of earlier steps as variables."""
        variables = any(isinstance(arg, RelationStep) for arg in step.args)
        parts, at = [], 0
        for slot in SLOT.finditer(template):
            parts += [template[at : slot.start()], self._slot(slot[0], step, branch, searching)]
            at = slot.end()
        parts.append(template[at:])
        if not variables:
            return literal("".join(part if isinstance(part, str) else part[0] for part in parts))
        return 'f"' + "".join(self._f_part(part) for part in parts) + '"'

    def _slot(self, slot: str, step: RelationStep, branch: int, searching: bool) -> str | tuple[str]:
        """Return the content of a slot: a name as text, or a tuple with the variable of a step."""
        position = int(slot[1:-1])
        arg = step.args[position] if position < len(step.args) else None
        if isinstance(arg, RelationStep):
            return (self.values[branch, arg],)
        return slot if arg is None else search_name(arg) if searching else name(arg)

    @staticmethod
    def _f_part(part: str | tuple[str]) -> str:
        """Return a part of an f-string: text escaped, or a variable in braces."""
        if isinstance(part, tuple):
            return "{" + part[0] + "}"
        return braced(part)

    # Use of the values

    def _pair(self, values: Sequence[Node]) -> tuple[str, str, str]:
        """Write the steps of two values; return both values' expressions and the passages they were read from."""
        docs, names = [], []
        for branch, node in enumerate(values, start=1):
            names.append(self.value(node, branch))
            docs.append(self.last_docs)
        return names[0], names[1], f"{docs[0]} + {docs[1]}"

    def _else_ask(self, docs: str) -> str:
        """Return the line that asks the whole question over passages, for cases in which values cannot be used."""
        return f"    final_answer = answer({literal(self.question)}, {docs})"

    def _try(self, statement: str, docs: str) -> None:
        """Write a computation that falls back to asking the question if it raises ValueError."""
        self.lines += ["try:", f"    final_answer = {statement}", "except ValueError:", self._else_ask(docs)]

    def _if_known(self, first: str, second: str, statement: str, docs: str) -> None:
        """Write a computation that falls back to asking the question if a value is unknown."""
        self.lines += [
            f"if is_known({first}) and is_known({second}):",
            f"    final_answer = {statement}",
            "else:",
            self._else_ask(docs),
        ]

    def _choice(self, choice: Choice) -> None:
        values, docs = [], []
        for branch, parts in enumerate(choice.values, start=1):
            values += [self.value(part, branch) for part in parts]
            docs.append(self.last_docs)
        options = [self.value(option, branch) for branch, option in enumerate(choice.options, start=1)]
        self._try(computed(choice, values, options), " + ".join(docs))

    def _compute(self, meaning: Verdict | Difference | Same | Shared) -> None:
        first, second, docs = self._pair(meaning.values)
        self._try(computed(meaning, (first, second)), docs)

    def _same(self, same: Same) -> None:
        first, second, docs = self._pair(same.values)
        self._if_known(first, second, computed(same, (first, second)), docs)

    def _shared(self, shared: Shared) -> None:
        first, second, docs = self._pair(shared.values)
        condition = f"is_known({first}) and is_known({second})"
        self.lines += [f"shared = common({first}, {second}) if {condition} else []", "if shared:"]
        self.lines += ['    final_answer = ", ".join(shared)', "else:", self._else_ask(docs)]

    def _gather(self, gather: Gather) -> None:
        docs = []
        for number, entity in enumerate(gather.names, start=1):
            docs.append(f"docs_{number}")
            self.questions.append(f"What is known about {name(entity)}?")
            self.lines.append(f"docs_{number} = retrieve({literal(search_name(entity))}, topk={self.topk})")
        self.lines.append(f"final_answer = answer({literal(self.question)}, {' + '.join(docs)})")


_PARSERS = {
    "date": "parse_date",
    "number": "parse_number",
    "quantity": "parse_quantity",
    "day": "parse_date",
    "year": "parse_year",
}


def computed(meaning: Meaning, values: Sequence[str], options: Sequence[str] = ()) -> str:
    """Return the expression that computes a reading's answer; empty if the reading computes nothing.

    Args:
        meaning: Reading of the question.
        values: Expressions of the values to use. A choice by "span" has two per option: start and end.
        options: Expressions of a choice's two options.
    """
    match meaning:
        case Choice(key="span", smaller=smaller):
            spans = [f"years_between({values[i]}, {values[i + 1]})" for i in (0, 2)]
            return f"{options[0]} if {spans[0]} {'<' if smaller else '>'} {spans[1]} else {options[1]}"
        case Choice(key=key, smaller=smaller):
            return f"{options[0]} if {_compared(values, key, smaller)} else {options[1]}"
        case Verdict(key=key, smaller=smaller):
            return f'"yes" if {_compared(values, key, smaller)} else "no"'
        case Same(by="entity"):
            return f'"yes" if same_entity({values[0]}, {values[1]}) else "no"'
        case Same(by=by):
            return f'"yes" if {_PARSERS[by]}({values[0]}) == {_PARSERS[by]}({values[1]}) else "no"'
        case Shared(by="period"):
            return f"overlap({values[0]}, {values[1]})"
        case Shared():
            return f'", ".join(common({values[0]}, {values[1]}))'
        case Difference():
            return f"str(years_between({values[0]}, {values[1]}))"
    return ""


def _compared(values: Sequence[str], key: str, smaller: bool) -> str:
    """Return the expression that compares two values."""
    return f"{_PARSERS[key]}({values[0]}) {'<' if smaller else '>'} {_PARSERS[key]}({values[1]})"
