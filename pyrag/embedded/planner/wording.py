"""Wording of steps, as noun phrases, sub-questions, search queries and variable names."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Sequence
from dataclasses import replace

from pyrag.embedded.lexicon import any_of, words
from pyrag.embedded.lexicon.things import WORK_KINDS
from pyrag.embedded.lexicon.word_classes import ARTICLES, BE, DO, QUESTION_WORDS
from pyrag.embedded.planner.meaning import Entity, Node, RelationStep
from pyrag.embedded.relations.relation import Relation
from pyrag.embedded.words import singular
from pyrag_helpers import HELPERS

SLOT = re.compile(r"\{(\d)\}")


def fill(template: str, values: Sequence[str]) -> str:
    """Return a template with its slots `{0}`, `{1}` … replaced by values.

    Args:
        template: Text with slots of one digit. A slot without a value is kept.
        values: Texts by slot number. Braces in them are not slots.
    """
    return SLOT.sub(lambda slot: values[int(slot[1])] if int(slot[1]) < len(values) else slot[0], template)


def name(entity: Entity) -> str:
    """Return an entity as a sentence names it, such as "the film Alpha"."""
    if entity.kind in WORK_KINDS and not re.match(rf"(?:the )?{entity.kind}\b", entity.text, re.I):
        return f"the {entity.kind} {entity.text}"
    return entity.text


def search_name(entity: Entity) -> str:
    """Return an entity as a search query names it, such as "Alpha film"."""
    return f"{entity.text} {entity.kind}".strip()


def phrase(node: Node) -> str:
    """Return a node as a noun phrase, such as "the father of the director of Alpha"."""
    if isinstance(node, Entity):
        return name(node)
    return fill(node.phrase, [phrase(arg) for arg in node.args])


def sub_question(step: RelationStep) -> str:
    """Return a step as a question that can be understood on its own."""
    question = fill(step.question, [phrase(arg) for arg in step.args])
    return question[:1].upper() + question[1:]


def relation_step(relation: Relation, of: Node, noun: str = "") -> RelationStep:
    """Return the step that looks up a relation of a node.

    Args:
        relation: Relation to ask for.
        of: Node to ask about.
        noun: The question's word for the relation, such as "inventor". Empty for the relation's first noun.
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


_ROLE_OF = re.compile(r"Who is the (?P<noun>[a-z ]+) of \{x\}\?")


def _as_country(node: Node) -> Node:
    """Return a node that asks for the country instead of the nationality: "the capital of China", not "of Chinese"."""
    if isinstance(node, RelationStep) and node.relation is not None and node.relation.name == "country of citizenship":
        return replace(node, question="Which country is {0} from?")
    return node


def _asked_by(relation: Relation, noun: str) -> str:
    """Return a relation's question with the given noun: "Who invented …" for "inventor", "Who is the mayor of …"."""
    asked = _ROLE_OF.fullmatch(relation.question)
    if asked and singular(noun) == noun and noun != asked["noun"]:
        return f"Who is the {noun} of {{x}}?"
    verb = next((verb for verb in relation.verbs if len(noun) > 5 and verb[:5] == noun[:5]), "")
    return (
        f"Who {verb} {{x}}?"
        if verb and relation.question.startswith(f"Who {relation.verbs[0]} ")
        else relation.question
    )


def _role(of: Node) -> str:
    """Return the profession that distinguishes a person from namesakes in a search, such as "director"."""
    return of.relation.role if isinstance(of, RelationStep) and of.relation else ""


def free_step(question: str, phrase: str, noun: str, args: tuple[Node, ...]) -> RelationStep:
    """Return a step in the question's own words.

    Args:
        question: Question with a slot for each of `args`. A question mark is added.
        phrase: Noun phrase for the value, with the same slots.
        noun: Kind of thing that the question asks for, which becomes the variable's name.
        args: Nodes for the slots `{0}`, `{1}` ….
    """
    question = " ".join(question.split())
    question = question[:1].upper() + question[1:].rstrip("?. ") + "?"
    return RelationStep(
        question, search_terms(question), phrase, identifier(noun), tuple(_as_country(arg) for arg in args)
    )


_ASKING = re.compile(
    rf"\b{any_of(QUESTION_WORDS | BE | DO | ARTICLES | words('of in on at by to that it name many much'))}\b|[?\"“”,]",
    re.IGNORECASE,
)


def search_terms(question: str) -> str:
    """Return a question without the words that only form the question."""
    terms = " ".join(_ASKING.sub(" ", question).split())
    return terms if len(terms) > 2 else question


def identifier(text: str) -> str:
    """Return a variable name made of a text's last three words. If this is a reserved word, "_found" is appended."""
    joined = "_".join(re.findall(r"[a-z0-9]+", text.lower())[-3:])[:30].strip("_0123456789")
    reserved = not joined or keyword.iskeyword(joined) or hasattr(builtins, joined) or joined in _RESERVED
    return f"{joined}_found".lstrip("_") if reserved else joined


_RESERVED = {"answer", "retrieve", "final_answer", "docs", "shared", "rewrite", *HELPERS}
