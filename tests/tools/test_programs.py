"""Programs that call tools, well-meant and hostile: the answer, the steps, the memo, the budget, the replay."""

from __future__ import annotations

import asyncio
import json
import threading
from dataclasses import is_dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pyrag.agents.llm import make_llm_agents
from pyrag.cli.views.blocks import cost_line, step_view
from pyrag.embedded import embedded_agents
from pyrag.episode.ledger import Recording
from pyrag.llm.clients.scripted import ScriptedChat
from pyrag.llm.protocol import Message
from pyrag.retrieval.memory import InMemoryRetriever
from pyrag.tools import Sourced, ToolError, tool
from pyrag.trace.model import Passage, Usage
from pyrag.trace.verdict import COMMAND_LINE, remark
from tests.tools.conftest import PASSAGES, Desk

TOWNS = {"Alpha": 1200, "Gamma": 800}


def population(city: str, year: int = 2020) -> int | None:
    """Inhabitants of a city."""
    return TOWNS.get(city)


async def neighbours(city: str) -> list[str]:
    """Cities beside a city."""
    await asyncio.sleep(0)
    return sorted(set(TOWNS) - {city})


async def test_programs_compute_with_results(desk: Desk) -> None:
    program = 'total = sum(population(one) for one in ["Alpha", *neighbours("Alpha")])\nfinal_answer = total'
    trace = await desk.ask(program, tools=[population, neighbours])
    assert trace.answer.text == "2000"
    shown = [(step.primitive, step.query, step.output, step.mode) for step in trace.steps]
    assert shown == [
        ("neighbours", "Alpha", '["Gamma"]', "data"),
        ("population", "Alpha", "1200", "data"),
        ("population", "Gamma", "800", "data"),
    ]
    assert trace.usage.tool_calls == 3
    assert trace.roles["tool.population"].requests == 2
    assert trace.warnings == ()


async def test_planner_reads_signature_and_docstring(desk: Desk) -> None:
    await desk.ask('final_answer = population("Alpha")', tools=[population])
    assert desk.model is not None
    system = desk.model.calls[1][0].content
    assert "\n- population(city: str, year: int = 2020) -> int | None\n  Inhabitants of a city.\n" in system
    assert system.endswith("```python block, and nothing else.")


async def test_prompts_stay_as_they_are_without_tools(desk: Desk) -> None:
    await desk.ask("final_answer = 1")
    assert desk.model is not None
    assert not any(word in desk.model.calls[1][0].content for word in ("{{tools}}", "Besides, the program"))


async def test_independent_calls_run_side_by_side(desk: Desk) -> None:
    both = threading.Barrier(2, timeout=30)

    def meet(name: str) -> str:
        """Waits for the other."""
        both.wait()
        return name

    trace = await desk.ask('a = meet("a")\nb = meet("b")\nfinal_answer = a + b', tools=[meet])
    assert trace.answer.text == "ab"


@pytest.mark.parametrize(
    "loop",
    [
        "found = [meet(name) for name in names]",
        "found = []\nfor name in names:\n    found.append(meet(name))",
    ],
)
async def test_calls_of_a_loop_run_side_by_side(desk: Desk, loop: str) -> None:
    all_three = threading.Barrier(3, timeout=30)

    def meet(name: str) -> str:
        """Waits for the others."""
        all_three.wait()
        return name

    trace = await desk.ask(f'names = ["a", "b", "c"]\n{loop}\nfinal_answer = "".join(found)', tools=[meet])
    assert trace.answer.text == "abc"


async def test_equal_calls_are_made_once(desk: Desk) -> None:
    calls: list[str] = []

    def look(name: str) -> str:
        """Looks."""
        calls.append(name)
        return name

    trace = await desk.ask('a = look("x")\nb = look("x")\nfinal_answer = a + b', tools=[look])
    assert (trace.answer.text, calls) == ("xx", ["x"])
    assert [step.memo for step in trace.steps] == [False, True]
    assert trace.usage.tool_calls == 1


