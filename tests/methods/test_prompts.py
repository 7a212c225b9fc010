"""The methods' templates as they reach a model, and what a prompts folder must hold of them.

`WRITE_GOLDEN=1 pytest tests/methods` writes the golden files anew; the diff then shows in review.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

import pyrag_prompts
from pyrag.agents.llm import make_llm_agents
from pyrag.agents.parsing.answers import parse_answer
from pyrag.agents.prompts import load_prompts
from pyrag.agents.schemas import TAGGED_ANSWER
from pyrag.errors import BadOutputError, ConfigError
from pyrag.llm.clients.scripted import ScriptedChat
from pyrag.methods.baselines import adaptive, ircot, self_ask
from tests.methods.conftest import SCRIPTS, Chat, World

PACKAGE = Path(pyrag_prompts.__file__).parent
GOLDEN = Path(__file__).parent / "golden"
WRITING = sorted(set(SCRIPTS) - {"vanilla", "pyrag", "iter-retgen", "decompose-only"})


@pytest.mark.parametrize("method", WRITING)
async def test_golden_prompts(world: World, method: str) -> None:
    """Every request of a method, but for those of the agents that tests/agents looks at."""
    model = Chat(SCRIPTS[method])
    await world.ask(method, model)
    path, parts = GOLDEN / f"prompts_{method.replace(':', '_')}.txt", []
    for messages, sampling in zip(model.calls, model.asked, strict=True):
        said = "\n\n".join(f"=== {message.role} ===\n{message.content}" for message in messages)
        if not re.search(
            r"Plan Agent of a question|Decompose Agent|You answer one question from|question from facts that come", said
        ):
            parts.append(f"{said}\n\n=== stop: {list(sampling.stop)}\n")
    text = "\n".join(parts)
    if os.environ.get("WRITE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text


def test_every_template_of_the_folder_is_used() -> None:
    golden = "".join(path.read_text(encoding="utf-8") for path in GOLDEN.glob("prompts_*.txt"))
    golden += load_prompts().notice("search_agent.limit")
    unseen = {"search_agent.research.retry", "search_agent.r1-searcher.retry", "search_agent.search-o1.retry"}
    unseen |= {
        f"{name}.user"
        for name in (
            "opera.plan.retry",
            "opera.analyse.retry",
            "self_ask.retry",
            "ircot.retry",
            "opera.revise",
            "rewrite.retry",
        )
    }
    others = ("evolve.", "guidance.", "hera.", "standalone.", "typed.")  # their agents' tests see to these
    for path in (PACKAGE / "methods").glob("*.txt"):
        if path.name.startswith(others):
            continue
        text = re.split(r"\{\{\w+\}\}", path.read_text(encoding="utf-8").strip("\n"))
        assert path.stem in unseen or all(part in golden for part in text), path.name


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(PACKAGE, tmp_path / "prompts"))


def test_a_folder_without_methods_serves_the_agents(folder: Path) -> None:
    shutil.rmtree(folder / "methods")
    prompts = load_prompts(folder)
    with pytest.raises(ConfigError, match=r"no readable file direct\.user\.txt: copy it from the package"):
        prompts.render_method("direct", {"question": "q"})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Answer!", r"direct\.user\.txt lacks its placeholder \{\{question\}\}: use question"),
        ("{{question}} {{quest}}", r"has an unknown placeholder \{\{quest\}\}: use question"),
    ],
)
def test_placeholders_are_those_that_the_method_fills(folder: Path, text: str, said: str) -> None:
    (folder / "methods" / "direct.user.txt").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=said):
        load_prompts(folder).render_method("direct", {"question": "q"})


def test_values_are_not_looked_at_again() -> None:
    _, user = load_prompts().render_method("direct", {"question": "{{question}} {x} $y"})
    assert user == "Question: {{question}} {x} $y"


def _text(name: str) -> str:
    return (PACKAGE / f"{name}.txt").read_text(encoding="utf-8")


def test_answer_example_has_its_form() -> None:
    example = re.findall(r"^<redacted_thinking>.*\n<answer>.*", _text("answer.evidence.system"), re.MULTILINE)[0]
    read = parse_answer(example, 1, "In which town was Mara Lindqvist born?")
    assert (read.text, read.citations) == ("Brennick", (0,))
    assert re.fullmatch(TAGGED_ANSWER, example)


@pytest.mark.parametrize(
    "name", ["answer.evidence.system", "answer.aggregation.system", "answer.retry", "methods/direct.system",
             "methods/cot.system", "methods/plan_only.system"],
)  # fmt: skip
def test_answer_forms_fit_the_pattern_and_are_no_answer(name: str) -> None:
    form = re.split(r"\n\n|form\W*\n", _text(name).strip())[-1]
    assert re.search(rf"{TAGGED_ANSWER}\Z", form)
    with pytest.raises(BadOutputError):
        parse_answer(form)


async def test_joint_example_holds_sub_queries_and_a_program() -> None:
    _, _, shown = load_prompts().render("joint.user", question="Who?").partition("Example")
    model = ScriptedChat([shown.partition("Now write")[0]])
    plan = await make_llm_agents(model).planner.plan("The Glass Orchard, Winter Quay?", None)
    assert len(plan.sub_queries) == 4
    assert all(query.endswith("?") for query in plan.sub_queries)
    assert "final_answer = answer(" in plan.source


def test_ircot_example_ends_with_the_answer() -> None:
    said = re.findall(r"^The next sentence: (.*)", _text("methods/ircot.system"), re.MULTILINE)
    assert [ircot.first_sentence(sentence) for sentence in said] == said
    assert [bool(re.search("answer is", sentence)) for sentence in said] == [False, True]


def test_self_ask_example_ends_with_the_answer() -> None:
    lines = re.findall(r"^(?:Follow up|So the final).*", _text("methods/self_ask.user"), re.MULTILINE)
    answers = [self_ask.final_answer(line) for line in lines[:5]]
    assert [answer and answer.text for answer in answers] == [None, None, None, None, "Mara Lindqvist"]


def test_adaptive_examples_name_each_route() -> None:
    said = re.findall(r"\? ([ABC])$", _text("methods/adaptive.system"), re.MULTILINE)
    assert [adaptive.parse_route(letter) for letter in said] == list(adaptive.Route)
