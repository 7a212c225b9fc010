"""Versions of a run's prompts: complete folders for `--prompts`, and a link to the current one.

    RUN/prompts-versions/0000    the prompts before learning
    RUN/prompts-versions/0001    …
    RUN/prompts                  a link to the current version

Versions differ only in the learned texts `methods/hera.AGENT.rules.txt` and `hera.AGENT.principles.txt`. A version is
made in a folder with a temporary name and then renamed, so it is either complete or absent.
"""

from __future__ import annotations

import difflib
import os
import shutil
from collections.abc import Iterator, Mapping
from importlib.resources import as_file
from pathlib import Path

from pyrag._io.lines import lines_of
from pyrag.agents.prompts import Prompts, load_prompts, prompts_folder
from pyrag.errors import UsageError
from pyrag.methods.hera.coach.protocol import Guidance
from pyrag.methods.hera.topology import AGENTS, Agent
from pyrag_prompts import PROMPT_SETS

VERSIONS, CURRENT = "prompts-versions", "prompts"


class PromptVersions:
    """Versions of the prompts in a run's folder. Methods raise `OSError` if the folder cannot be written."""

    def __init__(self, run: Path) -> None:
        self._run = run

    def begin(self, start: str | None) -> None:
        """Make version 0 from a prompts folder or from the package's prompts, and delete all other versions."""
        self.forget_after(-1)
        load_prompts(start)  # reports faults of the folder before it is copied
        with as_file(prompts_folder()) as packaged, as_file(prompts_folder(start)) as folder:
            self._make(0, folder, {}, rest=packaged if start in PROMPT_SETS else None)

    def path(self, version: int) -> Path:
        return self._run / VERSIONS / f"{version:04d}"

    def numbers(self) -> list[int]:
        folder = self._run / VERSIONS
        return sorted(int(path.name) for path in folder.iterdir() if path.name.isdigit()) if folder.is_dir() else []

    def current(self) -> int:
        """Return the number of the current version. Raises `UsageError` if the folder is not a run's folder."""
        try:
            return int((self._run / CURRENT).readlink().name)
        except (OSError, ValueError) as error:
            raise UsageError(
                f"{self._run} is not a run of pyrag evolve: it has no link {CURRENT} to a version"
            ) from error

    def prompts(self, version: int) -> Prompts:
        return load_prompts(self._known(version))

    def guidance(self, version: int, agent: Agent) -> Guidance:
        """Return the learned texts of an agent.

        Args:
            version: Version of the prompts.
            agent: The agent.

        Raises:
            UsageError: The version does not exist.
        """
        rules, principles = (_lines(self._known(version), agent, kind) for kind in ("rules", "principles"))
        return Guidance(rules, principles)

    def add(self, base: int, agent: Agent, guidance: Guidance) -> int:
        """Make a version with different guidance for one agent, and return its number.

        Args:
            base: Version to start from.
            agent: The agent.
            guidance: New guidance of the agent.

        Raises:
            UsageError: The version `base` does not exist.
        """
        number = self.numbers()[-1] + 1
        lines = {"rules": guidance.rules, "principles": guidance.principles}
        self._make(number, self._known(base), {f"hera.{agent}.{kind}": texts for kind, texts in lines.items()})
        return number

    def select(self, version: int) -> None:
        """Make a version current, in one step. Raises `UsageError` if a folder is in the link's place."""
        self._known(version)
        link = self._run / f".{CURRENT}.{os.getpid()}"
        link.unlink(missing_ok=True)
        link.symlink_to(f"{VERSIONS}/{version:04d}")
        try:
            link.replace(self._run / CURRENT)
        except IsADirectoryError as error:  # the run was copied without preserving links
            link.unlink()
            raise UsageError(f"{self._run / CURRENT} is a folder, not the link to a version: remove it") from error

    def forget_after(self, version: int) -> None:
        """Delete the versions above a number, which an unfinished step made."""
        for number in self.numbers():
            if number > version:
                shutil.rmtree(self.path(number))

    def difference(self, old: int, new: int) -> str:
        """Return a unified diff of all templates between two versions.

        Args:
            old: Number of the old version.
            new: Number of the new version.

        Raises:
            UsageError: A version does not exist.
        """
        before, after = self._known(old), self._known(new)
        names = sorted({path.relative_to(root) for root in (before, after) for path in _templates(root)})
        return "".join(_diff(before, after, name) for name in names)

    def _known(self, version: int) -> Path:
        path = self.path(version)
        if not path.is_dir():
            known = ", ".join(map(str, self.numbers())) or "none"
            raise UsageError(f"{self._run} has no version {version} of the prompts: it has {known}")
        return path

    def _make(self, number: int, base: Path, learned: Mapping[str, tuple[str, ...]], rest: Path | None = None) -> None:
        made = self._run / VERSIONS / f".{number:04d}"
        shutil.rmtree(made, ignore_errors=True)
        (made / "methods").mkdir(parents=True)
        for folder in filter(None, (rest, base)):  # a packaged set only has the prompts that differ from the default
            for template in _templates(folder):
                (made / template.relative_to(folder)).write_bytes(template.read_bytes())
        for name, lines in learned.items():
            path = made / "methods" / f"{name}.txt"
            path.unlink(missing_ok=True)
            if lines:
                path.write_text("".join(f"- {line}\n" for line in lines), encoding="utf-8")
        made.replace(self.path(number))


def learners() -> tuple[Agent, ...]:
    """Return the agents whose prompts can learn: all but the retriever."""
    return tuple(agent for agent in AGENTS if agent != "retriever")


def _templates(folder: Path) -> Iterator[Path]:
    """Yield the files of a prompts folder. A user's folder may contain other files, even the run itself."""
    yield from folder.glob("*.txt")
    yield from folder.glob("methods/*.txt")


def _lines(folder: Path, agent: Agent, kind: str) -> tuple[str, ...]:
    path = folder / "methods" / f"hera.{agent}.{kind}.txt"
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return tuple(line.removeprefix("- ") for line in lines_of(text) if line.strip())


def _diff(before: Path, after: Path, name: Path) -> str:
    old, new = (_shown(root / name) for root in (before, after))
    return "".join(difflib.unified_diff(old, new, f"{before.name}/{name}", f"{after.name}/{name}"))


def _shown(path: Path) -> list[str]:
    """Return the lines of a file in any encoding; empty if the file is missing."""
    return lines_of(path.read_text(encoding="utf-8", errors="replace"), keepends=True) if path.is_file() else []