async def test_tools_with_effects_keep_order_and_have_no_memo(desk: Desk) -> None:
    log: list[str] = []

    @tool(effects=True)
    def note(text: str) -> int:
        """Writes down."""
        log.append(text)
        return len(log)

    program = 'a = note("x")\nb = note("x")\nc = note("y")\nfinal_answer = f"{a} {b} {c}"'
    trace = await desk.ask(program, tools=[note])
    assert (trace.answer.text, log) == ("1 2 3", ["x", "x", "y"])


@pytest.mark.parametrize("name", ["note", "\N{FULLWIDTH LATIN SMALL LETTER N}ote"])
async def test_nothing_with_effects_runs_after_an_error(desk: Desk, name: str) -> None:
    log: list[str] = []

    @tool(effects=True)
    def note(text: str) -> None:
        """Writes down."""
        log.append(text)

    await desk.ask(f'a = 1 // 0\nb = {name}("x")\nfinal_answer = 1', tools=[note])
    assert log == []


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("population(3)", "population() cannot take this 'city': Expected `str`, got `int`"),
        ('population("Alpha", True)', "population() cannot take this 'year': Expected `int`, got `bool`"),
        ("population()", "population() missing a required argument: 'city'"),
        ('population("Alpha", town="x")', "population() got an unexpected keyword argument 'town'"),
        ('population("Alpha", city="Beta")', "population() multiple values for argument 'city'"),
        ('population(**{"city": ["x"]})', "population() cannot take this 'city': Expected `str`, got `array`"),
        ('population({"self": 1})', "population() cannot take this 'city': Expected `str`, got `object`"),
        ('population({1: "x"})', "population() takes dicts with text as keys only"),
        ("population(population)", "a value of type"),
        ("population(lambda: 1)", "a value of type"),
        ('population("x" * 300_000)', "takes at most 262144 bytes of arguments"),
        ('population("x" * 3_000_000)', "a value larger than"),
    ],
)
async def test_wrong_arguments_are_errors_of_the_program(desk: Desk, call: str, message: str) -> None:
    trace = await desk.ask(f"final_answer = {call}", 'final_answer = population("Alpha")', tools=[population])
    assert trace.answer.text == "1200"
    assert message in trace.programs[0].error
    assert trace.programs[0].error.startswith("Traceback")


async def test_programs_catch_errors_of_tools(desk: Desk) -> None:
    def find(name: str) -> str:
        """Finds."""
        raise KeyError(name)

    trace = await desk.ask(
        'try:\n    a = find("x")\nexcept KeyError:\n    a = "none such"\nfinal_answer = a', tools=[find]
    )
    assert trace.answer.text == "none such"
    assert trace.steps[0].error == "find() failed: 'x'"


async def test_recursion_and_floods_end_at_the_budget(desk: Desk) -> None:
    program = "def go(n):\n    return go(population(str(n)) or n + 1)\nfinal_answer = go(0)"
    trace = await desk.ask(program, tools=[population], max_tool_calls=7)
    assert trace.error is not None
    assert (trace.error.kind, trace.usage.tool_calls) == ("budget", 7)
    assert "the budget of 7 tool calls" in trace.error.message


async def test_primitives_cannot_be_rebound_to_tools(desk: Desk) -> None:
    trace = await desk.ask('population = retrieve\nfinal_answer = population("Alpha")', tools=[population])
    assert trace.error is not None
    assert "'population' is a given function" in trace.error.message


async def test_unknown_answers_never_reach_a_tool(desk: Desk) -> None:
    program = 'town = answer("Which town?", retrieve("Alpha"))\nfinal_answer = population({})'
    for argument in ("town", 'f"{town}"', "[town]"):
        trace = await desk.ask(
            program.format(argument), tools=[population], answers=["<answer>unknown</answer>"], recovery="none"
        )
        assert not trace.answer.known
        assert trace.usage.tool_calls == 0


