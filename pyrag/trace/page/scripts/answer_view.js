// The answer with its sources.

import { View, h } from "./elements.js";
import { bestEvidence, evidenceFor, markedAnswers } from "./evidence.js";
import { sentence } from "./reducer.js";
import { covered, shortened } from "./words.js";

const MAX_MARKS = 20; // beside an answer; all sources are listed below it

// Given: state, cite(citation).
export class AnswerView extends View {
  view() {
    const { state, cite } = this.given;
    const { answer, error, trace } = state;
    const citations = trace?.citations ?? [];
    const body = [];
    if (error) body.push(h("p", { class: "problem", key: "error" }, error.message || "The question failed."));
    if (answer && (!error || answer.known)) {
      const numbers = citations.slice(0, MAX_MARKS).map((citation) => [
        " ",
        h(
          "button",
          {
            key: citation.number,
            type: "button",
            class: "cite",
            "aria-label": `Source ${citation.number}: ${titleOf(citation, trace)}`,
            onclick: () => cite(citation),
          },
          String(citation.number),
        ),
      ]);
      if (holdsItems(trace?.value)) body.push(this.items(trace, cite));
      else {
        const said = answer.known ? answer.text : "No answer found";
        body.push(h("p", { class: "answer", key: "answer", "data-known": String(answer.known) }, said, numbers));
      }
      const remark = trace?.remark ?? "";
      if (remark) body.push(h("p", { class: "remark", key: "remark" }, `${sentence(remark)}.`));
      else if (!answer.known)
        body.push(h("p", { class: "note", key: "unknown" }, "The passages that were found do not say it."));
      if (answer.known && answer.confidence !== null && !remark) {
        body.push(h("p", { class: "note", key: "confidence" }, `Confidence ${answer.confidence.toFixed(2)}`));
      }
    }
    for (const step of trace?.steps ?? [])
      if (step.coverage)
        body.push(
          h("p", { class: "note coverage", key: `coverage ${step.id}` }, `${covered(step.coverage)}: ${step.query}`),
        );
    for (const message of state.warnings)
      body.push(h("p", { class: "warning", key: `warning ${message}` }, sentence(message)));
    if (citations.length)
      body.push(
        h(
          "ol",
          { class: "sources", key: "sources", "aria-label": "Sources" },
          citations.map((one) => this.source(one)),
        ),
      );
    return h("div", { class: "verdict-inner" }, body);
  }

  // The items of a program's value, each with its own sources.
  items(trace, cite) {
    const cited = new Map(trace.citations.map((citation) => [citation.number, citation]));
    const marks = (key) =>
      (trace.itemCitations.get(key) ?? []).filter((number) => cited.has(number)).map((number) => [
        " ",
        h(
          "button",
          {
            key: number,
            type: "button",
            class: "cite",
            "aria-label": `Source ${number}: ${titleOf(cited.get(number), trace)}`,
            onclick: () => cite(cited.get(number)),
          },
          String(number),
        ),
      ]);
    const isList = Array.isArray(trace.value);
    const rows = Object.entries(trace.value).map(([key, item]) =>
      h(
        "div",
        { key, class: "item" },
        h("dt", null, isList ? String(Number(key) + 1) : key),
        h("dd", null, itemText(item), marks(key)),
      ),
    );
    return h("dl", { key: "answer", class: "answer items" }, rows);
  }

  source(citation) {
    const { state, cite } = this.given;
    const passage = state.trace.passages.get(citation.passage);
    const { answers, query } = evidenceFor(citation, state.trace);
    const sentence = passage && bestEvidence(passage.text, answers, query);
    return h(
      "li",
      { key: citation.number },
      h(
        "button",
        { type: "button", class: "source", onclick: () => cite(citation) },
        h(
          "span",
          { class: "source-title" },
          h("span", { class: "source-number" }, String(citation.number)),
          " ",
          titleOf(citation, state.trace),
        ),
        h(
          "span",
          { class: "source-text" },
          sentence ? markedAnswers(sentence.trim(), answers) : shortened(passage?.text ?? "", 200),
        ),
      ),
    );
  }
}

// A row of each() is its item with its value, a document is its title.
function itemText(item) {
  if (typeof item === "string") return item;
  if (typeof item !== "object" || item === null) return JSON.stringify(item);
  if ("item" in item && "value" in item) {
    const value = typeof item.value === "string" ? item.value : JSON.stringify(item.value);
    return item.value === true ? String(item.item) : `${item.item}: ${value}`;
  }
  return "title" in item && "passages" in item ? String(item.title) : JSON.stringify(item);
}

const holdsItems = (value) => typeof value === "object" && value !== null && Object.keys(value).length > 0;

export const titleOf = (citation, trace) => trace.passages.get(citation.passage)?.title || citation.passage;
