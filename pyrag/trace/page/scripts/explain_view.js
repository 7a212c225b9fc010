// What a program will cost: its lines with their amounts, the totals, and what they rest on.

import { View, h } from "./elements.js";
import { list, number, object, plain, texts } from "./values.js";

const TOTALS = [
  ["Model calls", "calls"],
  ["Retrievals", "retrievals"],
  ["Tokens", "tokens"],
  ["Seconds", "seconds"],
  ["Money", "cost"],
];
const LINE_TITLES = ["Line", "Program", "Items", "Calls", "Tokens", "Seconds", "Money", "After"];

function amountText(value) {
  const size = Math.abs(number(value));
  return number(value).toLocaleString("en", { maximumSignificantDigits: size >= 100 ? 9 : 3, maximumFractionDigits: 4 });
}

function rangeText(value) {
  if (value === null || value === undefined) return "";
  const { low, expected, high } = object(value);
  const shown = [low, expected, high].map(amountText);
  return new Set(shown).size === 1 ? shown[0] : shown.join(" / ");
}

// Given: explanation (the server's reply), close().
export class ExplainView extends View {
  view() {
    const explanation = object(this.given.explanation);
    if (explanation.error) {
      return h("section", { class: "explain" }, h("p", { class: "problem", role: "alert" }, plain(explanation.error)));
    }
    return h(
      "section",
      { class: "explain", "aria-label": "Estimate" },
      h(
        "header",
        { class: "ask-row" },
        h("h2", { tabindex: "-1" }, "Estimate before running"),
        h("button", { type: "button", onclick: this.given.close }, "Close"),
      ),
      h("p", { class: "note" }, "Amounts are low / expected / high. Only planning has called a model."),
      this.table(
        "Totals",
        ["", "Estimate"],
        TOTALS.filter(([, name]) => explanation[name]).map(([title, name]) => [title, rangeText(explanation[name])]),
      ),
      this.table("Lines", LINE_TITLES, list(explanation.lines).map((line) => this.line(object(line)))),
      h(
        "ul",
        { class: "note" },
        texts(explanation.basis).map((sentence) => h("li", { key: sentence }, sentence)),
      ),
    );
  }

  line(line) {
    const after = list(line.depends_on).map(number).join(", ");
    return [
      String(number(line.line)),
      h("code", null, plain(line.source)),
      line.items === null ? "" : amountText(line.items),
      rangeText(line.calls),
      rangeText(line.tokens),
      rangeText(line.seconds),
      rangeText(line.cost),
      line.sure === false ? `${after} only for some answers`.trim() : after,
    ];
  }

  table(caption, titles, rows) {
    return h(
      "div",
      { class: "scrolled" },
      h(
        "table",
        null,
        h("caption", { class: "hidden" }, caption),
        h("thead", null, h("tr", null, titles.map((title, place) => h("th", { key: place, scope: "col" }, title)))),
        h(
          "tbody",
          null,
          rows.map((row, place) => h("tr", { key: place }, row.map((cell, column) => h("td", { key: column }, cell)))),
        ),
      ),
    );
  }
}
