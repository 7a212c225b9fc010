// The reducer: a list of events becomes the state that is shown. `pyrag/trace/reducer.py` is the same in Python.

import { readAnswer, readProgram, readStep, readUsage } from "./traces.js";
import { number, plain, texts } from "./values.js";
import { counted, seconds } from "./words.js";

export const START = Object.freeze({
  phase: "waiting", // waiting, planning, running, repairing, done, failed, stopped
  at: 0,
  subQueries: [],
  draft: "",
  programs: [],
  steps: new Map(),
  agents: [],
  warnings: [],
  answer: null,
  error: null,
  trace: null,
  isApproximate: false, // made from a trace that was saved without events
});

const HANDLERS = new Map([
  ["accepted", () => ({})],
  ["question_started", (state, event) => ({ isApproximate: event.approximate === true })],
  ["follow_up", (state, event) => withWarning(state, `The follow-up was asked as: ${plain(event.asked)}`)],
  ["decomposed", (state, event) => ({ phase: "planning", subQueries: texts(event.sub_queries) })],
  [
    "drafting",
    (state, event) => ({ phase: state.programs.length ? "repairing" : "planning", draft: plain(event.source) }),
  ],
  ["planned", planned],
  ["rejected", rejected],
  ["step_started", stepStarted],
  ["recovering", recovering],
  ["step_finished", stepFinished],
  // Even one that was rejected runs where its author insisted on it.
  ["program_started", (state) => withLast(state, { startedAt: state.at, error: "", rejectedAt: undefined })],
  ["program_finished", programFinished],
  ["agent_started", agentStarted],
  ["agent_finished", agentFinished],
  ["warned", (state, event) => withWarning(state, plain(event.message))],
  ["answered", (state, event) => ({ answer: readAnswer(event.answer) })],
  ["question_finished", (state) => ({ draft: "", ...halted(state) })], // the reply, which follows, ends the run
  ["reply", replied],
  [
    "error",
    (state, event) => ({ phase: "failed", error: { kind: "", message: plain(event.message) }, ...halted(state) }),
  ],
  ["stopped", (state) => ({ phase: "stopped", ...halted(state) })],
]);

export function reduce(state, event) {
  const moved = { ...state, at: Math.max(state.at, number(event.at)) };
  const handler = HANDLERS.get(event.event);
  return handler ? { ...moved, ...handler(moved, event) } : moved;
}

export const stateOf = (events, count = events.length) => events.slice(0, count).reduce(reduce, START);

function withWarning(state, message) {
  return message && !state.warnings.includes(message) ? { warnings: [...state.warnings, message] } : {};
}

export const sentence = (message) => message.charAt(0).toUpperCase() + message.slice(1);

// Steps that were under way when a question ended.
function halted(state) {
  const steps = [...state.steps].map(([id, step]) => [id, step.ended === null ? { ...step, status: "stopped" } : step]);
  return { steps: new Map(steps) };
}

function withLast(state, change) {
  if (!state.programs.length) return {};
  return { programs: [...state.programs.slice(0, -1), { ...state.programs.at(-1), ...change }] };
}

function planned(state, event) {
  return { phase: "running", draft: "", programs: [...state.programs, readProgram(event.program)] };
}

function rejected(state, event) {
  const error = plain(event.error);
  if (!state.programs.length) return { phase: "repairing", ...withWarning(state, error) };
  return { phase: "repairing", ...withLast(state, { error, rejectedAt: state.at }) };
}

function stepStarted(state, event) {
  const round = Math.max(state.programs.length - 1, 0);
  const told = { round, ...event, id: event.step };
  const step = { ...(event.kept ?? readStep(told)), answer: null, passages: [], attempts: [], error: "", output: "" };
  const shown = { ...step, seconds: 0, status: "running", began: state.at, ended: null, recoveries: [] };
  return { phase: "running", steps: new Map(state.steps).set(step.id, shown) };
}

