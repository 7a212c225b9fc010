// Two traces side by side.

import { costOf } from "./cost.js";
import { View, h } from "./elements.js";

// Given: runs (two).
export class CompareView extends View {
  view() {
    const { runs } = this.given;
    const figures = runs.map((run) => [
      ["Answer", run.trace.answer.known ? run.trace.answer.text : "unknown"],
      ["Method", run.trace.method],
      ["Engine", run.trace.engine],
      ["Index", run.trace.retriever],
      ["Sub-queries", String(run.trace.subQueries.length)],
      ["Programs", String(run.trace.programs.length)],
      ["Steps", String(run.trace.steps.length)],
      ["Passages cited", String(run.trace.citations.length)],
      ...costOf(run.trace, 0).filter(([name]) => name !== "Repairs"),
    ]);
    const names = [...new Set(figures.flatMap((one) => one.map(([name]) => name)))];
    const value = (index, name) => figures[index].find(([one]) => one === name)?.[1] ?? "";
    const row = (name) => {
      const differs = value(0, name) !== value(1, name);
      return h(
        "tr",
        { key: name, "data-differs": String(differs) },
        h("th", { scope: "row" }, name),
        [0, 1].map((index) => h("td", { key: index }, value(index, name))),
      );
    };
    return h(
      "div",
      { class: "compare" },
      h(
        "div",
        { class: "table-scroll", tabindex: "0", role: "region", "aria-label": "Figures of both traces" },
        h(
          "table",
          null,
          h(
            "thead",
            null,
            h("tr", null, h("td", null), h("th", { scope: "col" }, "First"), h("th", { scope: "col" }, "Second")),
          ),
          h("tbody", null, names.map(row)),
        ),
      ),
      h(
        "div",
        { class: "pair" },
        runs.map((run, index) => h("pyrag-run", { key: `${index} ${run.key}`, ".data": { run, level: 2 } })),
      ),
    );
  }
}
