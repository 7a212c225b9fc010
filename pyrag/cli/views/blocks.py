"""Parts of a trace on a terminal, shared by the live view and the view of saved traces."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.syntax import Syntax
from rich.text import Text

from pyrag._io.lines import lines_of
from pyrag.agents.engine import about_engine
from pyrag.cli.views.excerpt import evidence_of
from pyrag.cli.views.words import coverage_lines, field_words
from pyrag.trace.confidence import confidence
from pyrag.trace.model import Passage, Program, Step, Trace, shorten
from pyrag.trace.reducer import StepState
from pyrag.trace.verdict import COMMAND_LINE, is_embedded, is_weak, remark
from pyrag.trace.words import counted

ORIGINS = {"plan": "Program", "check": "Program, revised after a check", "repair": "Program, repaired"}

_MAX_CITATIONS = 20  # citations shown with an answer


def open_step_view(step: StepState) -> Text:
    """Return one line for a step without a result."""
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
    """Return two lines that name the engine and the retriever.

    Args:
        engine: Spec of the engine.
        retriever: Name of the retriever.
    """
    note = f" ({about})" if (about := about_engine(engine)) else ""
    return Text(f"engine: {engine}{note}\nretriever: {retriever}", style="dim")


def sub_queries_view(sub_queries: tuple[str, ...]) -> Group:
    lines = [_indented(Text(f"{number}. {query}")) for number, query in enumerate(sub_queries, start=1)]
    return Group(Text("Sub-queries", style="bold cyan"), *lines)


def program_view(program: Program) -> Group:
    title = ORIGINS.get(program.origin, "Program")
    return Group(Text(title, style="bold cyan"), code_view(program.source))


def code_view(source: str) -> Padding:
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
        step: Finished step.
        passages: Passages of the trace by id, for their titles. None while the question runs.
    """
    mark, style = ("✗ ", "red") if step.error else ("? ", "yellow") if unknown(step) else ("✓ ", "green")
    took = "memo" if step.memo else f"{step.seconds:.2f} s"
    line = Text.assemble((mark, style), (step.primitive, "bold"), f" {shorten(step.query)} ")
    if step.error:
        return line + Text(f"→ {shorten(step.error, 120)}", style="red")
    if step.answer:
        attempts = f", {counted(len(step.attempts), 'attempt')}" if step.attempts else ""
        return line + Text.assemble("→ ", (shorten(step.answer.text), "bold"), (f"  ({took}{attempts})", "dim"))
    if output := str(step.coverage or step.output):
        return line + Text.assemble(f"→ {shorten(output)}", (f"  ({took})", "dim"))
    titles = ", ".join(dict.fromkeys(passages[passage].title for passage in step.passages)) if passages else ""
    result = f"→ {counted(len(step.passages), 'passage')}" + (f": {shorten(titles, 90)}" if titles else "")
    return line + Text.assemble(result, (f"  ({took})", "dim"))


def unknown(step: Step) -> bool:
    return step.answer is not None and not step.answer.known


def answer_view(trace: Trace) -> Group:
    """Return the answer with confidence, numbered citations and cost."""
    lines: list[RenderableType] = []
    if trace.error:
        lines.append(Text(f"✗ {trace.error.message}", style="bold red"))
    if not trace.error or trace.answer.known or trace.citations:
        numbers = "".join(f" [{citation.number}]" for citation in trace.citations[:_MAX_CITATIONS])
        style = "bold green" if trace.answer.known and not is_weak(trace) else "bold yellow"
        label = "Answer: " if not trace.error else "Partial answer: "
        sure = confidence(trace) if trace.answer.known else None
        note = "" if sure is None else f"  confidence {sure:.2f}"
        answer = (trace.answer.text, style), (numbers, "cyan"), (note, "dim")
        lines.append(Text.assemble(("\n" + label, "bold"), *answer))
    if sentence := remark(trace, COMMAND_LINE):
        lines.append(Text(f"! {sentence}", style="yellow"))
    lines += [Text(sentence, style="dim") for sentence in coverage_lines(trace)]
    for citation in trace.citations[:_MAX_CITATIONS]:
        passage = trace.passages[citation.passage]
        where = f"  ({passage.place})" if passage.place else ""
        facts = f"  {shorten(field_words(passage.metadata), 120)}" if passage.metadata else ""
        body = f": {evidence_of(citation, trace)}{where}{facts}"
        head = (f"[{citation.number}] ", "cyan"), (passage.title or passage.id, "bold")
        lines.append(_indented(Text.assemble(*head, body)))
    if (more := len(trace.citations) - _MAX_CITATIONS) > 0:
        lines.append(_indented(Text(f"and {more:,} more: see them with --json or --trace FILE", style="dim")))
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
        parts.append(f"{usage.unused_calls + usage.unused_retrievals} of them made ahead and not used")
    if usage.cached_calls:
        parts.append(f"{usage.cached_calls} from the cache")
    if usage.cost is not None:
        parts.append(f"cost {usage.cost:.4g}")
    return Text(" · ".join([*parts, f"{usage.seconds:.2f} s"]), style="dim")