function recovering(state, event) {
  const step = state.steps.get(event.step);
  if (!step) return {};
  const recovery = { policy: plain(event.policy), topk: number(event.topk), query: plain(event.query), at: state.at };
  const again = { ...step, status: "recovering", recoveries: [...step.recoveries, recovery] };
  return { steps: new Map(state.steps).set(step.id, again) };
}

function stepFinished(state, event) {
  const step = event.kept ?? readStep(event.step);
  const before = state.steps.get(step.id);
  const status = step.error ? "failed" : step.answer && !step.answer.known ? "unknown" : "done";
  const began = before?.began ?? Math.max(state.at - step.seconds, 0);
  const shown = { ...step, status, began, ended: state.at, recoveries: before?.recoveries ?? [] };
  return { steps: new Map(state.steps).set(step.id, shown) };
}

// The steps of a program get their final numbers, in program order; those begun ahead in vain are dropped.
function programFinished(state, event) {
  const ended = withLast(state, { endedAt: state.at });
  if (!Array.isArray(event.order)) return { ...ended, ...halted(state) };
  const numbers = new Map(event.order.map((id, index) => [id, number(event.first) + index]));
  const steps = new Map();
  for (const [id, step] of state.steps) {
    if (step.round !== event.round) steps.set(id, step);
    else if (numbers.has(id)) {
      const needed = step.dependsOn.map((one) => numbers.get(one)).filter((one) => one !== undefined);
      const dependsOn = needed.sort((one, other) => one - other);
      steps.set(numbers.get(id), { ...step, id: numbers.get(id), dependsOn });
    }
  }
  const first = number(event.first);
  const final = (step) => (step === null || step < first ? step : (numbers.get(step) ?? null));
  const agents = state.agents.map((call) => ({ ...call, step: final(call.step) }));
  return { ...ended, agents, ...halted({ steps }) };
}

function agentStarted(state, event) {
  const call = { id: number(event.call), role: plain(event.role), step: event.step ?? null };
  return {
    agents: [...state.agents, { ...call, began: state.at, ended: null, usage: readUsage(null), isCached: false }],
  };
}

function agentFinished(state, event) {
  const id = number(event.call);
  const place = state.agents.findIndex((call) => call.id === id);
  const began = Math.max(state.at - number(event.seconds), 0);
  const before = place < 0 ? { id, role: plain(event.role), step: null, began } : state.agents[place];
  const ended = {
    ended: state.at,
    usage: readUsage(event.usage),
    isCached: event.cached === true,
    error: plain(event.error),
  };
  const call = { ...before, ...ended };
  return { agents: place < 0 ? [...state.agents, call] : state.agents.with(place, call) };
}

function replied(state, event) {
  const { trace } = event;
  if (!trace) return { phase: "done" };
  return {
    ...halted(state),
    phase: trace.error ? "failed" : "done",
    trace,
    answer: trace.answer,
    error: trace.error,
    warnings: trace.warnings,
  };
}

export const isOver = (state) => ["done", "failed", "stopped"].includes(state.phase);

function outcome(state) {
  if (!state.answer?.known) return "Finished";
  return state.trace?.weak ? "Weak answer" : "Answered";
}

export function progress(state) {
  const steps = [...state.steps.values()];
  const finished = steps.filter((step) => step.ended !== null).length;
  const again = steps.find((step) => step.status === "recovering");
  switch (state.phase) {
    case "waiting":
      return "Reading the question";
    case "planning":
      return "Writing the program";
    case "repairing":
      return "Repairing the program";
    case "running":
      if (!steps.length) return "Starting the program";
      if (again) return `Step ${again.id + 1} came back unknown and is tried again`;
      return `Running the program: ${counted(finished, "step")} finished, ${steps.length - finished} under way`;
    case "stopped":
      return "Stopped";
    case "failed":
      return "No answer";
    default:
      return `${outcome(state)} in ${seconds(state.trace?.usage.seconds ?? state.at)}`;
  }
}
