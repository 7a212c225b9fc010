"""Training of the reader on CPU cores: one worker process per core, with weights averaged every few steps.

This is local SGD over gloo. The network computes in bfloat16. The optimiser keeps float32 master weights in one flat
buffer, so averaging, copying back and saving are single operations. Word embeddings stay frozen. The steps depend only
on the seed and the number of workers. A stopped run resumes from its last checkpoint. If a worker is suspended
(SIGSTOP), the others wait for it.
"""

# torch is needed for training only, so type checks run without it:
# mypy: disable-error-code="import-not-found,misc,no-untyped-call,unused-ignore"

# ruff: noqa: S311, T201  seeds must repeat; progress goes to the terminal

from __future__ import annotations

import os
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing import parent_process
from multiprocessing.process import BaseProcess
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import torch
import torch.distributed
from torch import Tensor
from torch.nn import functional

from pyrag._io.files import AtomicFile
from recipes.reader.model import Reader
from recipes.reader.windows import Example

_HEAD_RATE = 5.0  # factor of the head's learning rate, since only the encoder is pretrained
_BUCKET = 48  # batches per bucket whose examples are sorted by length


@dataclass(frozen=True, slots=True)
class Recipe:
    """Settings of a training stage.

    Args:
        name: Name of the stage, used as a prefix of its files.
        rate: Peak of the learning rate.
        last: Final learning rate as a share of the peak, reached linearly over all examples.
        until: Share of the examples after which the stage ends.
        warmup: Steps until the rate reaches its peak.
        batch: Examples per batch of a worker.
        workers: Number of worker processes.
        threads: Threads per worker.
        average_every: Steps between two averages of the weights.
        save_every: Seconds between two checkpoints.
        seed: Seed for the batches.
    """

    name: str
    rate: float = 2e-4
    last: float = 0.0
    until: float = 1.0
    warmup: int = 150
    batch: int = 16
    workers: int = 2
    threads: int = 1
    average_every: int = 8
    save_every: float = 120.0
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Batch:
    """Examples as tensors, padded to the same length."""

    ids: Tensor
    mask: Tensor
    types: Tensor
    starts: Tensor
    ends: Tensor


def batches(lengths: Sequence[int], size: int, rank: int, workers: int, seed: int) -> list[list[int]]:
    """Return a worker's batches. The n-th batches of all workers have similar lengths.

    Examples keep their order, but are sorted by length within buckets so that a batch needs little padding.

    Args:
        lengths: Number of tokens of each example.
        size: Number of examples per batch of a worker.
        rank: Number of the worker, from 0.
        workers: Number of all workers.
        seed: Seed, the same for all workers.

    Returns:
        Positions of the examples of each batch. A remainder that is too small to give each worker a batch is dropped.
    """
    rng = random.Random(seed)
    step = size * workers
    chosen: list[list[int]] = []
    for low in range(0, len(lengths) - step + 1, step * _BUCKET):
        bucket = sorted(range(low, min(len(lengths), low + step * _BUCKET)), key=lambda at: lengths[at])
        groups = [bucket[at : at + step] for at in range(0, len(bucket) - step + 1, step)]
        rng.shuffle(groups)
        chosen += [group[rank::workers] for group in groups]
    return chosen


def collate(examples: Sequence[Example]) -> Batch:
    """Return examples as a batch."""
    longest = max(len(each.ids) for each in examples)
    ids = torch.zeros(len(examples), longest, dtype=torch.long)
    mask, types = torch.zeros_like(ids), torch.zeros_like(ids)
    for row, each in enumerate(examples):
        count = len(each.ids)
        ids[row, :count] = torch.tensor(each.ids)
        mask[row, :count] = 1
        types[row, each.split : count] = 1
    starts, ends = (torch.tensor(labels) for labels in zip(*((e.start, e.end) for e in examples), strict=True))
    return Batch(ids, mask, types, starts, ends)


def _loss_of(model: Reader, batch: Batch) -> Tensor:
    """Return the cross-entropy of start and end, over the passage's tokens and "no answer"."""
    scores = model(batch.ids, batch.mask, batch.types).float()
    allowed = batch.types.bool()
    allowed[:, 0] = True
    scores = scores.masked_fill(~allowed[..., None], -1e4)
    starts = functional.cross_entropy(scores[..., 0], batch.starts)
    ends = functional.cross_entropy(scores[..., 1], batch.ends)
    return (starts + ends) / 2


