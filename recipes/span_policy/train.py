"""GRPO of the embedded reader on a CPU, in one process.

Each step draws a group of actions per question of a batch, rewards them and makes one update. An action's advantage is
its reward minus the group's mean, divided by the group's standard deviation. A group with equal rewards teaches nothing
and is skipped. Each update uses fresh draws, so no ratio needs clipping. If configured, a low-variance KL term keeps
the policy near its starting point. Settings that only apply to language models (ranks, tokens, GPUs) are ignored.
`adapter` may name a .pt file of `make reader` to start from instead of the shipped network.

The run folder receives metrics, checkpoints and `reader/`, for `pyrag ask --llm embedded:RUN/reader`. A stopped run
resumes from its last checkpoint with the same draws. Results depend on the seed and the number of torch's threads.
"""

# torch is needed for training only, so type checks run without it:
# mypy: disable-error-code="import-not-found,import-untyped,no-untyped-call,unused-ignore"

from __future__ import annotations

import math
import random
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyrag._io.files import write_json
from pyrag.embedded.reader.neural.answerer import NeuralAnswerer
from pyrag.embedded.reader.neural.network import MODEL_FOLDER, load
from pyrag.errors import ConfigError
from pyrag.evaluation.runs.folder import locked
from pyrag_rl.config import TrainConfig, absolute
from pyrag_rl.data.rows import TrainRow, read_rows
from pyrag_rl.folder import RunFolder
from pyrag_rl.verl import preflight
from pyrag_rl.verl.launch import Console, claim
from recipes.span_policy.evaluation import figures, gain, score, scored

_REPORT = 5  # steps between two lines of progress


def run(config: TrainConfig, console: Console = print) -> RunFolder:
    """Train to the end, starting from the last checkpoint if there is one, and report.

    Args:
        config: Training settings with the rows and the run folder. The algorithm must be `grpo`.
        console: Called with each line of progress.

    Returns:
        The run folder, with the trained reader in `reader/`.

    Raises:
        PyRAGError: Torch or onnx is not installed, or the settings, rows or start weights cannot be used.
    """
    try:
        import onnx  # noqa: F401  the shipped weights are read with it
        import torch  # noqa: F401
    except ImportError as error:
        raise ConfigError(f"training the embedded reader needs {error.name}: pip install torch onnx") from error
    if config.algorithm != "grpo":
        raise ConfigError(f"the embedded reader is trained by grpo, not {config.algorithm}: make reader is supervised")
    preflight.check_named(config)
    config = absolute(config)
    trainer = Trainer(config, RunFolder(Path(config.out)), preflight.check_sets(config), console)
    folder = claim(config)
    with locked(folder.path):
        if not trainer.finished():
            trainer.train()
            _export(folder.path / "weights.pt", folder.reader)
        trainer.report()
    return folder


@dataclass(frozen=True, slots=True)
class StepFigures:
    """Figures of one training step.

    Args:
        reward: Mean reward of the draws.
        greedy: Mean reward of the most likely actions.
        taught: Share of the groups whose rewards differ.
        unknown: Share of the draws that were "unknown".
        kl: Mean KL from the reference.
    """

    reward: float
    greedy: float
    taught: float
    unknown: float
    kl: float


