"""What holds for every method: budgets, deadlines and failing services end a question, never more than that."""

from __future__ import annotations

import pytest

from pyrag.agents.llm import make_llm_agents
from pyrag.errors import PermanentServiceError, RetryableServiceError
from pyrag.llm.protocol import Reply
from tests.methods.conftest import ALL, PYRAG, SCRIPTS, Chat, World

SEARCHING = [method for method in ALL if method not in ("direct", "cot")]
FAULT = RetryableServiceError("model server http://localhost:1 did not reply: try later", service="model")


@pytest.mark.parametrize("method", ALL)
@pytest.mark.parametrize("calls", [1, 2, 3, 5])
async def test_no_method_overspends_its_calls(world: World, method: str, calls: int) -> None:
    model = Chat(SCRIPTS[method])
    trace = await world.ask(method, model, max_calls=calls)
    assert len(model.calls) <= calls
    assert trace.usage.model_calls <= calls
    if calls >= len(SCRIPTS[method]) + 2:
        assert trace.error is None
    elif trace.error is not None:
        assert trace.error.kind == "budget"
        assert not trace.answer.known


@pytest.mark.parametrize("method", ALL)
async def test_a_failing_model_ends_the_question_at_its_step(world: World, method: str) -> None:
    for number in range(1, len(SCRIPTS[method]) + 1):
        trace = await world.ask(method, Chat(SCRIPTS[method], number, FAULT))
        assert trace.error is not None
        assert (trace.error.kind, trace.error.exit_code, trace.error.message) == ("service", 3, str(FAULT))
        assert not trace.answer.known
        failed = [step for step in trace.steps if step.error]
        assert len(failed) <= 1
        assert all(step.error == str(FAULT) for step in failed)


@pytest.mark.parametrize("method", SEARCHING)
async def test_a_failing_retriever_ends_the_question_at_its_step(world: World, method: str) -> None:
    world.error = PermanentServiceError("retriever http://localhost:2 refused: check --retriever", service="retriever")
    trace = await world.ask(method)
    assert trace.error is not None
    assert (trace.error.kind, trace.error.message) == ("service", str(world.error))
    assert any(step.primitive == "retrieve" and step.error == str(world.error) for step in trace.steps)


@pytest.mark.parametrize("method", SEARCHING)
async def test_a_deadline_ends_the_question_and_keeps_its_steps(world: World, method: str) -> None:
    await world.ask("vanilla")  # starts the sandbox
    world.delay = 30.0
    trace = await world.ask(method, deadline=2.0)
    assert trace.error is not None
    assert trace.error.kind == "deadline"
    assert any(step.primitive == "retrieve" for step in trace.steps)


@pytest.mark.parametrize("method", SEARCHING)
async def test_nothing_found_is_no_fault(world: World, method: str) -> None:
    """A corpus that knows nothing of the question: an answer or none, but no error."""

    model = Chat(lambda messages: Reply("<answer>unknown</answer>"))
    if method in ("pyrag", "adaptive", "plan-only", "decompose-only"):
        model = Chat((["C"] if method == "adaptive" else []) + [PYRAG[0], PYRAG[1], *["<answer>unknown</answer>"] * 20])
    trace = await world.ask(method, model, question="Quxx?")
    assert trace.answer.known is False
    assert trace.error is None or trace.error.kind in ("program", "budget")


@pytest.mark.parametrize("method", ALL)
async def test_a_raving_model_is_survived(world: World, method: str) -> None:
    """Whatever a model says, a method ends with a trace within its budget."""
    for babble in ("", "…", "Follow up:", "<search></search>", "\\boxed{", "A\n" * 400, "<answer></answer>"):
        model = Chat(lambda messages, babble=babble: Reply(babble))  # type: ignore[misc]
        trace = await world.ask(method, agents=make_llm_agents(model), max_calls=12)
        assert trace.usage.model_calls <= 12
        assert trace.error is None or trace.error.kind in ("bad_output", "budget", "program")
