"""HERA: an orchestrator decides which agents work on a question, and its topology runs as a program (paper, section 3).

If there is an experience library, the question is classified, and lessons about such questions are looked up. Then the
orchestrator makes a topology (algorithm 4), which is checked against the question, compiled and run. If its program
fails or needs an unknown answer, the topology is revised as in PyRAG.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace

from pyrag.episode.episode import Episode
from pyrag.episode.plan_checks import Problem
from pyrag.errors import ConfigError
from pyrag.methods.hera.experience.library import Library
from pyrag.methods.hera.protocol import Characterised, HeraTeam, Lesson, Orchestration
from pyrag.methods.hera.team import hera_team
from pyrag.methods.hera.team_primitives import PRIMITIVES
from pyrag.methods.hera.topology import STATE, Node, Topology
from pyrag.methods.hera.topology_checks import check_topology
from pyrag.methods.hera.topology_program import compile_topology
from pyrag.methods.method import Method
from pyrag.methods.program_result import Result
from pyrag.methods.repair import Draft, announce, revise_after_checks, run_repaired
from pyrag.settings import Settings
from pyrag.trace.events import Decomposed
from pyrag.trace.model import Program, Step, Trace, shorten
from pyrag.trace.view import Line, RejectedProgram, ShownStep, ViewItem, line


def open_shared(settings: Settings) -> Library | None:
    """Open the experience library that the settings name. Raises `DataError` if it cannot be used."""
    return Library.open(settings.experience) if settings.experience else None


async def answer(episode: Episode, settings: Settings) -> Result:
    """Answer with the topology that the episode already has, or else with a new topology from the orchestrator.

    Args:
        episode: The running episode.
        settings: `repairs` is the maximum number of revisions.

    Raises:
        ConfigError: The engine has no team of agents.
        ProgramFailedError: The last revision failed too.
    """
    team = episode.agents.team(hera_team)
    if team is None:
        raise ConfigError(f"method hera needs a team of agents, which {episode.agents.name} lacks: use --llm")
    episode.agents = replace(episode.agents, answerer=team.answerer, decomposer=team.decomposer, rewriter=team.rewriter)
    episode.more = PRIMITIVES

    async def revise(program: Program, error: str, origin: str) -> Draft:
        return _draft(episode, await _revised(episode, team, error), origin)

    def check(program: Program) -> Sequence[Problem]:
        return check_topology(_topology(episode), episode.question)

    topology = STATE.read(episode)
    made = Orchestration(topology) if topology else await _orchestrated(episode, team)
    program = await revise_after_checks(episode, announce(episode, _draft(episode, made, "plan")), revise, check)
    return await run_repaired(episode, program, revise, settings.repairs)


async def _orchestrated(episode: Episode, team: HeraTeam) -> Orchestration:
    question, lessons = episode.question, await _lessons(episode, team)
    request = {"question": question, "experience": [lesson.insight for lesson in lessons]}
    return await episode.requests.fresh(
        "orchestrate", request, lambda: team.orchestrator.orchestrate(question, lessons), Orchestration
    )


async def _lessons(episode: Episode, team: HeraTeam) -> Sequence[Lesson]:
    """Return the library's entries for questions of this kind."""
    question, library = episode.question, episode.shared
    if not isinstance(library, Library):
        return ()
    characterised = await episode.requests.fresh(
        "characterise", {"question": question}, lambda: team.orchestrator.characterise(question), Characterised
    )
    if characterised.note:
        episode.warn(characterised.note)
    return library.retrieve(characterised.profile)


async def _revised(episode: Episode, team: HeraTeam, error: str) -> Orchestration:
    topology, question = _topology(episode), episode.question
    request = {"question": question, "topology": asdict(topology), "error": error}
    return await episode.requests.fresh(
        "reorchestrate", request, lambda: team.orchestrator.revise(question, topology, error), Orchestration
    )


def _draft(episode: Episode, made: Orchestration, origin: str) -> Draft:
    """Return the topology as a program, and make it the episode's topology."""
    episode.keep_notes("topology", made)
    topology = made.topology
    STATE.write(episode, topology)
    # The sub-queries, as far as they are known before the first answer.
    inputs = [node.input for node in topology.nodes if node.agent == "answer_generator"]
    if known := tuple(text for text in inputs if text and "{" not in text):
        episode.observer(Decomposed(known, made.note))
    source = compile_topology(topology, episode.question)
    return Draft(Program(source, episode.agents.name, origin, rationale=topology.rationale), made.note, made.doubt)


def _topology(episode: Episode) -> Topology:
    topology = STATE.read(episode)
    assert topology is not None
    return topology


def view(trace: Trace) -> list[ViewItem]:
    """Return the course of a question: rejected programs with the reasons, then the topology that ran.

    Empty if the trace has no topology.
    """
    topology = STATE.read(trace)
    if topology is None:
        return []
    items: list[ViewItem] = []
    for number, program in enumerate(trace.programs[:-1]):
        steps = [ShownStep(step) for step in trace.steps if step.round == number]
        items += [program, *steps, RejectedProgram(program.error)]
    return [*items, *_head(topology), *_nodes(trace, topology)]


def _head(topology: Topology) -> Iterator[Line]:
    profile = topology.profile
    asks = f", asks for: {profile.asks}" if profile.asks else ""
    yield Line((("Topology", "bold cyan"), (f"  {profile.type}, {profile.difficulty}{asks}", "")))
    if topology.rationale:
        yield line(f"  {topology.rationale}", "dim")
    if topology.experience:
        yield line(f"  with experience {', '.join(map(str, topology.experience))}", "dim")


def _nodes(trace: Trace, topology: Topology) -> Iterator[ViewItem]:
    steps: dict[str, list[Step]] = {}
    for step in trace.steps:
        steps.setdefault(trace.variable_of(step), []).append(step)
    for number, node in enumerate(topology.nodes, start=1):
        after = f"  after {', '.join(node.depends_on)}" if node.depends_on else ""
        agent = f"  {node.agent.replace('_', ' ')}"
        yield Line(((f"  {number}. ", ""), (node.id, "bold"), (agent, ""), (after, "dim")))
        own = steps.get(node.id, [])
        yield from (ShownStep(step, 5) for step in own)
        if not own:
            yield _without_steps(node, trace)


def _without_steps(node: Node, trace: Trace) -> Line:
    if node.compute:
        value = trace.variables.get(node.id)
        return line(f"computed {node.compute}" + (f" → {shorten(str(value))}" if value is not None else ""), indent=5)
    return line("not needed", "dim", 5)


METHOD = Method(
    name="hera",
    answer=answer,
    view=view,
    open_shared=open_shared,
    reading_primitives=frozenset(PRIMITIVES),
)
