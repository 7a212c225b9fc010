"""pyrag as an environment of verifiers, with the real library and a model on loopback: `make test-integrations`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.server.conftest import ModelServer, serving

vf = pytest.importorskip("verifiers.v1", reason="verifiers is not installed")
pytestmark = pytest.mark.filterwarnings("default")  # the library's own deprecations

QUESTION = "In which city was the director of The Seventh Seal born?"
SUBS = ["Who directed The Seventh Seal?", "In which city was that director born?"]
PROGRAM = f"""```python
director = answer("{SUBS[0]}", retrieve("{SUBS[0]}"))
city = answer(f"In which city was {{director}} born?", retrieve(f"In which city was {{director}} born?"))
final_answer = city
```"""


class Policy(ModelServer):
    """Replies as a good policy would, or with the one text of `said`."""

    said: str = ""
    town: str = "Uppsala"

    def reply(self, body: dict[str, Any]) -> str:
        if self.said or "answer" not in self.roles[-1]:
            return self.said or self.replies[self.roles[-1]]
        asked = body["messages"][-1]["content"].rpartition("Question: ")[2]
        return f"<answer>{'Ingmar Bergman' if 'directed' in asked else self.town}</answer>"


@pytest.fixture
def policy() -> Iterator[Policy]:
    with serving(Policy(replies={"plan": PROGRAM, "decompose": json.dumps({"sub_queries": SUBS})})) as server:
        assert isinstance(server, Policy)
        yield server


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    (tmp_path / "toy").mkdir()
    lines = [{"id": "1", "question": QUESTION, "answers": ["Uppsala"]}, {"id": "2", "question": "Who?", "answers": []}]
    text = "".join(json.dumps(one) + "\n" for one in lines)
    (tmp_path / "toy/questions.jsonl").write_text(text.replace('"answers": []', '"answers": [], "answerable": false'))
    return tmp_path


async def rolled_out(policy: Policy, questions: Path, role: str, *, harness: Any = None, **weights: float) -> Any:
    """Run one rollout of the answerable question and return its trace."""
    taskset = {"id": "pyrag-rl", "data": str(questions), "sets": ["toy"], "task": weights}
    environment = vf.load_environment(
        vf.resolve_env_config({"taskset": taskset, "agent": {"harness": {"role": role, **(harness or {})}}})
    )
    (task,) = environment.taskset
    assert (task.data.prompt, task.key) == (QUESTION, "toy:1")
    client = vf.EvalClientConfig(base_url=policy.url, api_key_var="PYRAG_TEST_UNSET")
    async with environment.serving():
        context = vf.ModelContext("policy", client, vf.SamplingConfig(temperature=0.7))
        episode = await environment.run_slot(environment.slots(task)[0], context)
    assert episode.errors == []
    (trace,) = episode.traces
    return trace


@pytest.mark.parametrize("role", ["answer", "plan", "decompose"])
async def test_one_role_is_trained_and_the_others_are_frozen(policy: Policy, questions: Path, role: str) -> None:
    trace = await rolled_out(policy, questions, role)
    assert (trace.ok, trace.reward, trace.metrics["em"]) == (True, 1.0, 1.0)
    assert set(policy.roles) == {role}, "frozen agents never ask the trained model"
    assert {body["model"] for body in policy.bodies} == {"policy"}
    completions = [branch.messages[-1].content for branch in trace.branches]
    assert completions == [policy.reply(body) for body in policy.bodies]
    assert len(trace.calls) == len(policy.bodies) == (1 if role != "answer" else len(completions))
    assert all(branch.trainable for branch in trace.branches)
    assert trace.info["pyrag"]["answer"]["text"] == "Uppsala"


async def test_a_rollout_is_rewarded_by_weighted_f1_and_exact_match(policy: Policy, questions: Path) -> None:
    policy.town = "Uppsala in Sweden"
    trace = await rolled_out(policy, questions, "answer", f1_weight=0.5, em_weight=0.5)
    assert trace.metrics["em"] == 0.0
    assert trace.reward == pytest.approx(0.5 * 0.5)  # one of three tokens: F1 = 2 · (1/3 · 1) / (4/3)


@pytest.mark.parametrize("role", ["answer", "plan", "decompose"])
async def test_a_completion_out_of_form_scores_nothing(policy: Policy, questions: Path, role: str) -> None:
    policy.said = "I would rather talk about the weather."
    trace = await rolled_out(policy, questions, role)
    assert (trace.ok, trace.reward) == (True, 0.0)
    assert trace.branches[0].messages[-1].content == policy.said


async def test_a_dead_endpoint_is_an_error_and_no_reward(policy: Policy, questions: Path) -> None:
    policy.refuse = lambda body: (500, {"error": {"message": "out of memory"}})
    trace = await rolled_out(policy, questions, "decompose")
    assert (trace.ok, trace.rewards) == (False, {})
    assert "out of memory" in trace.errors[-1].message


async def test_requests_are_those_of_the_trainer_and_the_settings(policy: Policy, questions: Path) -> None:
    await rolled_out(policy, questions, "decompose")
    await rolled_out(policy, questions, "decompose", harness={"settings": {"structured": False}})
    formed, free = policy.bodies
    assert {body["temperature"] for body in policy.bodies} == {0.7}, "the trainer's sampling"
    assert formed.keys() - free.keys() == {"response_format"}


async def test_a_plan_agent_gets_the_repairs_it_was_given(policy: Policy, questions: Path) -> None:
    policy.said = "```python\nfinal_answer = answer(1, 2, 3, 4)\n```"
    await rolled_out(policy, questions, "plan")
    assert len(policy.bodies) == 1
    await rolled_out(policy, questions, "plan", harness={"repairs": 2})
    assert len(policy.bodies) == 1 + 3