class Trainer:
    """Training run: its rows, the network that learns, and the network that it started from."""

    def __init__(self, config: TrainConfig, folder: RunFolder, rows: Sequence[TrainRow], console: Console) -> None:
        from recipes.span_policy.policy import case_of

        self.config, self.folder, self._say = config, folder, console
        shipped = load(MODEL_FOLDER)
        ready = [case_of(row, shipped.tokenizer, shipped.calibration) for row in rows]
        self.cases = [case for case in ready if case is not None]
        if not self.cases:
            raise ConfigError(f"{config.data} holds no row with documents: build it with recipes.span_policy.rows")
        a_pass = math.ceil(len(self.cases) / config.batch_size)
        self.steps = min(config.epochs * a_pass, config.max_steps or config.epochs * a_pass)
        self.done = 0
        self.first = self._first()

    def finished(self) -> bool:
        """Return whether the reader is exported after all steps."""
        import torch

        exported = self.folder.reader.is_dir()
        return exported and bool(torch.load(self._checkpoint, weights_only=True)["done"] >= self.steps)

    def train(self) -> None:
        """Run the remaining steps, and save metrics, checkpoints and weights."""
        import msgspec
        import torch

        from recipes.reader.model import Reader, shape_of
        from recipes.reader.training import Weights, weights_of

        self.reference, self.model = (Reader(shape_of(self.first)) for _ in range(2))
        self.reference.load_state_dict(self.first)
        self.reference.requires_grad_(False).bfloat16()
        self.model.load_state_dict(self.first)
        self.weights = Weights(self.model)
        self._resume()
        metrics = self.folder.new_metrics_file()
        began, start = time.monotonic(), self.done
        while self.done < self.steps:
            batch = self._step()
            self.done += 1
            with metrics.open("ab") as file:
                file.write(msgspec.json.encode({"step": self.done, "data": _named(batch)}) + b"\n")
            if self.done % _REPORT == 0 or self.done == self.steps:
                left = (time.monotonic() - began) / (self.done - start) * (self.steps - self.done) / 60
                self._say(f"step {self.done}/{self.steps}: {_line(batch)}, {left:.0f} min left")
            if self.done % self.config.save_every == 0 or self.done == self.steps:
                self._save()
        torch.save(weights_of(self.model, self.weights), self.folder.path / "weights.pt")

    def _first(self) -> dict[str, Any]:
        """Return the weights to start from."""
        from recipes.reader.model import MINILM
        from recipes.span_policy.start import weights_of_file, weights_of_onnx

        if self.config.adapter:
            return weights_of_file(Path(self.config.adapter))
        return weights_of_onnx(MODEL_FOLDER / "reader.int8.onnx", MINILM)

    def _step(self) -> StepFigures:
        """Make one update from a batch of questions. The seed and the step determine the questions and the draws."""
        size = self.config.batch_size
        a_pass = math.ceil(len(self.cases) / size)
        epoch, place = divmod(self.done, a_pass)
        order = list(range(len(self.cases)))
        random.Random(f"{self.config.seed}:{epoch}").shuffle(order)  # noqa: S311  seeds must repeat
        chosen = [self.cases[at] for at in order[place * size : (place + 1) * size]]
        parts = [self._question(case, at, len(chosen)) for at, case in enumerate(chosen)]
        self.weights.step(self._rate())
        columns = list(zip(*parts, strict=True))
        return StepFigures(*(sum(column) / len(column) for column in columns))

    def _question(self, case: Any, place: int, count: int) -> tuple[float, float, float, float, float]:
        """Draw a group for a question, add its gradient, and return the figures for `StepFigures`."""
        import torch

        from recipes.span_policy.policy import log_chances

        config = self.config
        seed = int.from_bytes(random.Random(f"{config.seed}:{self.done}:{place}").randbytes(6), "big")  # noqa: S311
        draws = torch.Generator().manual_seed(seed)
        chances = log_chances(self.model, case, config.temperature)
        actions = torch.multinomial(chances.detach().exp(), config.group_size, replacement=True, generator=draws)
        reward_of = {action: self._reward(case, action) for action in {int(chances.argmax()), *actions.tolist()}}
        rewards = torch.tensor([reward_of[action] for action in actions.tolist()])
        mean_reward = rewards.mean().item()
        if config.shuffle_rewards:
            rewards = rewards[torch.randperm(len(rewards), generator=draws)]
        unknown = (actions == case.unknown).float().mean().item()
        greedy = reward_of[int(chances.argmax())]
        spread = rewards.std(correction=0).item()
        if spread < 1e-6:
            return mean_reward, greedy, 0.0, unknown, 0.0
        advantages = (rewards - rewards.mean()) / (spread + 1e-6)
        before = chances.detach()
        if config.kl_coef:  # the reference is not needed otherwise
            with torch.no_grad():
                before = log_chances(self.reference, case, config.temperature)
        loss, kl = grpo_loss(chances[actions], before[actions], advantages, config.kl_coef)
        if config.entropy_coef:
            finite = chances[chances.isfinite()]
            loss = loss + config.entropy_coef * (finite.exp() * finite).sum()
        (loss / count).backward()
        return mean_reward, greedy, 1.0, unknown, kl

    def _reward(self, case: Any, action: int) -> float:
        """Return the reward of an action."""
        from recipes.span_policy.policy import answer_of

        return scored(answer_of(case, action), case.row, self.config).reward

    def _rate(self) -> float:
        """Return the learning rate of the current step."""
        config, progress = self.config, self.done / self.steps
        warm = min(1.0, (self.done + 1) / (config.warmup * self.steps)) if config.warmup else 1.0
        cosine = (1 + math.cos(math.pi * progress)) / 2
        low = config.min_learning_rate
        return config.learning_rate * warm * (low + (1 - low) * cosine if config.schedule == "cosine" else 1.0)

    @property
    def _checkpoint(self) -> Path:
        return self.folder.checkpoints / "latest.pt"

    def _save(self) -> None:
        """Write a checkpoint."""
        from recipes.reader.training import save_atomic

        self.folder.checkpoints.mkdir(exist_ok=True)
        state = {"done": self.done, "master": self.weights.master, "optimiser": self.weights.optimiser.state_dict()}
        save_atomic(state, self._checkpoint)

    def _resume(self) -> None:
        """Load the last checkpoint, if any."""
        import torch

        if not self._checkpoint.is_file():
            return
        state = torch.load(self._checkpoint, weights_only=True)
        self.weights.master.copy_(state["master"])
        self.weights.optimiser.load_state_dict(state["optimiser"])
        self.weights.publish()
        self.done = state["done"]
        self._say(f"continues after step {self.done} of {self.steps}")

    def report(self) -> None:
        """Score the engine before and after training on the evaluation rows, and write `evaluation.json`.

        Without evaluation rows, only print how to use the reader.
        """
        if self.config.eval_data is None:
            self._say(f"trained: ask with pyrag ask --llm embedded:{self.folder.reader}")
            return
        rows, start = read_rows(Path(self.config.eval_data)), MODEL_FOLDER
        if self.config.adapter:
            start = self.folder.path / "start"
            _export(Path(self.config.adapter), start)
        before, after = (
            score(NeuralAnswerer(folder).read, rows, self.config) for folder in (start, self.folder.reader)
        )
        evaluation = {"before": figures(before), "after": figures(after), "gain": gain(before, after)}
        write_json(self.folder.evaluation, evaluation)
        for name, values in evaluation.items():
            self._say(f"{name}: " + ", ".join(f"{key} {value:.3f}" for key, value in values.items()))
        self._say(f"trained: ask with pyrag ask --llm embedded:{self.folder.reader}")


