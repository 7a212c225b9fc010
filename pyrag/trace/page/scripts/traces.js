// Traces and recorded events: values of unknown shape become values that the views may rely on.

import { Refused } from "./server.js";
import { list, number, object, plain, texts } from "./values.js";
import { moment } from "./words.js";

export function readAnswer(value) {
  if (typeof value !== "object" || value === null) return null;
  const confidence = typeof value.confidence === "number" ? value.confidence : null;
  return { text: plain(value.text), known: value.known !== false, citations: texts(value.citations), confidence };
}

const MIN_CONFIDENCE = 0.5; // of an answer that is not weak, as in pyrag/trace/model.py
const isWeak = (answer) => Boolean(answer?.known && answer.confidence !== null && answer.confidence < MIN_CONFIDENCE);

// Engines of rules and a small reader call no model.
export const callsModel = (trace) => trace.engine.split(":")[0] !== "embedded";

export function readUsage(value) {
  const { cost, ...counts } = object(value);
  const names = ["model_calls", "retrievals", "prompt_tokens", "completion_tokens", "seconds", "cached_calls"];
  names.push("cached_tokens", "unused_calls", "unused_retrievals");
  const read = Object.fromEntries(names.map((name) => [name, number(counts[name])]));
  return { ...read, cost: typeof cost === "number" ? cost : null };
}

function readAttempt(value) {
  const one = object(value);
  return {
    policy: plain(one.policy),
    query: plain(one.query),
    topk: number(one.topk),
    passages: texts(one.passages),
    answer: readAnswer(one.answer),
    rationale: plain(one.rationale),
    missing: plain(one.missing),
    strategy: plain(one.strategy),
  };
}

export function readStep(value) {
  const one = object(value);
  return {
    id: number(one.id),
    primitive: plain(one.primitive),
    query: plain(one.query),
    line: number(one.line),
    round: number(one.round),
    topk: number(one.topk),
    where: plain(one.where),
    passages: texts(one.passages),
    mode: plain(one.mode),
    output: plain(one.output),
    answer: readAnswer(one.answer),
    attempts: list(one.attempts).map(readAttempt),
    dependsOn: list(one.depends_on).map(number),
    started: number(one.started),
    seconds: number(one.seconds),
    usage: readUsage(one.usage),
    memo: one.memo === true,
    error: plain(one.error),
    rationale: plain(one.rationale),
    coverage: readCoverage(one.coverage),
  };
}

// How many items a call of each() answered, or null.
function readCoverage(value) {
  if (typeof value !== "object" || value === null) return null;
  const { total, answered, unknown, missing, weak } = value;
  return {
    total: number(total),
    answered: number(answered),
    unknown: number(unknown),
    missing: number(missing),
    weak: number(weak),
    what: plain(value.what) || "items",
    reason: plain(value.reason),
    unknownItems: texts(value.unknown_items),
    missingItems: texts(value.missing_items),
    weakItems: texts(value.weak_items),
  };
}

export function readProgram(value) {
  const one = object(value);
  return {
    source: plain(one.source),
    planner: plain(one.planner),
    origin: plain(one.origin),
    error: plain(one.error),
    output: plain(one.output),
    rationale: plain(one.rationale),
  };
}

function readPassage(value) {
  const one = object(value);
  const from = Number.isInteger(one.start) && Number.isInteger(one.end) ? `:${one.start}–${one.end}` : "";
  const source = plain(one.source);
  return { id: plain(one.id), title: plain(one.title), text: plain(one.text), place: source && source + from };
}

function readError(value) {
  if (typeof value !== "object" || value === null) return null;
  return { kind: plain(value.kind), message: plain(value.message) };
}

// Returns a trace whose fields have the types that the views expect; null where the value is no trace.
export function readTrace(value) {
  const one = object(value);
  if (typeof one.question !== "string" || !("answer" in one) || !Array.isArray(one.steps)) return null;
  return {
    question: one.question,
    said: plain(one.said),
    answer: readAnswer(one.answer) ?? { text: "", known: false, citations: [], confidence: null },
    weak: typeof one.weak === "boolean" ? one.weak : isWeak(readAnswer(one.answer)), // older traces have no verdict
    remark: plain(one.remark),
    value: one.method === "program" ? (one.value ?? null) : (one.value ?? undefined),
    itemCitations: new Map(Object.entries(object(one.item_citations)).map(([key, of]) => [key, list(of).map(number)])),
    method: plain(one.method),
    engine: plain(one.engine),
    retriever: plain(one.retriever),
    subQueries: texts(one.sub_queries),
    programs: list(one.programs).map(readProgram),
    steps: one.steps.map(readStep),
    citations: list(one.citations).map((citation) => ({
      number: number(object(citation).number),
      passage: plain(object(citation).passage),
      step: number(object(citation).step),
    })),
    passages: new Map(Object.entries(object(one.passages)).map(([id, passage]) => [id, readPassage(passage)])),
    usage: readUsage(one.usage),
    warnings: texts(one.warnings),
    error: readError(one.error),
    events: list(one.events).map(object),
    extensions: Object.entries(object(one.extensions)),
    created: Date.parse(plain(one.started_at)) / 1000 || 0,
    version: plain(one.pyrag_version),
  };
}

