"""Puts steps into words: noun phrases, sub-questions, search terms. Reads no question."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Sequence
from dataclasses import replace

from pyrag.embedded.lexicon import words
from pyrag.embedded.planner.meaning import Entity, Node, RelationStep
from pyrag.embedded.relations.relation import Relation
from pyrag_helpers import HELPERS

SLOT = re.compile(r"\{(\d)\}")


WORK_KINDS = words("film movie song album novel book single series play poem opera game show story")
PLACE_KINDS = words(
    "country state city town village county province district region continent area place location nation island"
)


def fill(template: str, values: Sequence[str]) -> str:
    """Return the template with its slots `{0}`, `{1}` … replaced. Braces in values stay what they are.

    Args:
        template: Text with slots of one digit.
        values: Texts by the number of their slot; a slot without one is left as it is.
    """
    return SLOT.sub(lambda slot: values[int(slot[1])] if int(slot[1]) < len(values) else slot[0], template)


def name(entity: Entity) -> str:
    """An entity in a sentence: "the film Alpha"."""
    if entity.kind in WORK_KINDS and not re.match(rf"(?:the )?{entity.kind}\b", entity.text, re.I):
        return f"the {entity.kind} {entity.text}"
    return entity.text


def search_name(entity: Entity) -> str:
    return f"{entity.text} {entity.kind}".strip()


def phrase(node: Node) -> str:
    """A node as a noun phrase of its own: "the father of the director of Alpha"."""
    if isinstance(node, Entity):
        return name(node)
    return fill(node.phrase, [phrase(arg) for arg in node.args])


def sub_question(step: RelationStep) -> str:
    """A step as a question that needs nothing but itself."""
    question = fill(step.question, [phrase(arg) for arg in step.args])
    return question[:1].upper() + question[1:]


def relation_step(relation: Relation, of: Node, noun: str = "") -> RelationStep:
    """Return the step that asks for one relation of a node.

    Args:
        relation: The row of the table, with the wordings of the question and the search.
        of: The node that it is asked of.
        noun: The question's word for it, such as "inventor"; the relation's first noun if empty.
    """
    noun = noun or (relation.nouns[0] if relation.nouns else relation.name)
    role = _role(of)
    return RelationStep(
        question=_asked_by(relation, noun).replace("{x}", "{0}"),
        query=relation.query.replace("{x}", f"{{0}} {role}" if role else "{0}"),
        phrase=f"the {noun} of {{0}}",
        variable=relation.variable or identifier(relation.name),
        args=(_as_country(of),),
        relation=relation,
    )


def _as_country(node: Node) -> Node:
    """A nationality that another step goes on from: "the capital of China", not "of Chinese"."""
    if isinstance(node, RelationStep) and node.relation is not None and node.relation.name == "country of citizenship":
        return replace(node, question="Which country is {0} from?")
    return node


def _asked_by(relation: Relation, noun: str) -> str:
    """The relation's question, with the verb that goes with the noun: who invented, not who created."""
    verb = next((verb for verb in relation.verbs if len(noun) > 5 and verb[:5] == noun[:5]), "")
    return (
        f"Who {verb} {{x}}?"
        if verb and relation.question.startswith(f"Who {relation.verbs[0]} ")
        else relation.question
    )


def _role(of: Node) -> str:
    """Return the word that tells a person from namesakes: directors are found among directors."""
    return of.relation.role if isinstance(of, RelationStep) and of.relation else ""


def free_step(question: str, phrase: str, noun: str, args: tuple[Node, ...]) -> RelationStep:
    """Return a step in the question's own words.

    Args:
        question: With a slot for each of `args`; a question mark is added.
        phrase: The noun phrase for its value, with the same slots.
        noun: The kind of thing that it asks for; becomes the variable's name.
        args: The nodes that `{0}`, `{1}` … stand for.
    """
    question = " ".join(question.split())
    question = question[:1].upper() + question[1:].rstrip("?. ") + "?"
    return RelationStep(
        question, search_terms(question), phrase, identifier(noun), tuple(_as_country(arg) for arg in args)
    )


_ASKING = re.compile(
    r"\b(?:who|whom|whose|what|which|when|where|why|how|is|are|was|were|did|does|do|the|a|an|of|in|on|at|by|to|that|it"
    r"|name|many|much)\b|[?\"“”,]",
    re.IGNORECASE,
)


def search_terms(question: str) -> str:
    """A question without the words that only ask."""
    terms = " ".join(_ASKING.sub(" ", question).split())
    return terms if len(terms) > 2 else question


def identifier(text: str) -> str:
    """A plain variable name; what cannot be part of one is dropped."""
    joined = "_".join(re.findall(r"[a-z0-9]+", text.lower())[-3:])[:30].strip("_0123456789")
    taken = not joined or keyword.iskeyword(joined) or hasattr(builtins, joined) or joined in _TAKEN
    return f"{joined}_found".lstrip("_") if taken else joined


_TAKEN = {"answer", "retrieve", "final_answer", "docs", "shared", "rewrite", *HELPERS}