def _export(weights: Path, target: Path) -> None:
    """Write a reader folder for the engine. The calibration is copied, since training used its threshold."""
    import torch

    from recipes.reader.export import reader
    from recipes.reader.model import shape_of

    unfinished = target.with_suffix(".new")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    reader(weights, unfinished, shape_of(torch.load(weights, weights_only=True)))
    (unfinished / "reader.fp32.onnx").unlink()
    for name in ("tokenizer.json", "calibration.json"):
        shutil.copy(MODEL_FOLDER / name, unfinished / name)
    shutil.rmtree(target, ignore_errors=True)
    unfinished.replace(target)


def grpo_loss(chances: Any, before: Any, advantages: Any, kl_coef: float) -> tuple[Any, float]:
    """Return the loss of a group, and its KL from the reference by Schulman's estimator k3 (2020).

    Args:
        chances: Current log-probabilities of the drawn actions: shape (draws,).
        before: Log-probabilities of the same actions in the reference, without gradient.
        advantages: Advantage of each draw.
        kl_coef: Weight of the KL term in the loss. Zero for none.
    """
    gap = before - chances
    kl = (gap.exp() - gap - 1).mean()
    return -(advantages * chances).mean() + kl_coef * kl, float(kl.detach())


def _named(figures: StepFigures) -> dict[str, float]:
    """Return the figures under the names of verl's metrics, if verl has them."""
    return {
        "critic/score/mean": figures.reward,
        "actor/kl_loss": figures.kl,
        "greedy/score/mean": figures.greedy,
        "groups/taught": figures.taught,
        "draws/unknown": figures.unknown,
    }


def _line(figures: StepFigures) -> str:
    """Return the figures as one line of progress."""
    return (
        f"reward {figures.reward:.3f}, likeliest {figures.greedy:.3f}, groups that teach {figures.taught:.2f}, "
        f"unknown {figures.unknown:.2f}, KL {figures.kl:.4f}"
    )
