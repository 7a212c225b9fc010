// The form that asks a question.

import { View, h } from "./elements.js";
import { text } from "./values.js";

// Given: options, busy, problem, compact (no examples), ask(request), explain(request), stop().
export class AskForm extends View {
  view() {
    const { options, busy, problem, stop } = this.given;
    const { indexes, methods, examples, note } = options;
    const choice = (name, label, values, chosen) =>
      values.length < 2
        ? null
        : h(
            "label",
            { key: name, class: "choice" },
            h("span", null, label),
            h(
              "select",
              { name },
              values.map((one) => h("option", { key: one, value: one, selected: one === chosen }, one)),
            ),
          );
    return h(
      "form",
      { class: "ask", onsubmit: (event) => this.submit(event), "aria-label": "Ask a question" },
      h("label", { class: "hidden", for: "question" }, "Question"),
      h("textarea", {
        id: "question",
        name: "question",
        rows: "2",
        placeholder: "Ask a question that takes more than one look-up",
        "aria-describedby": "problem",
        autocomplete: "off",
        onkeydown: (event) => this.key(event),
      }),
      h(
        "div",
        { class: "ask-row" },
        choice("index", "Index", indexes, options.index),
        choice("method", "Method", methods, options.method),
        h(
          "label",
          { key: "where", class: "choice filter" },
          h("span", null, "Filter"),
          h("input", {
            name: "where",
            type: "text",
            placeholder: 'year >= 2020 and team = "ops"',
            "aria-label": "Filter of passages by their metadata",
            "aria-describedby": "problem",
            autocomplete: "off",
            spellcheck: "false",
            maxlength: "4000",
          }),
        ),
        h(
          "span",
          { class: "engine" },
          options.engine
            ? [
                h("span", { class: "engine-label" }, "Engine "),
                options.engine,
                note ? h("span", { class: "engine-label" }, ` (${note})`) : "",
              ]
            : "",
        ),
        busy
          ? h("button", { key: "stop", type: "button", class: "stop", onclick: stop }, "Stop")
          : [
              h("button", { key: "explain", type: "button", class: "quiet", onclick: (event) => this.submit(event, true) }, "Explain"),
              h("button", { key: "ask", type: "submit", class: "primary" }, "Ask"),
            ],
      ),
      h("p", { id: "problem", class: "problem", role: "alert" }, problem),
      examples.length && !this.given.compact
        ? h(
            "div",
            { class: "examples" },
            h("h2", null, "Examples"),
            h(
              "ul",
              null,
              examples.map((one) =>
                h("li", { key: one }, h("button", { type: "button", onclick: () => this.example(one) }, one)),
              ),
            ),
          )
        : null,
    );
  }

  key(event) {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    if (!this.given.busy) this.querySelector("form").requestSubmit();
  }

  example(question) {
    this.querySelector("textarea").value = question;
    if (!this.given.busy) this.querySelector("form").requestSubmit();
  }

  submit(event, isExplained = false) {
    event.preventDefault();
    const given = new FormData(this.querySelector("form"));
    const question = text(given.get("question")).trim();
    const where = text(given.get("where")).trim() || undefined;
    const [index, method] = ["index", "method"].map((name) => given.get(name) ?? undefined);
    if (question && isExplained) this.given.explain({ question, index, where });
    else if (question) this.given.ask({ question, index, method, where });
    else this.querySelector("textarea").focus();
  }
}