// Returns the events of a trace in the form of the stream: those recorded, or what its steps amount to without any.
export function eventsOf(trace) {
  const end = { event: "reply", at: trace.usage.seconds, trace };
  if (!trace.events.length) return [...eventsOfSteps(trace), end];
  return [...trace.events.map((event) => joined(event, trace)), { ...end, at: number(trace.events.at(-1).at) }];
}

// A recorded event refers to what its trace says elsewhere; the stream has it whole.
function joined(event, trace) {
  const referred = (value, among) => (typeof value === "number" ? among[value] : value);
  switch (event.event) {
    case "decomposed":
      return { sub_queries: trace.subQueries, ...event };
    case "planned":
      return { ...event, program: { ...object(referred(event.program, trace.programs)), error: "" } };
    case "rejected":
      return { ...event, error: typeof event.error === "number" ? trace.programs[event.error]?.error : event.error };
    case "step_started":
      return "query" in event ? event : { ...event, kept: trace.steps[event.step] };
    case "step_finished":
      return typeof event.step === "number" ? { ...event, kept: trace.steps[event.step] } : event;
    case "warned":
      return { ...event, message: referred(event.message, trace.warnings) };
    case "answered":
      return { answer: trace.answer, ...event };
    default:
      return event;
  }
}

function eventsOfSteps(trace) {
  const events = [{ event: "question_started", at: 0, approximate: true }];
  if (trace.subQueries.length) events.push({ event: "decomposed", at: 0, sub_queries: trace.subQueries });
  let at = 0;
  for (let round = 0; round < Math.max(trace.programs.length, 1); round += 1) {
    const steps = trace.steps.filter((step) => step.round === round || !trace.programs.length);
    const program = trace.programs[round];
    if (steps.length) at = Math.max(at, Math.min(...steps.map((step) => step.started)));
    if (program) events.push({ event: "planned", at, program: { ...program, error: "" } });
    const made = steps.flatMap((step) => [
      { event: "step_started", at: step.started, step: step.id, kept: step },
      { event: "step_finished", at: step.started + step.seconds, step: step.id, kept: step },
    ]);
    events.push(...made.sort((one, other) => one.at - other.at));
    at = Math.max(at, ...made.map((one) => one.at));
    if (program?.error) events.push({ event: "rejected", at, error: program.error });
  }
  const end = trace.usage.seconds;
  for (const message of trace.warnings) events.push({ event: "warned", at: end, message });
  return trace.error ? events : [...events, { event: "answered", at: end, answer: trace.answer }];
}

// Returns the traces of a file: one JSON object, or one a line, as `pyrag ask --trace` and `pyrag bench` write them.
export function tracesOfFile(name, content) {
  const lines = content.split("\n").filter((line) => line.trim());
  let values;
  try {
    values = lines.map((line) => JSON.parse(line));
  } catch {
    try {
      const whole = JSON.parse(content);
      values = Array.isArray(whole) ? whole : [whole];
    } catch {
      throw new Refused(
        `${name} holds no JSON: choose a file of pyrag ask --trace, or of the folder traces/ of a run.`,
      );
    }
  }
  const traces = values.map((value) => readTrace(object(value).trace ?? value));
  const found = traces.filter((trace) => trace !== null);
  if (!found.length) {
    throw new Refused(`${name} holds no trace: choose a file of pyrag ask --trace, or of the folder traces/ of a run.`);
  }
  return found;
}

// A trace in a list of the server.
export function readSummary(value) {
  const summary = object(value);
  return {
    id: plain(summary.id),
    created: number(summary.created),
    question: plain(summary.question),
    answer: { text: plain(summary.answer), known: summary.known === true },
    error: summary.error ? { kind: plain(summary.error) } : null,
    about: [plain(summary.index), moment(number(summary.created))].join(" · "),
    seconds: number(summary.seconds),
    number: number(summary.number),
  };
}

// What the server offers: its engine, indexes, methods and examples.
export function readOptions(value) {
  const options = object(value);
  return {
    engine: plain(options.engine),
    note: plain(options.engine_note),
    index: plain(options.index),
    method: plain(options.method),
    indexes: texts(options.indexes),
    methods: texts(options.methods),
    examples: texts(options.examples),
  };
}
