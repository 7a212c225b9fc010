"""Types that callers request: Python's, schemas and names; values that are read into them, and misfits."""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Literal, Optional, TypedDict

import pytest
from pydantic import BaseModel, Field, field_validator

from pyrag.agents.typed.contract import contract_of
from pyrag.errors import UsageError


@dataclass
class Node:
    name: str
    parts: list[Node] = field(default_factory=list)


class Link(BaseModel):
    label: str
    after: Link | None


class Firmness(BaseModel):
    firm: Literal["yes", "no", "unknown"]
    note: str


@dataclass
class Person:
    name: str
    born: date
    height: float | None = None


class Firm(TypedDict):
    staff: int
    owners: list[str]


class Child(BaseModel):
    age: int = Field(gt=3)


class Parent(BaseModel):
    name: str
    children: list[Child]

    @field_validator("name")
    @classmethod
    def is_upper(cls, name: str) -> str:
        if not name.isupper():
            raise ValueError("write the name in capitals")
        return name


class Colour(enum.Enum):
    RED = "red"


SOLE = {
    "type": "object", "properties": {"year": {"type": "integer"}, "note": {"type": ["string", "null"]}},
    "required": ["year", "note"], "additionalProperties": False,
}  # fmt: skip
SHARED = {"$defs": {"Day": {"type": "string", "format": "date"}}, "items": {"$ref": "#/$defs/Day"}, "type": "array"}


@pytest.mark.parametrize(
    ("returns", "value", "wanted"),
    [
        (int, "in 1,862", 1862),
        (int, 1862.0, 1862),
        (float, "12.5 euros", 12.5),
        (float, 3, 3.0),
        (bool, "Yes.", True),
        (bool, False, False),
        (str, " Uppsala", "Uppsala"),
        (str, True, "yes"),
        (str, 7, "7"),
        (date, "4 July 1776", date(1776, 7, 4)),
        (list[str], "A, B and C", ["A", "B", "C"]),
        (list[int], ["1", 2.0], [1, 2]),
        (dict[str, int], {"a": "5"}, {"a": 5}),
        (Literal["a", "b"], "B", "b"),
        (Colour, "Red", Colour.RED),
        (int | None, "7", 7),
        (Optional[int], "7", 7),  # noqa: UP045
        (Person, {"name": "Ada", "born": "1 May 1950"}, Person("Ada", date(1950, 5, 1))),
        (
            list[Person],
            [{"name": "Ada", "born": "1950-05-01", "height": "1.8"}],
            [Person("Ada", date(1950, 5, 1), 1.8)],
        ),
        (Firm, {"staff": "30 people", "owners": "Ann and Bo"}, {"staff": 30, "owners": ["Ann", "Bo"]}),
        (Parent, {"name": "ADA", "children": [{"age": "5"}]}, Parent(name="ADA", children=[Child(age=5)])),
        (SOLE, "1862", {"year": 1862, "note": None}),
        (SOLE, {"year": "1862"}, {"year": 1862, "note": None}),
        (SHARED, "1 May 1950", ["1950-05-01"]),
        ({"type": "object"}, "Uppsala", {"answer": "Uppsala"}),
        ({"enum": [1, "one"]}, "ONE", "one"),
        ("date", 1950, "1950"),
        ("number", "1.5 million", 1500000),
    ],
)
def test_values_are_read_into_the_type(returns: Any, value: Any, wanted: Any) -> None:
    contract = contract_of(returns)
    assert contract is not None
    fitting = contract.fitted(value)
    made = contract.object(fitting)
    assert (made, type(made)) == (wanted, type(wanted))
    assert contract.fitted(json.loads(json.dumps(fitting))) == fitting


