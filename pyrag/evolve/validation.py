"""Scores on the validation questions, which are never learned from. Updates that lower the score are rejected."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from pyrag.evaluation.datasets.layout import Question
from pyrag.evolve.trajectories import Players, together
from pyrag.methods.hera.experience.library import Library
from pyrag.methods.hera.topology import Characterisation

Key = tuple[str, int | None, tuple[str, ...]]  # question, version of the prompts, insights shown


class UpdateValidator:
    """Mean F1 of the orchestrator's best topologies. Questions are repeated only if prompts or experience changed."""

    def __init__(self, questions: Sequence[Question]) -> None:
        self.questions = tuple(questions)
        self._profiles: dict[str, Characterisation] = {}
        self._scores: dict[Key, float] = {}

    async def score(self, players: Players, library: Library) -> float:
        """Return the mean F1, from 0 to 1.

        Args:
            players: The agents, with the prompts to validate.
            library: The experience library or a draft of it.
        """
        works = (self._score_of(players, library, question) for question in self.questions)
        return fmean(await together(works, players.settings.concurrency))

    async def _score_of(self, players: Players, library: Library, question: Question) -> float:
        if question.id not in self._profiles:
            self._profiles[question.id] = await players.characterise(question)
        lessons = library.retrieve(self._profiles[question.id])
        key = (question.id, players.version, tuple(lesson.insight for lesson in lessons))
        if key not in self._scores:
            topology = await players.orchestrate(question, lessons)
            self._scores[key] = (await players.run(question, topology)).f1
        return self._scores[key]
