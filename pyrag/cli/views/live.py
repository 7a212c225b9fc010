"""The course of a question on a terminal while it is answered, and the blocks that saved traces share with it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO, Self

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.segment import Segment
from rich.syntax import Syntax
from rich.text import Text

from pyrag._io.lines import lines_of
from pyrag.cli.views.excerpt import evidence_of
from pyrag.cli.views.terminal import ReaderGone, printable, raw_stream
from pyrag.cli.views.verdict import confidence, is_weak, remark
from pyrag.cli.views.words import counted, field_words
from pyrag.runtime.engines import about_embedded
from pyrag.trace.events import (
    AgentFinished,
    AgentStarted,
    Decomposed,
    Event,
    Planned,
    Rejected,
    Searched,
    StepFinished,
    Warned,
)
from pyrag.trace.model import Passage, Program, Step, Trace, shorten
from pyrag.trace.reducer import QuestionState, StepState, reduce
from pyrag.trace.verdict import is_embedded

ORIGINS = {"plan": "Program", "check": "Program, revised after a check", "repair": "Program, repaired"}
_PHASES = {
    "waiting": "writing the plan …",
    "decomposing": "writing the plan …",
    "planning": "writing the plan …",
    "repairing": "repairing the program …",
}


class SafeConsole(Console):
    """A console whose own colours and cursor movements are the only ones that pass."""

    @property
    def file(self) -> IO[str]:
        """The raw stream behind the safe ones, so that colours pass."""
        return raw_stream(super().file)

    @file.setter
    def file(self, new_file: IO[str]) -> None:
        self._file = new_file

    def on_broken_pipe(self) -> None:
        raise ReaderGone

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of a renderable, its texts made printable.

        Args:
            renderable: What to show.
            options: Rich's own; None for the console's.
        """
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text))


class LiveView:
    """An observer that prints what is finished and shows what is under way below it."""

    def __init__(self, engine: str, retriever: str, console: Console | None = None) -> None:
        self.console = console or SafeConsole()
        self.state = QuestionState()
        self._live = Live(console=self.console, refresh_per_second=8, transient=True)
        self._intro = engine_line(engine, retriever)

    def __enter__(self) -> Self:
        self.console.print(self._intro)
        self._live.start()
        self._live.update(under_way(self.state), refresh=True)
        return self

    def __exit__(self, *exc: object) -> None:
        self._live.stop()

    def __call__(self, event: Event) -> None:
        self.state = reduce(self.state, event)
        # First, since printing shows again what is under way; calls are too many to draw each.
        self._live.update(under_way(self.state), refresh=not isinstance(event, AgentStarted | AgentFinished | Searched))
        if (news := _news(event)) is not None:
            self._live.console.print(news)

    def finish(self, trace: Trace) -> None:
        self.console.print(answer_view(trace))


def under_way(state: QuestionState) -> RenderableType:
    """Return what happens at this moment: open steps, the program that is being written, or the phase."""
    if state.open_steps:
        return Group(*map(open_step_view, state.open_steps))
    if state.draft:
        return Group(Text("Writing the program …", style="dim"), _code(state.draft))
    return Text(_PHASES.get(state.phase, ""), style="dim")


def _news(event: Event) -> RenderableType | None:
    """Return what an event adds to the output; None for one that only changes what is under way."""
    match event:
        case Decomposed(sub_queries):
            return sub_queries_view(sub_queries)
        case Planned(program):
            return program_view(program)
        case Rejected(error):
            return error_view(error)
        case StepFinished(step):
            return step_view(step)
        case Warned(message):
            return Text(f"! {message}", style="yellow")
    return None


def open_step_view(step: StepState) -> Text:
    """Return one line for a step that has no result, or none yet."""
    if step.status == "stopped":
        return Text.assemble(
            ("■ ", "dim"), (step.primitive, "bold"), f" {shorten(step.query)} ", ("not finished", "dim")
        )
    if not step.recoveries:
        return Text.assemble(("… ", "yellow"), (step.primitive, "bold"), f" {shorten(step.query)}")
    last = step.recoveries[-1]
    what = f"{last.policy} to {shorten(last.query, 60)!r}, top-{last.topk}" if last.query else None
    return Text.assemble(("↻ ", "yellow"), f"unknown: {what or f'{last.policy} to top-{last.topk}'} …")


def engine_line(engine: str, retriever: str) -> Text:
    """Return a line that names engine and retriever.

    Args:
        engine: Spec of the engine.
        retriever: Name of the retriever.
    """
    note = f" ({about})" if (about := about_embedded(engine)) else ""
    return Text(f"engine: {engine}{note} · retriever: {retriever}", style="dim")