@pytest.mark.parametrize(
    ("returns", "value", "words"),
    [
        (int, "12 May 1862", "a date, not a number"),
        (int, True, "not one whole number"),
        (int, "3.5", "not a whole number"),
        (float, float("nan"), "not one number"),
        (bool, "1862", "neither yes nor no"),
        (bool, 1, "not true or false"),
        (str, ["a"], "not a short text"),
        (date, "1776", "YYYY-MM-DD"),
        (list[int], ["1", None], r"final_answer\[1\] must be of type integer, not null, which stands for unknown"),
        ({"enum": [1]}, True, "must be one of"),
        ({"type": "array", "uniqueItems": True}, [1, 1], "an item twice"),
        ({"type": "number", "exclusiveMinimum": 3}, 3, "not between 3"),
        ({"type": "number", "multipleOf": 0.1}, 0.25, "not a multiple of 0.1"),
        (Person, {"name": "Ada"}, "lacks 'born'"),
        (Person, {"name": "Ada", "born": None}, "final_answer.born must be of type string, not null"),
        (Person, "Ada", "must be of type object"),
        (Parent, {"name": "ADA", "children": [{"age": 2}]}, "not between 3"),
        (Parent, {"name": "Ada", "children": []}, "write the name in capitals"),
        ({"type": "object", "additionalProperties": False}, "x", "must be of type object"),
    ],
)
def test_a_misfit_names_its_place(returns: Any, value: Any, words: str) -> None:
    contract = contract_of(returns)
    assert contract is not None
    with pytest.raises(ValueError, match=words):
        contract.fitted(value)


NODE = {
    "type": "object", "properties": {"n": {"type": "integer"}, "next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}},
    "required": ["n", "next"], "additionalProperties": False,
}  # fmt: skip
ENDLESS = {"$defs": {"N": {"properties": {"n": {"$ref": "#/$defs/N"}}, "required": ["n"]}}, "$ref": "#/$defs/N"}
DOUBLING = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)} | {"d40": {}}


