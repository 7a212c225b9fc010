"""The reader as a policy: an action is a span of one of the passages, or unknown.

An action's logit is what the embedded engine ranks answers by: the span's margin over "no answer" in its window, plus
what a passage about the question's subject adds; unknown has the score from which on the engine calls an answer known.
So the most likely action is what the engine answers. Left out: the lexical reader, whose agreement the engine adds.
"""

# torch is needed for training only, so type checks run without it:
# mypy: disable-error-code="import-not-found,no-any-return,unused-ignore"

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pyrag.embedded.question_analysis import QuestionAnalysis, analyse
from pyrag.embedded.reader.neural.decode import ANSWER_TOKENS, trim
from pyrag.embedded.reader.neural.network import Calibration
from pyrag.embedded.reader.neural.windows import Tokenizer, Window, windows
from pyrag.embedded.reader.view import views
from pyrag.trace.model import UNKNOWN, Answer, Passage
from pyrag_rl.data.rows import TrainRow
from recipes.reader.model import Reader
from recipes.reader.training import Batch, collate
from recipes.reader.windows import Example


@dataclass(frozen=True, slots=True)
class Case:
    """A row made ready. Actions are numbered by window, then start, then length; the last one is unknown."""

    row: TrainRow
    analysis: QuestionAnalysis
    passages: tuple[Passage, ...]
    windows: tuple[Window, ...]
    batch: Batch
    prior: tuple[float, ...]  # a window: what its passage's subject adds to a margin
    least: float  # the logit of unknown

    @property
    def unknown(self) -> int:
        return sum(len(window.offsets) for window in self.windows) * ANSWER_TOKENS


def case_of(row: TrainRow, tokenizer: Tokenizer, calibration: Calibration) -> Case | None:
    """Make a row ready; None where it has no passages to read.

    Args:
        row: A question with its documents.
        tokenizer: The reader's own.
        calibration: Gives the weight of the subject's page and the logit of unknown.
    """
    passages = tuple(one.passage() for one in row.documents or ())
    analysis = analyse(row.asked)
    made = tuple(windows(tokenizer, row.asked, [(each.title, each.text) for each in passages]))
    made = tuple(window for window in made if window.offsets)
    if not made:
        return None
    about = [page.about for page in views(analysis, passages)]
    return Case(
        row=row,
        analysis=analysis,
        passages=passages,
        windows=made,
        batch=collate([Example(window.ids, window.split, 0, 0) for window in made]),
        prior=tuple(calibration.about * about[window.passage] for window in made),
        least=calibration.least_score,
    )


def log_chances(model: Reader, case: Case, temperature: float = 1.0) -> Tensor:
    """Return the log-probability of every action: shape (actions,). Spans that leave their window have minus infinity.

    Args:
        model: The reader to draw from.
        case: A row made ready.
        temperature: Divides the logits; above 0.
    """
    scores = model(case.batch.ids, case.batch.mask, case.batch.types).float()
    logits = [
        _margins(scores[place], window) + prior
        for place, (window, prior) in enumerate(zip(case.windows, case.prior, strict=True))
    ]
    return torch.log_softmax(torch.cat([*logits, torch.tensor([case.least])]) / temperature, dim=0)


def _margins(scores: Tensor, window: Window) -> Tensor:
    """Start plus end minus "no answer" of each span of a window: shape (tokens * ANSWER_TOKENS,)."""
    count = len(window.offsets)
    inner = scores[window.first : window.first + count]
    ends = torch.nn.functional.pad(inner[:, 1], (0, ANSWER_TOKENS - 1), value=-torch.inf).unfold(0, ANSWER_TOKENS, 1)
    return (inner[:, :1] + ends - scores[0].sum()).reshape(-1)


def answer_of(case: Case, action: int) -> Answer:
    """Return the engine's answer for an action, its edges put right as at run time.

    Args:
        case: The row that the action is of.
        action: From 0 to `case.unknown`, not a span that leaves its window.
    """
    for window in case.windows:
        size = len(window.offsets) * ANSWER_TOKENS
        if action < size:
            start, length = divmod(action, ANSWER_TOKENS)
            characters = window.offsets[start][0], window.offsets[start + length][1]
            text = trim(case.passages[window.passage].text, *characters, case.analysis)
            return Answer(text, True) if text else Answer(UNKNOWN, known=False)
        action -= size
    return Answer(UNKNOWN, known=False)
