"""The prompts of a run, version by version: whole folders that `--prompts` takes, and a link to the current one.

    RUN/prompts-versions/0000    the prompts that learning began with
    RUN/prompts-versions/0001    …
    RUN/prompts                  a link to the current version

Versions differ in what agents have learned alone: `methods/hera.AGENT.rules.txt` and `hera.AGENT.principles.txt`.
A version is made in a folder of another name and moved into its place, so that it is whole or not there.
"""

from __future__ import annotations

import difflib
import os
import shutil
from collections.abc import Iterator, Mapping
from importlib.resources import as_file, files
from pathlib import Path

from pyrag.agents.prompts import Prompts, load_prompts
from pyrag.errors import UsageError
from pyrag.methods.hera.coach.protocol import Guidance
from pyrag.methods.hera.topology import AGENTS, Agent

VERSIONS, CURRENT = "prompts-versions", "prompts"


class PromptVersions:
    """The versions in a run's folder. Raises `OSError` where the folder cannot be written."""

    def __init__(self, run: Path) -> None:
        self._run = run

    def begin(self, start: str | None) -> None:
        """Makes version 0 of a prompts folder, or of the package's, and no other remains."""
        self.forget_after(-1)
        if start is not None:
            load_prompts(start)  # says what is wrong with the folder before it is copied
            self._make(0, Path(start), {})
        else:
            with as_file(files("pyrag_prompts")) as folder:
                self._make(0, folder, {})

    def path(self, version: int) -> Path:
        return self._run / VERSIONS / f"{version:04d}"

    def numbers(self) -> list[int]:
        folder = self._run / VERSIONS
        return sorted(int(one.name) for one in folder.iterdir() if one.name.isdigit()) if folder.is_dir() else []

    def current(self) -> int:
        """Raises `UsageError` where the folder is no run."""
        try:
            return int((self._run / CURRENT).readlink().name)
        except (OSError, ValueError) as error:
            raise UsageError(f"{self._run} is no run of pyrag evolve: it has no link {CURRENT} to a version") from error

    def prompts(self, version: int) -> Prompts:
        return load_prompts(self._known(version))

    def guidance(self, version: int, agent: Agent) -> Guidance:
        """What an agent has learned."""
        rules, principles = (_lines(self._known(version), agent, kind) for kind in ("rules", "principles"))
        return Guidance(rules, principles)

    def add(self, base: int, agent: Agent, guidance: Guidance) -> int:
        """A version in which one agent has learned something else than in `base`; its number."""
        number = self.numbers()[-1] + 1
        lines = {"rules": guidance.rules, "principles": guidance.principles}
        self._make(number, self._known(base), {f"hera.{agent}.{kind}": texts for kind, texts in lines.items()})
        return number

    def select(self, version: int) -> None:
        """Makes a version the current one, in one step. Raises `UsageError` where a folder stands in its place."""
        self._known(version)
        link = self._run / f".{CURRENT}.{os.getpid()}"
        link.unlink(missing_ok=True)
        link.symlink_to(f"{VERSIONS}/{version:04d}")
        try:
            link.replace(self._run / CURRENT)
        except IsADirectoryError as error:  # the run was copied without its links
            link.unlink()
            raise UsageError(f"{self._run / CURRENT} is a folder, not the link to a version: remove it") from error

    def forget_after(self, version: int) -> None:
        """Removes versions that a process made whose step it did not finish."""
        for number in self.numbers():
            if number > version:
                shutil.rmtree(self.path(number))

    def difference(self, old: int, new: int) -> str:
        """A unified diff of all templates."""
        before, after = self._known(old), self._known(new)
        names = sorted({one.relative_to(root) for root in (before, after) for one in _templates(root)})
        return "".join(_diff(before, after, name) for name in names)

    def _known(self, version: int) -> Path:
        path = self.path(version)
        if not path.is_dir():
            known = ", ".join(map(str, self.numbers())) or "none"
            raise UsageError(f"{self._run} has no version {version} of the prompts: it has {known}")
        return path

    def _make(self, number: int, base: Path, learned: Mapping[str, tuple[str, ...]]) -> None:
        made = self._run / VERSIONS / f".{number:04d}"
        shutil.rmtree(made, ignore_errors=True)
        (made / "methods").mkdir(parents=True)
        for template in _templates(base):
            (made / template.relative_to(base)).write_bytes(template.read_bytes())
        for name, lines in learned.items():
            path = made / "methods" / f"{name}.txt"
            path.unlink(missing_ok=True)
            if lines:
                path.write_text("".join(f"- {line}\n" for line in lines), encoding="utf-8")
        made.replace(self.path(number))


def learners() -> tuple[Agent, ...]:
    """The agents that have a prompt to learn in: all but the retriever."""
    return tuple(agent for agent in AGENTS if agent != "retriever")


def _templates(folder: Path) -> Iterator[Path]:
    """What prompts are read from: a user's folder may hold anything else, even the run itself."""
    yield from folder.glob("*.txt")
    yield from folder.glob("methods/*.txt")


def _lines(folder: Path, agent: Agent, kind: str) -> tuple[str, ...]:
    path = folder / "methods" / f"hera.{agent}.{kind}.txt"
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return tuple(line.removeprefix("- ") for line in text.splitlines() if line.strip())


def _diff(before: Path, after: Path, name: Path) -> str:
    old, new = (_shown(root / name) for root in (before, after))
    return "".join(difflib.unified_diff(old, new, f"{before.name}/{name}", f"{after.name}/{name}"))


def _shown(path: Path) -> list[str]:
    """The lines of a file, none where there is none. A text that is no prompt of ours can be in any encoding."""
    return path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True) if path.is_file() else []
