"""Live view of a question on a terminal while it is answered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Self

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.live import Live
from rich.segment import Segment
from rich.text import Text

from pyrag.cli.views.blocks import (
    answer_view,
    code_view,
    engine_line,
    error_view,
    open_step_view,
    program_view,
    step_view,
    sub_queries_view,
)
from pyrag.cli.views.terminal import ReaderGone, printable, raw_stream
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
from pyrag.trace.model import Trace
from pyrag.trace.reducer import QuestionState, reduce

_PHASES = {
    "waiting": "writing the plan …",
    "decomposing": "writing the plan …",
    "planning": "writing the plan …",
    "repairing": "repairing the program …",
}


class SafeConsole(Console):
    """Console that removes colours and cursor movements from texts, and emits only its own."""

    @property
    def file(self) -> IO[str]:
        """Raw stream behind the safe streams, so that the console's own colours are kept."""
        return raw_stream(super().file)

    @file.setter
    def file(self, new_file: IO[str]) -> None:
        self._file = new_file

    def on_broken_pipe(self) -> None:
        raise ReaderGone

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of a renderable with printable texts.

        Args:
            renderable: Object to show.
            options: Options of rich. None for the console's own.
        """
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text))


class LiveView:
    """Observer that prints finished steps, with the steps that are running below them."""

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
        # Update before printing, which draws the live part again. Calls are too many to draw each of them.
        self._live.update(under_way(self.state), refresh=not isinstance(event, AgentStarted | AgentFinished | Searched))
        if (news := _news(event)) is not None:
            self._live.console.print(news)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop drawing inside the block, so that the user can be asked something."""
        self._live.stop()
        try:
            yield
        finally:
            self._live.start(refresh=True)

    def finish(self, trace: Trace) -> None:
        self.console.print(answer_view(trace))


def under_way(state: QuestionState) -> RenderableType:
    """Return the view of the open steps, the program being written, or the current phase."""
    if state.open_steps:
        return Group(*map(open_step_view, state.open_steps))
    if state.draft:
        return Group(Text("Writing the program …", style="dim"), code_view(state.draft))
    return Text(_PHASES.get(state.phase, ""), style="dim")


def _news(event: Event) -> RenderableType | None:
    """Return the lines that an event adds to the output; None if it only changes the live part."""
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
