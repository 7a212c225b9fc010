// The editor: a program of the person at the page, with its inputs.

import { View, h } from "./elements.js";
import { kept } from "./server.js";
import { text } from "./values.js";

const EXAMPLE = `"""Birth dates."""
final_answer = {}
for person in people:
    final_answer[person] = answer(f"When was {person} born?", retrieve(person))
`;
const INPUTS = '{"people": ["Jed Hoyer", "John William Henry II"]}';

// Given: options, busy, problem, run(request), explain(request), stop().
export class ProgramForm extends View {
  #problem = "";

  view() {
    const { options, busy, stop } = this.given;
    const problem = this.#problem || this.given.problem;
    return h(
      "form",
      { class: "ask editor", onsubmit: (event) => this.submit(event), "aria-label": "Run a program" },
      h("label", { for: "source" }, "Program"),
      h(
        "textarea",
        {
          id: "source",
          name: "source",
          rows: "10",
          class: "code-input",
          spellcheck: "false",
          autocomplete: "off",
          autocapitalize: "off",
          "aria-describedby": "program-help program-problem",
          onkeydown: (event) => this.key(event),
        },
        kept("sessionStorage", "pyrag-program") ?? EXAMPLE,
      ),
      h(
        "p",
        { id: "program-help", class: "note" },
        "Python over retrieve() and answer() that sets final_answer. Ctrl+Enter runs it; Escape, then Tab leaves the editor.",
      ),
      h("label", { for: "inputs" }, "Inputs, as a JSON object"),
      h(
        "textarea",
        { id: "inputs", name: "inputs", rows: "2", class: "code-input", spellcheck: "false", autocomplete: "off" },
        kept("sessionStorage", "pyrag-inputs") ?? INPUTS,
      ),
      h(
        "div",
        { class: "ask-row" },
        options.indexes.length < 2
          ? null
          : h(
              "label",
              { key: "index", class: "choice" },
              h("span", null, "Index"),
              h(
                "select",
                { name: "index" },
                options.indexes.map((name) => h("option", { key: name, value: name, selected: name === options.index }, name)),
              ),
            ),
        h(
          "label",
          { key: "where", class: "choice filter" },
          h("span", null, "Filter"),
          h("input", { name: "where", type: "text", placeholder: "year >= 2020", autocomplete: "off", spellcheck: "false", maxlength: "4000" }),
        ),
        busy
          ? h("button", { key: "stop", type: "button", class: "stop", onclick: stop }, "Stop")
          : [
              h("button", { key: "explain", type: "button", class: "quiet", onclick: (event) => this.submit(event, true) }, "Explain"),
              h("button", { key: "run", type: "submit", class: "primary" }, "Run"),
            ],
      ),
      h("p", { id: "program-problem", class: "problem", role: "alert" }, problem),
    );
  }

  // Tab indents, unless Escape came before it, so that the keyboard can leave the editor.
  key(event) {
    const area = event.target;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      if (!this.given.busy) this.querySelector("form").requestSubmit();
    } else if (event.key === "Escape") this.leaving = true;
    else if (event.key === "Tab" && !event.shiftKey && !this.leaving) {
      event.preventDefault();
      area.setRangeText("    ", area.selectionStart, area.selectionEnd, "end");
    } else this.leaving = false;
  }

  submit(event, isExplained = false) {
    event.preventDefault();
    const data = new FormData(this.querySelector("form"));
    const source = text(data.get("source"));
    const given = text(data.get("inputs")).trim();
    let inputs = {};
    this.#problem = "";
    try {
      if (given) inputs = JSON.parse(given);
      if (typeof inputs !== "object" || inputs === null || Array.isArray(inputs)) throw new Error("not an object");
    } catch {
      this.#problem = 'The inputs are not a JSON object: write one, such as {"company": "Acme"}, or leave them empty.';
    }
    this.draw();
    if (this.#problem) return;
    if (!source.trim()) {
      this.querySelector("textarea").focus();
      return;
    }
    kept("sessionStorage", "pyrag-program", source);
    kept("sessionStorage", "pyrag-inputs", given);
    const where = text(data.get("where")).trim() || undefined;
    const act = isExplained ? this.given.explain : this.given.run;
    act({ source, inputs, index: data.get("index") ?? undefined, where });
  }
}