async def test_documents_of_tools_are_read_and_cited(desk: Desk) -> None:
    def archive(query: str) -> list[Passage]:
        """Documents of the archive."""
        return [Passage("a1", "Minutes", "The mayor of Alpha is Ada Berg.", source="minutes.txt")]

    program = 'docs = archive("mayor")\nfinal_answer = answer("Who is the mayor?", docs + retrieve("Gamma"))'
    trace = await desk.ask(program, tools=[archive], answers=["Doc [1] says it.<answer>Ada Berg</answer>"])
    assert trace.answer.text == "Ada Berg"
    assert [trace.passages[one.passage].source for one in trace.citations] == ["minutes.txt"]
    assert (trace.steps[0].passages, trace.steps[0].mode) == (("a1",), "documents")


async def test_sources_of_data_are_cited(desk: Desk) -> None:
    def census(city: str) -> Sourced[int]:
        """Inhabitants."""
        return Sourced(TOWNS[city], (Passage(f"census:{city}", "Census", f"{city}: {TOWNS[city]}"),))

    trace = await desk.ask('a = census("Alpha")\nb = census("Gamma")\nfinal_answer = a + 1', tools=[census])
    assert trace.answer.citations == ("census:Alpha",)
    assert trace.passages["census:Alpha"].text == "Alpha: 1200"


async def test_cancelling_a_question_cancels_its_tools(desk: Desk) -> None:
    started, cancelled, release = asyncio.Event(), asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    async def waits() -> None:
        """Waits."""
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    def hangs() -> None:
        """Waits in a thread."""
        loop.call_soon_threadsafe(started.set)
        release.wait()

    task = asyncio.ensure_future(desk.ask("a = waits()\nb = hangs()\nfinal_answer = [a, b]", tools=[waits, hangs]))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await cancelled.wait()
    release.set()


async def test_views_show_calls_and_count_them(desk: Desk) -> None:
    trace = await desk.ask('final_answer = population("Nowhere")', tools=[population])
    assert remark(trace, COMMAND_LINE).startswith("unknown: 1 tool call and no search led to an answer")
    assert "1 tool call" in cost_line(trace).plain
    assert step_view(trace.steps[0]).plain.startswith("✓ population Nowhere → null")


async def test_passages_are_passed_to_tools_whole(desk: Desk) -> None:
    def titles(docs: list[Passage]) -> list[str]:
        """Titles."""
        return [one.title for one in docs]

    trace = await desk.ask('final_answer = titles(retrieve("town"))', tools=[titles])
    assert trace.answer.text == "Alpha, Gamma"


async def test_recordings_replay_without_the_tool(desk: Desk) -> None:
    log: list[str] = []

    @tool(effects=True)
    def note(text: str) -> int:
        """Writes down."""
        log.append(text)
        if text == "bad":
            raise ToolError("no such text")
        return len(log)

    program = (
        'a = note("x")\nb = note("x")\nc = population("Alpha") + population("Alpha")\ntry:\n    note("bad")\n'
        'except Exception as error:\n    d = str(error)\nfinal_answer = f"{a} {b} {c} {d}"'
    )
    trace = await desk.ask(program, tools=[population, note], keep=True)
    assert trace.answer.text == "1 2 2400 note(): no such text"
    again = await desk.ask("unused", recording=Recording(trace.exchanges))
    assert (again.answer, len(log)) == (trace.answer, 3)
    outputs = [(step.query, step.output, step.memo, step.error) for step in trace.steps]
    assert [(step.query, step.output, step.memo, step.error) for step in again.steps] == outputs


async def test_failed_calls_are_made_again_by_the_repair(desk: Desk) -> None:
    tries: list[str] = []

    def flaky(name: str) -> str:
        """Fails once."""
        tries.append(name)
        if len(tries) == 1:
            raise ConnectionError("try again")
        return name

    trace = await desk.ask('final_answer = flaky("x")', 'a = flaky("x")\nfinal_answer = a', tools=[flaky])
    assert (trace.answer.text, tries) == ("x", ["x", "x"])
    assert "ToolError: flaky() failed: ConnectionError: try again" in trace.programs[0].error