class Weights:
    """Trained parameters in three flat buffers: float32 masters, and bfloat16 copies and gradients of the model."""

    def __init__(self, model: Reader) -> None:
        model.encoder.words.weight.requires_grad = False
        named = [(name, each) for name, each in model.named_parameters() if each.requires_grad]
        groups: list[list[torch.nn.Parameter]] = [[], [], []]  # decayed, not decayed, head
        for name, each in named:
            groups[2 if name.startswith("head") else 0 if each.dim() > 1 else 1].append(each)
        ordered = [each for group in groups for each in group]
        self.master = torch.cat([each.detach().float().reshape(-1) for each in ordered])
        model.bfloat16()
        self.copy = self.master.bfloat16()
        self.gradient = torch.zeros_like(self.copy)
        at = 0
        for each in ordered:
            size, shape = each.numel(), each.shape
            each.data = self.copy[at : at + size].view(shape)
            each.grad = self.gradient[at : at + size].view(shape)
            at += size
        sizes = [sum(each.numel() for each in group) for group in groups]
        self._parts = [torch.nn.Parameter(part) for part in self.master.split(sizes)]
        options = zip(self._parts, (0.01, 0.0, 0.0), (1.0, 1.0, _HEAD_RATE), strict=True)
        self.optimiser = torch.optim.AdamW(
            [{"params": [part], "weight_decay": decay, "scale": scale} for part, decay, scale in options],
            betas=(0.9, 0.98),
            fused=True,
        )
        self._sizes = sizes

    def step(self, rate: float) -> None:
        """Make one update from the collected gradients, and clear them."""
        gradient = self.gradient.float()
        norm = gradient.norm()
        gradient *= (1.0 / (norm + 1e-6)).clamp(max=1.0)
        for part, piece in zip(self._parts, gradient.split(self._sizes), strict=True):
            part.grad = piece
        for group in self.optimiser.param_groups:
            group["lr"] = rate * group["scale"]
        self.optimiser.step()
        self.gradient.zero_()
        self.publish()

    def publish(self) -> None:
        """Copy the master weights to the model."""
        self.copy.copy_(self.master)

    def average(self, workers: int) -> None:
        """Replace the master weights by their average over all workers."""
        torch.distributed.all_reduce(self.master)
        self.master /= workers
        self.publish()


def rate_at(recipe: Recipe, step: int, steps: int) -> float:
    """Return the learning rate of a step.

    Args:
        recipe: Settings of the stage.
        step: Number of the step, from 0.
        steps: Number of steps for all examples, including steps after `recipe.until`.
    """
    warm = min(1.0, (step + 1) / recipe.warmup) if recipe.warmup else 1.0
    return recipe.rate * warm * (1 - (1 - recipe.last) * step / steps)


def weights_of(model: Reader, weights: Weights) -> dict[str, Tensor]:
    """Return the model's state in float32, with the master weights instead of the bfloat16 copies.

    Args:
        model: Network that `weights` was made from.
        weights: Parameters with their masters.
    """
    state = {name: tensor.float().clone() for name, tensor in model.state_dict().items()}
    at = 0
    named = [(name, each) for name, each in model.named_parameters() if each.requires_grad]
    named.sort(key=lambda pair: pair[1].data_ptr())
    for name, each in named:
        state[name] = weights.master[at : at + each.numel()].view(each.shape).clone()
        at += each.numel()
    return state