def sub_queries_view(sub_queries: tuple[str, ...]) -> Group:
    lines = [_indented(Text(f"{number}. {query}")) for number, query in enumerate(sub_queries, start=1)]
    return Group(Text("Sub-queries", style="bold cyan"), *lines)


def program_view(program: Program) -> Group:
    title = ORIGINS.get(program.origin, "Program")
    return Group(Text(title, style="bold cyan"), _code(program.source))


def _code(source: str) -> Padding:
    code = Syntax("", "python", theme="ansi_dark", background_color="default").highlight(source.rstrip())
    code.rstrip()
    code.no_wrap = False
    return _indented(code)


def error_view(error: str) -> Group:
    lines = lines_of(error.strip())
    return Group(Text("Rejected", style="bold red"), _indented(Text("\n".join(lines[-6:]))))


def step_view(step: Step, passages: dict[str, Passage] | None = None) -> Text:
    """Return one line for a step: query, result, seconds.

    Args:
        step: The step.
        passages: Those of the trace by id, to name titles; None while it runs.
    """
    mark, style = ("✗ ", "red") if step.error else ("? ", "yellow") if unknown(step) else ("✓ ", "green")
    took = "memo" if step.memo else f"{step.seconds:.2f} s"
    line = Text.assemble((mark, style), (step.primitive, "bold"), f" {shorten(step.query)} ")
    if step.error:
        return line + Text(f"→ {shorten(step.error, 120)}", style="red")
    if step.answer:
        tried = f", {counted(len(step.attempts), 'attempt')}" if step.attempts else ""
        return line + Text.assemble("→ ", (shorten(step.answer.text), "bold"), (f"  ({took}{tried})", "dim"))
    if step.output:
        return line + Text.assemble(f"→ {shorten(step.output)}", (f"  ({took})", "dim"))
    titles = ", ".join(dict.fromkeys(passages[one].title for one in step.passages)) if passages else ""
    found = f"→ {counted(len(step.passages), 'passage')}" + (f": {shorten(titles, 90)}" if titles else "")
    return line + Text.assemble(found, (f"  ({took})", "dim"))


def unknown(step: Step) -> bool:
    return step.answer is not None and not step.answer.known


def answer_view(trace: Trace) -> Group:
    """Return the answer with confidence, numbered citations and cost."""
    lines: list[RenderableType] = []
    if trace.error:
        lines.append(Text(f"✗ {trace.error.message}", style="bold red"))
    if not trace.error or trace.answer.known or trace.citations:
        numbers = "".join(f" [{citation.number}]" for citation in trace.citations)
        style = "bold green" if trace.answer.known and not is_weak(trace) else "bold yellow"
        label = "Answer: " if not trace.error else "Partial answer: "
        sure = confidence(trace) if trace.answer.known else None
        shown = "" if sure is None else f"  confidence {sure:.2f}"
        answer = (trace.answer.text, style), (numbers, "cyan"), (shown, "dim")
        lines.append(Text.assemble(("\n" + label, "bold"), *answer))
    if said := remark(trace):
        lines.append(Text(f"! {said}", style="yellow"))
    for citation in trace.citations:
        passage = trace.passages[citation.passage]
        where = f"  ({passage.place})" if passage.place else ""
        facts = f"  {shorten(field_words(passage.metadata), 120)}" if passage.metadata else ""
        body = f": {evidence_of(citation, trace)}{where}{facts}"
        head = (f"[{citation.number}] ", "cyan"), (passage.title or passage.id, "bold")
        lines.append(_indented(Text.assemble(*head, body)))
    return Group(*lines, cost_line(trace))


def _indented(text: Text) -> Padding:
    return Padding(text, (0, 0, 0, 2), expand=False)


def cost_line(trace: Trace) -> Text:
    usage = trace.usage
    tokens = usage.prompt_tokens + usage.completion_tokens
    asks_model = not is_embedded(trace)
    parts = [
        *([counted(usage.model_calls, "model call")] if asks_model else []),
        counted(usage.retrievals, "retrieval"),
        *([counted(usage.tool_calls, "tool call")] if usage.tool_calls else []),
        *([counted(tokens, "token")] if asks_model else []),
    ]
    if trace.repairs:
        parts.append(counted(trace.repairs, "repair"))
    if usage.unused_calls or usage.unused_retrievals:
        parts.append(f"{usage.unused_calls + usage.unused_retrievals} of them begun ahead in vain")
    if usage.cached_calls:
        parts.append(f"{usage.cached_calls} from the cache")
    if usage.cost is not None:
        parts.append(f"cost {usage.cost:.4g}")
    return Text(" · ".join([*parts, f"{usage.seconds:.2f} s"]), style="dim")
