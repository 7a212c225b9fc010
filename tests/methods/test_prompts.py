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
from pyrag.agents.prompts import load_prompts
from pyrag.errors import ConfigError
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
    others = ("evolve.", "guidance.", "hera.")  # their agents' tests see to these
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