class Worker:
    """Worker process of a stage, with its batches, weights, progress and checkpoints."""

    def __init__(self, rank: int, recipe: Recipe, examples: Sequence[Example], first: Path, out: Path) -> None:
        self.rank, self.recipe, self.examples, self.out = rank, recipe, examples, out
        self.model = Reader()
        self.model.load_state_dict(torch.load(first))
        self.weights = Weights(self.model)
        lengths = [len(each.ids) for each in examples]
        self.plan = batches(lengths, recipe.batch, rank, recipe.workers, recipe.seed)
        self.end = round(len(self.plan) * recipe.until)
        self.done = 0
        self.losses: list[float] = []

    def train(self) -> None:
        """Run the remaining steps and save checkpoints. The first worker also reports and saves the trained weights."""
        self._resume()
        began, saved, first = time.monotonic(), time.monotonic(), self.done
        while self.done < self.end:
            for _ in range(min(self.recipe.average_every, self.end - self.done)):
                self._step()
            self._average()
            if self.rank == 0 and ((self.done // self.recipe.average_every) % 5 == 0 or self.done == self.end):
                self._report((time.monotonic() - began) / (self.done - first))
            if self._together(time.monotonic() - saved > self.recipe.save_every):
                self._save()
                saved = time.monotonic()
        if self.rank == 0:
            save_atomic(weights_of(self.model, self.weights), self.out / f"{self.recipe.name}.pt")

    def _step(self) -> None:
        loss = _loss_of(self.model, collate([self.examples[at] for at in self.plan[self.done]]))
        loss.backward()
        self.weights.step(rate_at(self.recipe, self.done, len(self.plan)))
        self.losses.append(loss.item())
        self.done += 1

    def _average(self) -> None:
        if self.recipe.workers > 1:
            self.weights.average(self.recipe.workers)

    def _together(self, wish: bool) -> bool:
        """Return the first worker's wish in all workers, so that all do the same thing."""
        if self.recipe.workers == 1:
            return wish
        flag = torch.tensor([float(wish)])
        torch.distributed.broadcast(flag, 0)
        return bool(flag.item())

    def _report(self, seconds: float) -> None:
        per_step = self.recipe.batch * self.recipe.workers
        recent = self.losses[-160:]
        left = (self.end - self.done) * seconds / 60
        print(
            f"{self.recipe.name}: {self.done * per_step}/{self.end * per_step} examples, {per_step / seconds:.1f}/s, "
            f"loss {sum(recent) / len(recent):.3f}, {left:.0f} min left",
            flush=True,
        )

    def _state_path(self, rank: int) -> Path:
        return self.out / f"{self.recipe.name}.worker{rank}.pt"

    def _save(self) -> None:
        state = {"done": self.done, "steps": len(self.plan), "master": self.weights.master}
        save_atomic(state | {"optimiser": self.weights.optimiser.state_dict()}, self._state_path(self.rank))

    def _resume(self) -> None:
        """Load the last checkpoint, if any. If the workers stopped at different steps, all load the first worker's."""
        if not all(self._state_path(rank).exists() for rank in range(self.recipe.workers)):
            return
        states: list[dict[str, Any]] = [torch.load(self._state_path(r)) for r in range(self.recipe.workers)]
        if states[0]["steps"] != len(self.plan):
            raise SystemExit(f"{self._state_path(0)} is of another run: delete it or choose another --out")
        state = states[self.rank] if len({each["done"] for each in states}) == 1 else states[0]
        self.weights.master.copy_(state["master"])
        self.weights.optimiser.load_state_dict(state["optimiser"])
        self.weights.publish()
        self.done = state["done"]


def save_examples(examples: Sequence[Example], path: Path) -> None:
    """Write examples to a compressed archive in one step.

    Args:
        examples: At least one example, with token ids below 65,536.
        path: File to write. An existing file is replaced.
    """
    ids = np.concatenate([np.asarray(each.ids, dtype=np.uint16) for each in examples])
    labels = np.asarray([(len(e.ids), e.split, e.start, e.end) for e in examples], dtype=np.int32)
    with AtomicFile(path) as file:
        np.savez_compressed(file, ids=ids, labels=labels)


def load_examples(path: Path) -> list[Example]:
    """Return the examples in an archive."""
    with np.load(path) as stored:
        ids, labels = stored["ids"], stored["labels"]
    ends = labels[:, 0].cumsum()
    return [
        Example(ids[end - length : end].tolist(), split, start, last)
        for end, (length, split, start, last) in zip(ends.tolist(), labels.tolist(), strict=True)
    ]


def save_atomic(value: object, path: Path) -> None:
    """Write a checkpoint in one step.

    Args:
        value: Anything that `torch.save` can write.
        path: File in an existing folder. An existing file is replaced.
    """
    with AtomicFile(path) as file:
        torch.save(value, file)


def _leave_with(parent: BaseProcess) -> None:
    """End this process when its parent ends, since a killed parent cannot stop its workers."""
    parent.join()
    os._exit(1)


def _work(rank: int, recipe: Recipe, examples: Path, first: Path, out: Path) -> None:
    """Run a worker process."""
    torch.set_num_threads(recipe.threads)
    torch.manual_seed(recipe.seed)
    parent = parent_process()
    if parent is not None:
        Thread(target=_leave_with, args=(parent,), daemon=True).start()
    if recipe.workers > 1:
        store = torch.distributed.FileStore(str(out / "meet"), recipe.workers)
        torch.distributed.init_process_group(
            "gloo", rank=rank, world_size=recipe.workers, timeout=timedelta(hours=6), store=store
        )
    Worker(rank, recipe, load_examples(examples), first, out).train()
    if recipe.workers > 1:
        torch.distributed.destroy_process_group()


def run(recipe: Recipe, examples: Path, first: Path, out: Path) -> Path:
    """Train a stage, from its last checkpoint if there is one. If its trained weights exist, do nothing.

    Args:
        recipe: Settings of the stage.
        examples: File of prepared examples.
        first: File with the weights to start from.
        out: Folder of checkpoints and of the trained weights.

    Returns:
        The file with the trained weights.

    Raises:
        SystemExit: A checkpoint in `out` belongs to another run. With several workers, torch raises
            `ProcessExitedException` instead.
    """
    from torch.multiprocessing.spawn import spawn

    reached = out / f"{recipe.name}.pt"
    if reached.exists():
        return reached
    (out / "meet").unlink(missing_ok=True)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    if recipe.workers == 1:
        _work(0, recipe, examples, first, out)
    else:
        arguments = (recipe, examples, first, out)
        spawn(_work, arguments, nprocs=recipe.workers)
    return reached
