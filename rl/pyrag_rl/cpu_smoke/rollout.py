"""Small rollout server over transformers, for tests (`rollout: hf_cpu`).

verl's own vLLM rollout also runs on a CPU (`rollout: vllm`, see `vllm`); this one starts faster and needs no vLLM.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from typing import Any

import ray
import torch
import verl.workers.rollout.base as rollouts
from verl.workers.rollout.replica import RolloutReplica, RolloutReplicaRegistry, TokenOutput

NAME = "hf_cpu"
_WAIT = 0.02  # seconds in which requests are collected into a batch


class HFServer:
    """Server that samples from a transformers model, batching requests that arrive together."""

    def __init__(self, config: Any, model_config: Any) -> None:
        from transformers import AutoModelForCausalLM

        torch.manual_seed(config.seed)
        torch.set_num_threads(max(1, (os.cpu_count() or 2) - 1))
        self._model = AutoModelForCausalLM.from_pretrained(model_config.local_path, dtype=torch.float32).eval()
        self._stop = self._model.generation_config.eos_token_id
        self._pad = self._model.generation_config.pad_token_id
        self._config = config
        self._step: int | None = None
        self._waiting: list[tuple[list[int], int, float, asyncio.Future[TokenOutput]]] = []
        self._batching: asyncio.Task[None] | None = None

    async def generate(
        self, prompt_ids: list[int], sampling_params: Mapping[str, Any], request_id: str, **_: Any
    ) -> TokenOutput:
        """Sample a completion, with the log-probability of each of its tokens.

        Args:
            prompt_ids: Tokens of the prompt.
            sampling_params: `max_tokens` and `temperature` (0 for greedy sampling).
            request_id: Ignored, because there is no cache between requests.
        """
        room = self._config.prompt_length + self._config.response_length - len(prompt_ids)
        limit = sampling_params.get("max_tokens") or min(self._config.response_length, room)
        done: asyncio.Future[TokenOutput] = asyncio.get_running_loop().create_future()
        temperature = float(sampling_params.get("temperature", 1.0))
        self._waiting.append(([int(token) for token in prompt_ids], max(1, limit), temperature, done))
        if self._batching is None or self._batching.done():
            self._batching = asyncio.create_task(self._serve())
        return await done

    async def _serve(self) -> None:
        await asyncio.sleep(_WAIT)
        while self._waiting:
            batch, self._waiting = self._waiting, []
            try:
                completions = await asyncio.to_thread(
                    self._sample, [(ids, limit, heat) for ids, limit, heat, _ in batch]
                )
            except Exception as error:  # passed on to all waiting requests, which would otherwise wait for ever
                for *_, done in batch:
                    done.set_exception(error)
                return
            for (*_, done), (tokens, log_probs) in zip(batch, completions, strict=True):
                fields = {"global_steps": self._step}
                done.set_result(
                    TokenOutput(token_ids=tokens, log_probs=log_probs, stop_reason="completed", extra_fields=fields)
                )

    def _sample(self, asked: list[tuple[list[int], int, float]]) -> list[tuple[list[int], list[float]]]:
        """Return tokens and log-probabilities of completions. Prompts are padded on the left, for a causal model."""
        longest = max(len(ids) for ids, *_ in asked)
        inputs = torch.tensor([[self._pad] * (longest - len(ids)) + ids for ids, *_ in asked])
        mask = torch.tensor([[0] * (longest - len(ids)) + [1] * len(ids) for ids, *_ in asked])
        heat = torch.tensor([[temperature or 1.0] for *_, temperature in asked])
        greedy = torch.tensor([temperature == 0 for *_, temperature in asked])
        completions: list[tuple[list[int], list[float]]] = [([], []) for _ in asked]
        open_, past, positions = set(range(len(asked))), None, mask.cumsum(-1).sub(1).clamp(min=0)
        while open_:
            with torch.no_grad():
                out = self._model(
                    input_ids=inputs, attention_mask=mask, position_ids=positions, past_key_values=past, use_cache=True
                )
            past = out.past_key_values
            log_probs = torch.log_softmax(out.logits[:, -1].float() / heat, -1)
            chosen = torch.where(greedy, log_probs.argmax(-1), torch.multinomial(log_probs.exp(), 1)[:, 0])
            for place in list(open_):
                token = int(chosen[place])
                completions[place][0].append(token)
                completions[place][1].append(float(log_probs[place, token]))
                if token == self._stop or len(completions[place][0]) >= asked[place][1]:
                    open_.discard(place)
            inputs, positions = chosen[:, None], positions[:, -1:] + 1
            mask = torch.cat([mask, torch.ones(len(asked), 1, dtype=mask.dtype)], 1)
        return completions

    def update_weights(self, named: list[tuple[str, torch.Tensor]], step: int | None) -> None:
        """Copy the trained weights into the model.

        Args:
            named: Weights by their names in the model.
            step: Number of the training step, reported with later completions.

        Raises:
            KeyError: The model has no weight of that name.
        """
        weights = self._model.state_dict()
        with torch.no_grad():
            for name, value in named:
                weights[name].copy_(value)
        self._step = step

    async def _nothing_to_do(self, *args: object, **kwargs: object) -> None:
        return None

    # Methods that verl calls on a server that shares a GPU with its trainer.
    wake_up = sleep = abort_all_requests = resume_generation = _nothing_to_do
    clear_kv_cache = release_kv_cache = resume_kv_cache = start_profile = stop_profile = _nothing_to_do


class HFReplica(RolloutReplica):  # type: ignore[misc,unused-ignore]
    async def launch_servers(self) -> None:
        from verl.utils.config import omega_conf_to_dataclass

        model = omega_conf_to_dataclass(self.model_config)
        options = {"name": _actor_name(self.replica_rank), "max_concurrency": 64, "num_cpus": 0}
        server = ray.remote(HFServer).options(**options).remote(self.config, model)
        await server.resume_generation.remote()
        self.servers = [server]
        self._server_handle, self._server_address = server, f"{NAME}://{self.replica_rank}"


class HFRollout(rollouts.BaseRollout):  # type: ignore[misc,unused-ignore]
    """Worker's side of the rollout, which sends trained weights to the server."""

    async def resume(self, tags: object) -> None:
        return None

    async def release(self) -> None:
        return None

    async def update_weights(
        self, weights: Any, global_steps: int | None = None, peft_config: object = None, **_: object
    ) -> None:
        """Send the trained weights to the server.

        Args:
            weights: Pairs of name and tensor, iterable or asynchronously iterable.
            global_steps: Number of the training step.
            peft_config: Must be None, because the server only accepts merged weights.
        """
        if peft_config is not None:
            raise NotImplementedError("hf_cpu serves merged weights: set actor_rollout_ref.model.lora.merge=True")
        named = [(name, value.detach().float().cpu().clone()) async for name, value in _each(weights)]
        await ray.get_actor(_actor_name(int(os.environ["RANK"]))).update_weights.remote(named, global_steps)


async def _each(weights: Any) -> AsyncIterator[tuple[str, torch.Tensor]]:
    if hasattr(weights, "__aiter__"):
        async for pair in weights:
            yield pair
    else:
        for pair in weights:
            yield pair


def _actor_name(rank: int) -> str:
    return f"{NAME}_server_{rank}"


RolloutReplicaRegistry.register(NAME, lambda: HFReplica)
rollouts._ROLLOUT_REGISTRY[(NAME, "async")] = f"{__name__}.HFRollout"