async def test_one_call_may_settle_several_sub_queries(desk: Desk) -> None:
    model = ScriptedChat(
        {
            "decompose": '["How many live in Alpha?", "How many live in Gamma?", "How many live in Beta?"]',
            "plan": ['```python\nfinal_answer = len([population(one) for one in ["Alpha", "Gamma", "Beta"]])\n```'],
        }
    )
    agents = make_llm_agents(model)
    trace = await desk.ask(tools=[population], agents=agents, repairs=0)
    assert trace.warnings == ()


async def test_engines_without_tools_say_so(desk: Desk) -> None:
    trace = await desk.ask(tools=[population], agents=embedded_agents(), question="Who is the mayor of Alpha?")
    assert "the planner of embedded calls no tools: name a language model with --llm" in trace.warnings
    assert trace.usage.tool_calls == 0


async def test_methods_without_tools_say_so(desk: Desk) -> None:
    trace = await desk.ask(tools=[population], answers=["<answer>Ada</answer>"], method="vanilla")
    assert "the method vanilla calls no tools: use pyrag" in trace.warnings


async def test_a_program_that_runs_ahead_calls_no_tool(desk: Desk) -> None:
    log: list[str] = []

    def look(name: str) -> str:
        """Looks."""
        log.append(name)
        return name

    searched = asyncio.Event()

    class Watched(InMemoryRetriever):
        async def retrieve(self, query: str, topk: int) -> list[Passage]:
            if query == "Gamma":
                searched.set()
            return await super().retrieve(query, topk)

    class Slow(ScriptedChat):
        """Shows its program piece by piece and waits until what runs ahead has searched."""

        async def stream(self, messages: list[Message], sampling: Any, on_text: Any) -> Any:
            reply = await self.complete(messages, sampling)
            for line in reply.text.splitlines(keepends=True):
                on_text(line)
            await searched.wait()
            assert log == []
            return reply

    plan = '```python\na = look("x")\nb = retrieve("Gamma")\nc = look("y")\nfinal_answer = a + c\n```'
    desk.retriever = Watched(PASSAGES)
    agents = make_llm_agents(Slow({"decompose": '["q?"]', "plan": [plan]}))
    trace = await desk.ask(tools=[look], agents=agents, stream=True, repairs=0)
    assert (trace.answer.text, sorted(log)) == ("xy", ["x", "y"])
    assert trace.usage.unused_calls == 0


async def test_trace_of_tools_is_as_recorded(desk: Desk) -> None:
    """`golden.json` is the trace of one question, times aside."""

    def census(city: str) -> Sourced[dict[str, int]]:
        """People of a city."""
        return Sourced({"people": TOWNS[city]}, (Passage(f"census:{city}", "Census", f"{city}: {TOWNS[city]}"),))

    program = (
        'town = answer("Where is Ada Berg mayor?", retrieve("Ada Berg"))\npeople = census(town)["people"]\n'
        "final_answer = people"
    )
    trace = await desk.ask(program, tools=[census], answers=["Doc [1].<answer>Alpha</answer>"])
    steps = [told(replace(step, started=0.0, seconds=0.0)) for step in trace.steps]
    found = {"answer": told(trace.answer), "steps": steps, "passages": sorted(trace.passages)}
    assert found == json.loads((Path(__file__).parent / "golden.json").read_text(encoding="utf-8"))
    assert trace.usage.tool_calls == 1
    assert (Usage(tool_calls=1) + Usage(tool_calls=2)).tool_calls == 3


def told(value: Any) -> Any:
    """As JSON, without fields that are empty, zero or false."""
    found = json.loads(msgspec.json.encode(value)) if is_dataclass(value) else value
    return {key: told(one) for key, one in found.items() if one} if isinstance(found, dict) else found
