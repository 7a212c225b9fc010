// The steps of a question over time.

import { View, h } from "./elements.js";
import { isOver } from "./reducer.js";
import { seconds } from "./words.js";

function ticksUpTo(end) {
  const rough = end / 5 || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const unit = [1, 2, 5, 10].find((one) => one * power >= rough) * power;
  return Array.from({ length: Math.floor(end / unit + 1e-9) + 1 }, (_, index) => index * unit);
}

// Given: state, now (seconds, of a live run; else null), span (seconds of the whole run), open(step).
export class TimelineView extends View {
  view() {
    const { state, now, span, open } = this.given;
    const over = isOver(state);
    const end = Math.max(now ?? span, state.at, 0.001);
    const agents = state.agents
      .filter((call) => call.step === null)
      .map((call, index) => ({
        ...call,
        key: `agent-${index}`,
        kind: "agent",
        label: call.role,
        status: call.ended === null ? "running" : call.error ? "failed" : "done",
      }));
    const steps = [...state.steps.values()].map((step) => ({
      ...step,
      key: `step-${step.id}`,
      kind: step.primitive,
      label: step.query,
      step,
    }));
    const programs = state.programs
      .map((program, index) => ({
        key: `program-${index}`,
        kind: "program",
        label: `version ${index + 1}`,
        status: program.endedAt === undefined ? "running" : "done",
        began: program.startedAt,
        ended: program.endedAt ?? null,
      }))
      .filter((program) => program.began !== undefined);
    const rows = [...agents, ...programs, ...steps].sort(
      (one, other) => one.began - other.began || (one.step?.id ?? 0) - (other.step?.id ?? 0),
    );
    if (!rows.length) return h("p", { class: "empty" }, over ? "Nothing was run." : "Times appear here.");
    const ticks = ticksUpTo(end);
    const percent = (value) => `${Math.min(100, (100 * value) / end).toFixed(3)}%`;
    const axis = h(
      "div",
      { class: "axis", "aria-hidden": "true" },
      ticks.map((tick) => h("span", { style: { left: percent(tick) } }, tick ? seconds(tick) : "0")),
    );
    const row = (one) => {
      const until = one.ended ?? (over ? state.at : (now ?? state.at));
      const took = one.step?.memo ? "memo" : `${seconds(until - one.began)}${one.isCached ? ", cached" : ""}`;
      const where = { left: percent(one.began), width: percent(until - one.began) };
      const tries = (one.step?.recoveries ?? []).map((again, index) =>
        h("span", { key: index, class: "again", style: { left: percent(again.at) }, title: again.policy }),
      );
      const bar = [
        h("span", { class: "bar", "data-kind": one.kind, "data-status": one.status, style: where }),
        tries,
        h("span", { class: "took", style: { left: percent(until) } }, took),
      ];
      const told = `: from ${seconds(one.began)}, for `;
      const inner = [
        h(
          "span",
          { class: "row-label" },
          h("span", { class: "row-kind" }, one.kind),
          " ",
          one.label,
          h("span", { class: "hidden" }, told),
        ),
        h("span", { class: "track" }, bar),
      ];
      return h(
        "li",
        { key: one.key },
        one.step
          ? h("button", { type: "button", class: "row", onclick: () => open(one.step) }, inner)
          : h("div", { class: "row" }, inner),
      );
    };
    const lines = state.programs
      .filter((program) => program.rejectedAt !== undefined)
      .map((program, index) =>
        h(
          "span",
          { key: index, class: "rejected-at", style: { left: percent(program.rejectedAt) } },
          h("span", null, "rejected"),
        ),
      );
    if (state.at < span && now === null)
      lines.push(h("span", { key: "now", class: "now-at", style: { left: percent(state.at) } }));
    const marks = lines.length ? h("div", { key: "marks", class: "marks" }, lines) : null;
    const note = state.isApproximate
      ? h("p", { key: "note", class: "note" }, "Saved without events: they are made from its steps.")
      : null;
    return h("div", { class: "timeline" }, axis, marks, h("ol", { key: "rows" }, rows.map(row)), note);
  }
}
