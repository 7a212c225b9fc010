"""Report of a run, `report.html`: its lessons, its validation, and the development of agent graphs and costs.

It contains the paper's figures 3, 5 and 6 for this run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from statistics import fmean

from pyrag.evaluation.reports import svg
from pyrag.evaluation.reports.writer import Table, document, plots_html, section, table_html
from pyrag.evolve.measures import PHASES, WINDOW, entropies, hand_overs, lowess, measures_of, phases
from pyrag.evolve.step_records import StepRecord, TriedTopology
from pyrag.methods.hera.experience.entry import Experience

_GRAPH = ("agents", "efficiency", "self_loops", "cycles", "diameter")


def page(records: Sequence[StepRecord], entries: Sequence[Experience], difference: str) -> str:
    """Return the HTML page.

    Args:
        records: Records of all steps.
        entries: Entries of the experience library.
        difference: Unified diff of the prompts before and after learning.
    """
    parts = [
        section("Validation", "Mean F1 on questions that nothing was learned from.", _validation(records)),
        section(
            "Updates", "An update that lowers the validation score is refused.", table_html(updates_table(records))
        ),
        section(
            "Tokens",
            "Dots: sampled trajectories; curve: LOWESS over two thirds of them (HERA, figure 3).",
            _tokens(records),
        ),
        section("Transition entropy", f"Of the hand-overs in the last {WINDOW} trajectories.", _entropy(records)),
        section("Agent graphs", "Of the sampled trajectories; below, their means by phase.", _graphs(records)),
        section("Experience", "", table_html(experience_table(entries))),
        section("Prompts", "What is new in the prompts of the agents.", f"<pre>{escape(difference)}</pre>"),
    ]
    return document("What was learned", "".join(parts))


def _validation(records: Sequence[StepRecord]) -> str:
    points = [(float(record.step), 100 * record.score) for record in records]
    return plots_html([svg.curves("Validation", {"F1": points}, "step", "F1, %")])


def _tokens(records: Sequence[StepRecord]) -> str:
    tokens = [float(trajectory.tokens) for trajectory in sampled(records)]
    return plots_html([_smoothed("Tokens of a trajectory", tokens, "tokens")])


def _graphs(records: Sequence[StepRecord]) -> str:
    measures = [measures_of(trajectory.topology, trajectory.f1) for trajectory in sampled(records)]
    values = {name: [float(getattr(graph, name)) for graph in measures] for name in _GRAPH}
    plots = [_smoothed(_name(name).capitalize(), values[name], _name(name)) for name in _GRAPH]
    return plots_html(plots) + table_html(graph_table(records))


def _smoothed(title: str, values: Sequence[float], y_name: str) -> str:
    """Plot a dot for each trajectory, and their LOWESS curve."""
    places = [float(place) for place in range(1, len(values) + 1)]
    curve = list(zip(places, lowess(places, values), strict=True))
    return svg.curves(
        title, {"LOWESS": curve}, "trajectory", y_name, highest=None, dots=list(zip(places, values, strict=True))
    )


def _name(measure: str) -> str:
    return measure.replace("_", "-")


def _entropy(records: Sequence[StepRecord]) -> str:
    values = entropies([hand_overs(trajectory.topology) for trajectory in sampled(records)])
    points = [(float(place), value) for place, value in enumerate(values, start=1)]
    return plots_html([svg.curves("Transition entropy", {"H": points}, "trajectory", "nats", highest=None)])


def sampled(records: Iterable[StepRecord]) -> list[TriedTopology]:
    """Return the sampled trajectories in order, without mutations and variants."""
    return [trajectory for record in records for trajectory in record.samples]


def updates_table(records: Iterable[StepRecord]) -> Table:
    rows = [
        [
            str(record.step), "accepted" if update.accepted else "refused", update.agent or "library",
            f"{100 * update.before:.1f}", f"{100 * update.after:.1f}", " / ".join(update.lines),
        ]
        for record in records
        for update in record.updates
    ]  # fmt: skip
    return Table(("step", "", "of", "F1 before", "F1 after", "what"), rows, left=6)


def graph_table(records: Sequence[StepRecord]) -> Table:
    """Return figure 6 as a table: the measures by question type and phase."""
    trajectories = [(record.profile, trajectory) for record in records for trajectory in record.samples]
    rows = []
    for type_ in sorted({profile.type for profile, _ in trajectories if profile}):
        for name, part in zip(PHASES, phases(len(trajectories)), strict=True):
            own = [trajectories[place][1] for place in part if _is(trajectories[place][0], type_)]
            if own:
                measures = [measures_of(trajectory.topology, trajectory.f1) for trajectory in own]
                means = [f"{fmean(getattr(values, measure) for values in measures):.2f}" for measure in _GRAPH]
                rows.append([type_, name, str(len(own)), *means])
    return Table(("question type", "phase", "n", *(_name(measure) for measure in _GRAPH)), rows, left=2)


def _is(profile: object, type_: str) -> bool:
    return getattr(profile, "type", None) == type_


def experience_table(entries: Iterable[Experience]) -> Table:
    rows = [
        [entry.profile.type, entry.insight, f"{entry.utility} of {entry.uses}"]
        for entry in sorted(entries, key=lambda entry: (-entry.utility, entry.id))
    ]
    return Table(("question type", "insight", "helped"), rows, left=2)
