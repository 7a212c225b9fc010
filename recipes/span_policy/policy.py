"""The reader as a policy, whose actions are the spans of the passages and "unknown".

An action's logit is the score that the embedded engine uses to rank answers: the span's margin over "no answer" in its
window, plus a bonus for passages about the question's subject. The logit of "unknown" is the minimum score of a known
answer. The most likely action is therefore the engine's answer, except that the lexical reader is not used here.
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
    """Row prepared for the policy.

    Actions are numbered by window, then by start, then by length. The last action is "unknown".

    Args:
        row: The question with its documents.
        analysis: Analysis of the question.
        passages: Passages of the documents.
        windows: Windows of the passages.
        batch: Windows as tensors.
        prior: Bonus of the passage, for each window.
        unknown_logit: Logit of "unknown".
    """

    row: TrainRow
    analysis: QuestionAnalysis
    passages: tuple[Passage, ...]
    windows: tuple[Window, ...]
    batch: Batch
    prior: tuple[float, ...]
    unknown_logit: float

    @property
    def unknown(self) -> int:
        """Number of the action "unknown"."""
        return sum(len(window.offsets) for window in self.windows) * ANSWER_TOKENS


def case_of(row: TrainRow, tokenizer: Tokenizer, calibration: Calibration) -> Case | None:
    """Prepare a row for the policy; return None if it has no passages.

    Args:
        row: The question with its documents.
        tokenizer: Tokenizer of the reader.
        calibration: Calibration with the bonus of a passage about the subject and the minimum score of a known answer.
    """
    passages = tuple(document.passage() for document in row.documents or ())
    analysis = analyse(row.asked)
    cut = tuple(windows(tokenizer, row.asked, [(each.title, each.text) for each in passages]))
    cut = tuple(window for window in cut if window.offsets)
    if not cut:
        return None
    about = [page.about for page in views(analysis, passages)]
    return Case(
        row=row,
        analysis=analysis,
        passages=passages,
        windows=cut,
        batch=collate([Example(window.ids, window.split, 0, 0) for window in cut]),
        prior=tuple(calibration.about * about[window.passage] for window in cut),
        unknown_logit=calibration.least_score,
    )


def log_chances(model: Reader, case: Case, temperature: float = 1.0) -> Tensor:
    """Return the log-probability of every action: shape (actions,). A span that leaves its window has minus infinity.

    Args:
        model: Reader whose scores make the distribution.
        case: Prepared row.
        temperature: Divisor of the logits, above 0.
    """
    scores = model(case.batch.ids, case.batch.mask, case.batch.types).float()
    logits = [
        _margins(scores[place], window) + prior
        for place, (window, prior) in enumerate(zip(case.windows, case.prior, strict=True))
    ]
    return torch.log_softmax(torch.cat([*logits, torch.tensor([case.unknown_logit])]) / temperature, dim=0)


def _margins(scores: Tensor, window: Window) -> Tensor:
    """Return start plus end minus "no answer" score for each span of a window: shape (tokens * ANSWER_TOKENS,)."""
    count = len(window.offsets)
    inner = scores[window.first : window.first + count]
    ends = torch.nn.functional.pad(inner[:, 1], (0, ANSWER_TOKENS - 1), value=-torch.inf).unfold(0, ANSWER_TOKENS, 1)
    return (inner[:, :1] + ends - scores[0].sum()).reshape(-1)


def answer_of(case: Case, action: int) -> Answer:
    """Return the engine's answer for an action, with the span's ends trimmed as they are for a question.

    Args:
        case: Prepared row that the action belongs to.
        action: Number from 0 to `case.unknown`. A span must not leave its window.
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
