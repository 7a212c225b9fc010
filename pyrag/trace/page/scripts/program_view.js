// The program and its changes, line by line with the values of its steps.

import { View, h } from "./elements.js";
import { PRIMITIVES, difference, highlighted } from "./program_text.js";
import { isOver } from "./reducer.js";
import { number } from "./values.js";
import { MARKS, STATUSES, result, triesOf } from "./words.js";

const RANK = ["failed", "recovering", "running", "stopped", "unknown", "done"];

// Given: state, version (index of the program), open(step).
export class ProgramView extends View {
  view() {
    const { state, version, open } = this.given;
    const program = state.programs[version];
    if (!program) return this.draft(state);
    const steps = [...state.steps.values()].filter((step) => step.round === version);
    const primitives = new Set([...PRIMITIVES, ...steps.map((step) => step.primitive)]);
    const wrong = program.error ? number(Number(/line (\d+)/.exec(program.error)?.[1])) : 0;
    const lines = highlighted(program.source.trimEnd(), primitives);
    const shown = lines.map((tokens, index) => {
      const own = steps.filter((step) => step.line === index + 1);
      return this.line(index + 1, tokens, own, wrong === index + 1, open);
    });
    return h("ol", { class: "code", "aria-label": `Program, version ${version + 1}` }, shown);
  }

  draft(state) {
    const lines = highlighted(state.draft, PRIMITIVES);
    if (!state.draft)
      return h("p", { class: "empty" }, isOver(state) ? "No program was written." : "The program appears here.");
    return h(
      "ol",
      { class: "code", "aria-label": "Program, being written" },
      lines.map((line, at) => this.line(at + 1, line, [], false)),
    );
  }

  line(number, tokens, steps, isWrong, open) {
    const status = isWrong ? "failed" : RANK.find((one) => steps.some((step) => step.status === one));
    const indent = /^\s*/.exec(tokens.map(([, part]) => part).join(""))[0].length;
    const code = tokens.map(([kind, part]) => (kind ? h("span", { class: `t-${kind}` }, part) : part));
    return h(
      "li",
      { key: number, "data-status": status, style: { "--indent": String(indent) } },
      h("span", { class: "gutter", "aria-hidden": "true" }, String(number)),
      h("code", null, code.length ? code : " "),
      steps.map((step) => this.value(step, open)),
    );
  }

  value(step, open) {
    const said = result(step) || STATUSES.get(step.status);
    const label = `Step ${step.id + 1}, ${step.primitive}: ${said}${triesOf(step) > 1 ? `, ${triesOf(step)} attempts` : ""}`;
    const mark = h("span", { class: "mark", "aria-hidden": "true" }, MARKS.get(step.status));
    const tries =
      triesOf(step) > 1 && step.ended !== null ? h("span", { class: "tries" }, ` · ${triesOf(step)} attempts`) : null;
    return h(
      "button",
      {
        key: `step-${step.id}`,
        type: "button",
        class: "value",
        "data-status": step.status,
        "aria-label": label,
        onclick: () => open(step),
      },
      mark,
      " ",
      said,
      tries,
    );
  }
}

// Given: before, after (sources).
export class ChangesView extends View {
  view() {
    const lines = difference(this.given.before.trimEnd(), this.given.after.trimEnd());
    const words = { "+": "added: ", "-": "removed: ", " ": "" };
    return h(
      "ol",
      { class: "changes" },
      lines.map(([sign, line]) =>
        h(
          "li",
          { "data-sign": sign },
          h("span", { class: "gutter", "aria-hidden": "true" }, sign),
          h("span", { class: "hidden" }, words[sign]),
          h("code", null, line || " "),
        ),
      ),
    );
  }
}
