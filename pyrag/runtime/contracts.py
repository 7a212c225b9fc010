"""Types of final values: what the planner sees of them, and the conversion of an answer that is only a text."""

from __future__ import annotations

from dataclasses import replace

from pyrag.agents.protocol import Agents
from pyrag.agents.typed.contract import Contract
from pyrag.episode.corpus.primitives import offer_typed_answer
from pyrag.episode.episode import Episode
from pyrag.errors import ConfigError, ProgramFailedError
from pyrag.methods.method import Method
from pyrag.methods.program_result import Result
from pyrag.methods.typed_result import CAUSE, MisfitError, typed_answer


def offer_contract(episode: Episode, contract: Contract, method: Method) -> None:
    """Set the type of an episode's final value, and tell the planner.

    Args:
        episode: The question, before its method runs.
        contract: The type.
        method: The method that answers.

    Raises:
        ConfigError: The engine or method gives a short text, which cannot become a value of the type.
    """
    episode.contract = contract
    if not method.plans:
        return
    offer_typed_answer(episode)
    with_returns = getattr(episode.agents.planner, "with_returns", None) if method.calls_tools else None
    if with_returns is not None:
        episode.agents = replace(episode.agents, planner=with_returns(contract.returns.wanted))
    elif not contract.fills_from_text and episode.ledger.recording is None:
        raise ConfigError(_cannot_fill(episode.agents, method))


def _cannot_fill(agents: Agents, method: Method) -> str:
    writer, cure = f"the method {method.name}", "use the method pyrag"
    if method.calls_tools or not agents.calls_model:
        writer, cure = f"the engine {agents.name}", "name a language model (--llm)"
    return (
        f"{writer} answers with one short text, which cannot fill several fields or nested values: request one field "
        f"at a time, or {cure}"
    )


def with_contract(result: Result, contract: Contract) -> Result:
    """Return a result whose value has the type of a contract.

    Args:
        result: Result of a method. The value of one that is not typed is read from its answer's text.
        contract: The type.

    Raises:
        ProgramFailedError: The text does not contain a value of the type.
    """
    if result.typed:
        return result
    try:
        answer, value = typed_answer(result.answer, result.answer.text, contract)
    except MisfitError as error:
        raise ProgramFailedError(f"the answer does not have the requested type: {error}", cause=CAUSE) from None
    return replace(result, answer=answer, value=value, typed=True)