@pytest.mark.parametrize(
    ("returns", "words"),
    [
        ("decimal", '"number", "int", "date"'),
        (3, "returns cannot be '3'"),
        ([str], "returns cannot be"),
        (len, "returns cannot be"),
        ({"type": "text"}, "unknown type 'text'"),
        ({"pattern": "x"}, "'pattern', which is not supported"),
        ({"$ref": "#/$defs/x"}, "which it does not hold"),
        ({"$ref": "https://example.org"}, "which it does not hold"),
        ({"$ref": "#"}, "refers to itself"),
        (ENDLESS, "refers to itself"),
        ({"type": "object", "required": [1]}, "required must hold names"),
        ({"$defs": DOUBLING, "$ref": "#/$defs/d0"}, "more than 2,000 parts"),
    ],
)
def test_types_that_cannot_be_checked_are_refused(returns: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        contract_of(returns)


def test_a_loose_schema_is_checked_as_far_as_known() -> None:
    contract = contract_of({"type": "string", "pattern": "x"}, strict=False)
    assert contract is not None
    assert contract.fitted("y") == "y"
    with pytest.raises(ValueError, match="type string"):
        contract.fitted(["y"])


def test_recursive_types_hold_values_of_four_levels() -> None:
    node = contract_of(Node)
    assert node is not None
    tree = {"name": "a", "parts": [{"name": "b", "parts": [{"name": "c"}]}, {"name": 4}]}
    made = node.object(node.fitted(tree))
    assert made == Node("a", [Node("b", [Node("c")]), Node("4")])
    with pytest.raises(ValueError, match=r"final_answer.parts\[0\] lacks 'name'"):
        node.fitted({"name": "a", "parts": [{"nam": "b"}]})
    link = contract_of(Link)
    assert link is not None
    assert link.object(link.fitted({"label": "a", "after": {"label": "b"}})) == Link(
        label="a", after=Link(label="b", after=None)
    )


@pytest.mark.parametrize(("depth", "fits"), [(1, True), (4, True), (6, False)])
def test_recursive_schemas_check_every_level(depth: int, fits: bool) -> None:
    contract = contract_of(NODE)
    assert contract is not None
    value: Any = None
    for number in range(depth):
        value = {"n": number, "next": value}
    if fits:
        assert contract.fitted(value) == value
    else:
        with pytest.raises(ValueError, match="final_answer"):
            contract.fitted(value)
    wrong = {"n": 1, "next": {"n": 2, "next": {"n": "x", "next": None}}}
    with pytest.raises(ValueError, match="final_answer"):
        contract.fitted(wrong)


@pytest.mark.parametrize(
    ("returns", "value"),
    [
        ("bool", "No information on this"),
        ("bool", "no one"),
        ("bool", "true story"),
        ("date", "between 4 July 1776 and 5 July 1777"),
        ("date", "18th century"),
        (date, "20200101"),
        (date, "2020-W01-1"),
        ({"type": "string", "format": "date-time"}, "20200101"),
        ({"type": "string", "format": "time"}, "12"),
        ({"type": "integer"}, 10**400),
        ({"type": "number", "minimum": 0}, 10**400),
        ({"type": "number", "multipleOf": 1e-300}, 1e300),
        ({"type": "array", "uniqueItems": True}, [{"a": 1, "b": 2}, {"b": 2, "a": 1}]),
        (tuple[int, str], ["b", 1]),
        (tuple[int, str], [1, "b", 2]),
        ({"type": "array", "prefixItems": [{"type": "integer"}], "items": False}, [1, 2]),
    ],
)
def test_texts_that_only_look_like_a_value_do_not_fit(returns: Any, value: Any) -> None:
    contract = contract_of(returns)
    assert contract is not None
    with pytest.raises(ValueError, match="final_answer"):
        contract.fitted(value)


@pytest.mark.parametrize(
    ("returns", "value", "wanted"),
    [
        ("bool", "No, it was not.", False),
        ("bool", "Yes. It is.", True),
        ("bool", "yes it is", True),
        ("date", "4 July 1776 (1776)", "1776-07-04"),
        (tuple[int, str], ["1", "b"], (1, "b")),
        ({"properties": {"a": True}}, {"a": [1]}, {"a": [1]}),
        ({"type": "array", "uniqueItems": True}, [1, True, "1"], [1, True, "1"]),
        (Firmness, {"firm": None, "note": "x"}, Firmness(firm="unknown", note="x")),
    ],
)
def test_values_with_words_around_them_fit(returns: Any, value: Any, wanted: Any) -> None:
    contract = contract_of(returns)
    assert contract is not None
    assert contract.object(contract.fitted(value)) == wanted


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    tricks: list[str]


class Home(BaseModel):
    pet: Cat | Dog = Field(discriminator="kind")


def test_one_of_several_forms_is_checked() -> None:
    home = contract_of(Home.model_json_schema())
    assert home is not None
    assert home.fitted({"pet": {"kind": "dog", "tricks": "sit, roll"}})["pet"]["tricks"] == ["sit", "roll"]
    with pytest.raises(ValueError, match=r"final_answer\.pet does not fit one form in oneOf"):
        home.fitted({"pet": {"kind": "cat", "tricks": []}})
    both = contract_of({"oneOf": [{"type": "integer"}, {"type": "number"}]})
    assert both is not None
    with pytest.raises(ValueError, match="oneOf"):
        both.fitted(3)


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
def test_forms_inside_forms_are_checked_once(keyword: str) -> None:
    schema: dict[str, Any] = {"type": "integer"}
    value: Any = "x"
    for _ in range(15):  # 2 ** 15 checks, if each form were checked twice
        schema = {keyword: [{"type": "object", "properties": {"a": schema}, "required": ["a"]}, {"type": "null"}]}
        value = {"a": value}
    contract = contract_of(schema)
    assert contract is not None
    with pytest.raises(ValueError, match='must be of type integer, not "x"'):
        contract.fitted(value)
