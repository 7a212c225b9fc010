// Contents of sheets: a passage or a step over the page.

import { titleOf } from "./answer_view.js";
import { h } from "./elements.js";
import { evidenceFor, evidenceIn, markedAnswers } from "./evidence.js";
import { plain } from "./values.js";
import { STATUSES, counted, result, seconds } from "./words.js";

const MAX_DEPTH = 6; // of data that is drawn as a tree; what lies deeper is shown as JSON
const MAX_ENTRIES = 100; // of a list or object that are drawn
const MAX_INLINE = 40; // characters of values that stand in one line

// Plain data of a method, whatever its form: names with their values, and lists.
export function dataTree(value, depth = 0) {
  if (typeof value !== "object" || value === null || depth === MAX_DEPTH) return h("span", null, plain(value));
  const entries = Array.isArray(value)
    ? value.map((one, index) => [index, one])
    : Object.entries(value).filter(([, one]) => !isEmpty(one));
  const left = entries.length - MAX_ENTRIES;
  const rest = left > 0 ? h("p", { key: "rest", class: "empty" }, `and ${left.toLocaleString("en")} more`) : null;
  const shown = entries.slice(0, MAX_ENTRIES);
  if (Array.isArray(value)) {
    const isShort = shown.every(([, one]) => typeof one !== "object" && plain(one).length <= MAX_INLINE);
    if (isShort) return [h("span", { key: "values" }, shown.map(([, one]) => plain(one)).join(", ")), rest];
    const items = shown.map(([index, one]) => h("li", { key: index }, dataTree(one, depth + 1)));
    return [h("ol", { key: "list", class: "data-list" }, items), rest];
  }
  const named = ([name, one]) =>
    h("div", { key: name }, h("dt", null, name.replaceAll("_", " ")), h("dd", null, dataTree(one, depth + 1)));
  return [h("dl", { key: "fields", class: "data-fields" }, shown.map(named)), rest];
}

const isEmpty = (value) =>
  value === null || value === "" || (typeof value === "object" && !Object.keys(value).length);

export function passageSheet(citation, trace) {
  const passage = trace.passages.get(citation.passage);
  const { step, answers, query } = evidenceFor(citation, trace);
  const why = step ? `Cited by step ${step.id + 1}: ${step.query}` : "";
  return {
    title: titleOf(citation, trace),
    lead: `Source ${citation.number}`,
    body: [
      passage ? passageText(passage, answers, query) : h("p", null, "The trace does not hold this passage."),
      h("p", { class: "note" }, why),
    ],
  };
}

function passageText(passage, answers, query) {
  const parts = evidenceIn(passage.text, answers, query).map((one) => {
    const body = one.text.trimEnd();
    return one.isEvidence
      ? [h("span", { class: "evidence" }, markedAnswers(body, answers)), one.text.slice(body.length)]
      : one.text;
  });
  const facts = [passage.id, passage.place].filter(Boolean).join(" · ");
  return [h("p", { class: "passage" }, parts), h("p", { class: "note" }, facts)];
}

export function stepSheet(step, trace) {
  const facts = [
    ["Query", step.query],
    ["Filter", step.where],
    ["Line", step.line ? String(step.line) : ""],
    ["Depends on", step.dependsOn.map((id) => `step ${id + 1}`).join(", ")],
    ["Result", result(step) || STATUSES.get(step.status)],
    ["Confidence", step.answer?.known && step.answer.confidence !== null ? step.answer.confidence.toFixed(2) : ""],
    ["Why", step.rationale],
    ["Error", step.error],
    [
      "Time",
      step.memo
        ? "taken from an equal step of this question"
        : step.ended === null
          ? ""
          : `${seconds(step.ended - step.began)}, from ${seconds(step.began)}`,
    ],
    ["Model calls", step.usage.model_calls ? String(step.usage.model_calls) : ""],
    ["Tokens", step.usage.prompt_tokens ? `${step.usage.prompt_tokens} in, ${step.usage.completion_tokens} out` : ""],
  ].filter(([, value]) => value);
  const body = [
    h(
      "dl",
      { class: "facts" },
      facts.map(([name, value]) => h("div", { key: name }, h("dt", null, name), h("dd", null, value))),
    ),
  ];
  if (step.attempts.length > 1 || step.recoveries?.length)
    body.push(h("h3", null, "Attempts"), h("ol", { class: "attempts" }, attemptsOf(step)));
  for (const [name, items, count] of leftOut(step.coverage))
    body.push(h("h3", null, `${name} (${count.toLocaleString("en")})`), h("p", { class: "passage" }, items));
  if (step.output) body.push(h("h3", null, "Output"), h("p", { class: "passage" }, step.output));
  const answers = step.answer?.known ? [step.answer.text] : [];
  if (step.passages.length)
    body.push(
      h("h3", null, counted(step.passages.length, "passage")),
      step.passages.map((id, index) => passageDetails(id, index, step, answers, trace)),
    );
  return { title: `${step.primitive}`, lead: `Step ${step.id + 1}`, body };
}

// The items of each() without an answer, or with a weak one: heading, names, number.
function leftOut(coverage) {
  if (!coverage) return [];
  const named = (names, count) => names.join(", ") + (count > names.length ? ", …" : "");
  return [
    ["Unknown", named(coverage.unknownItems, coverage.unknown), coverage.unknown],
    ["Not reached", named(coverage.missingItems, coverage.missing), coverage.missing],
    ["Weak", named(coverage.weakItems, coverage.weak), coverage.weak],
  ].filter(([, , count]) => count);
}

function attemptsOf(step) {
  const shown = (policy, query, topk, outcome, why) =>
    h(
      "li",
      null,
      h("strong", null, policy),
      topk ? ` · top-${topk}` : "",
      query && query !== step.query ? ` · ${query}` : "",
      outcome ? ` → ${outcome}` : "",
      why ? h("span", { class: "note" }, ` ${why}`) : null,
    );
  if (!step.attempts.length) return step.recoveries.map((one) => shown(one.policy, one.query, one.topk, "", ""));
  return step.attempts.map((one) =>
    shown(
      one.policy,
      one.query,
      one.topk,
      one.answer ? (one.answer.known ? one.answer.text : "unknown") : "",
      one.missing || one.rationale,
    ),
  );
}

function passageDetails(id, index, step, answers, trace) {
  const passage = trace?.passages.get(id);
  if (!passage) return h("p", { key: id, class: "note" }, id);
  const cited = step.answer?.citations.includes(id);
  const title = [`${index + 1}. ${passage.title || id}`, cited ? h("span", { class: "tag" }, " cited") : null];
  const isOpen = step.answer?.citations.length ? cited : index === 0;
  return h(
    "details",
    { key: id, class: "passage-item", open: Boolean(isOpen) },
    h("summary", null, title),
    passageText(passage, cited ? answers : [], step.query),
  );
}
