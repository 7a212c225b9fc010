// The page of pyrag: a question becomes a program, and the program is shown at work.
//
// One module without dependencies, served by `pyrag serve` and embedded in the files of `pyrag trace html`. A run is a
// list of events in the form of the server's stream; `reduce` turns it into the state that every view draws, whether
// the events arrive now, come from a saved trace, or are stepped through. Text of models, passages and files is hostile:
// it reaches the document as text nodes alone, and values of files are checked by `readTrace` before anything uses them.

// --- Elements: a tree of plain objects, and the document patched to equal it -----------------------------------------

const SVG = "http://www.w3.org/2000/svg";
const KNOWN = Symbol("what an element was last patched to");

function h(tag, props, ...kids) {
  return { tag, props: props ?? {}, kids, key: props?.key };
}

function patch(parent, kids) {
  const wanted = kids.flat(Infinity).filter((kid) => kid !== null && kid !== undefined && kid !== false && kid !== "");
  const keyed = new Map();
  for (const node of parent.childNodes) if (node[KNOWN]?.key !== undefined) keyed.set(node[KNOWN].key, node);
  let place = parent.firstChild;
  for (const kid of wanted) {
    const candidate = kid.key === undefined ? place : keyed.get(kid.key);
    const node = candidate && fits(candidate, kid) ? candidate : create(kid, parent);
    if (kid.tag !== undefined) update(node, kid);
    else if (node.data !== String(kid)) node.data = String(kid);
    if (node === place) place = place.nextSibling;
    else parent.insertBefore(node, place);
  }
  while (place) {
    const after = place.nextSibling;
    place.remove();
    place = after;
  }
}

function fits(node, kid) {
  if (kid.tag === undefined) return node.nodeType === Node.TEXT_NODE;
  return node.nodeType === Node.ELEMENT_NODE && node.localName === kid.tag && node[KNOWN]?.key === kid.key;
}

function create(kid, parent) {
  if (kid.tag === undefined) return document.createTextNode(String(kid));
  const drawing = kid.tag === "svg" || parent.namespaceURI === SVG;
  return drawing ? document.createElementNS(SVG, kid.tag) : document.createElement(kid.tag);
}

function update(node, kid) {
  const before = node[KNOWN]?.props ?? {};
  for (const name of Object.keys(before)) if (!(name in kid.props)) assign(node, name, null);
  for (const [name, value] of Object.entries(kid.props)) if (before[name] !== value) assign(node, name, value);
  node[KNOWN] = kid;
  if (!kid.tag.includes("-")) patch(node, kid.kids); // a custom element draws its own content
}

// A name with a dot is a property, one that starts with `on` a handler, `style` an object; the rest are attributes.
function assign(node, name, value) {
  if (name === "key") return;
  if (name.startsWith(".")) node[name.slice(1)] = value;
  else if (name.startsWith("on")) node[name] = value;
  else if (name === "style") for (const [one, text] of Object.entries(value ?? {})) node.style.setProperty(one, text);
  else if (value === null || value === undefined || value === false) node.removeAttribute(name);
  else node.setAttribute(name, value === true ? "" : value);
}

// An element that draws `view()` of what it was given in `data`, at most once a frame.
class View extends HTMLElement {
  #waits = false;

  set data(data) {
    this.given = data;
    if (this.isConnected) this.draw();
  }

  connectedCallback() {
    if (this.given !== undefined) this.draw();
  }

  draw() {
    this.#waits = false;
    patch(this, [this.view()]);
  }

  redraw() {
    if (this.#waits) return;
    this.#waits = true;
    requestAnimationFrame(() => this.#waits && this.isConnected && this.draw());
  }
}

// --- Words and figures -----------------------------------------------------------------------------------------------

const ORIGINS = new Map([
  ["plan", "as planned"],
  ["check", "revised after a check"],
  ["repair", "repaired after an error"],
  ["fallback", "fallback, which no planner wrote"],
]);
const STATUSES = new Map([
  ["waiting", "waiting"],
  ["running", "running"],
  ["recovering", "trying again"],
  ["done", "finished"],
  ["unknown", "unknown"],
  ["failed", "failed"],
  ["stopped", "stopped"],
  ["skipped", "not run"],
]);
const MARKS = new Map([
  ["running", "▸"],
  ["recovering", "↻"],
  ["done", "✓"],
  ["unknown", "?"],
  ["failed", "✗"],
  ["stopped", "–"],
]);

const counted = (count, word) => `${count.toLocaleString("en")} ${count === 1 ? word : `${word}s`}`;

function seconds(value) {
  if (value < 0.0095) return `${(value * 1000).toFixed(1)} ms`;
  return value < 0.9995 ? `${Math.round(value * 1000)} ms` : `${value.toFixed(value < 10 ? 2 : 1)} s`;
}

function shortened(text, most) {
  const flat = text.replace(/\s+/g, " ").trim();
  return flat.length > most ? `${flat.slice(0, most - 1)}…` : flat;
}

function moment(created) {
  const date = new Date(created * 1000);
  return Number.isNaN(date.getTime()) ? "" : date.toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
}

// --- Traces and events: values of unknown shape become values that the views may rely on -----------------------------

const text = (value) =>
  typeof value === "string" ? value : value === null || value === undefined ? "" : String(value);
const number = (value) => (typeof value === "number" && Number.isFinite(value) ? value : 0);
const list = (value) => (Array.isArray(value) ? value : []);
const object = (value) => (typeof value === "object" && value !== null && !Array.isArray(value) ? value : {});
const texts = (value) => list(value).map(plain);
const plain = (value) => (typeof value === "object" && value !== null ? JSON.stringify(value) : text(value));

function readAnswer(value) {
  if (typeof value !== "object" || value === null) return null;
  const confidence = typeof value.confidence === "number" ? value.confidence : null;
  return { text: plain(value.text), known: value.known !== false, citations: texts(value.citations), confidence };
}

const MIN_CONFIDENCE = 0.5; // of an answer that is not weak, as in pyrag/trace/model.py
const isWeak = (answer) => Boolean(answer?.known && answer.confidence !== null && answer.confidence < MIN_CONFIDENCE);

// Engines of rules and a small reader call no model.
const callsModel = (trace) => trace.engine.split(":")[0] !== "embedded";

function readUsage(value) {
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

function readStep(value) {
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
  };
}

function readProgram(value) {
  const one = object(value);
  return {
    source: plain(one.source),
    planner: plain(one.planner),
    origin: plain(one.origin),
    error: plain(one.error),
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
function readTrace(value) {
  const one = object(value);
  if (typeof one.question !== "string" || !("answer" in one) || !Array.isArray(one.steps)) return null;
  return {
    question: one.question,
    said: plain(one.said),
    answer: readAnswer(one.answer) ?? { text: "", known: false, citations: [], confidence: null },
    weak: typeof one.weak === "boolean" ? one.weak : isWeak(readAnswer(one.answer)), // older traces have no verdict
    remark: plain(one.remark),
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
function eventsOf(trace) {
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
function tracesOfFile(name, content) {
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

// --- The reducer: a list of events becomes what is shown -------------------------------------------------------------

const START = Object.freeze({
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

function reduce(state, event) {
  const moved = { ...state, at: Math.max(state.at, number(event.at)) };
  const handler = HANDLERS.get(event.event);
  return handler ? { ...moved, ...handler(moved, event) } : moved;
}

const stateOf = (events, count = events.length) => events.slice(0, count).reduce(reduce, START);

function withWarning(state, message) {
  return message && !state.warnings.includes(message) ? { warnings: [...state.warnings, message] } : {};
}

const sentence = (message) => message.charAt(0).toUpperCase() + message.slice(1);

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

const isOver = (state) => ["done", "failed", "stopped"].includes(state.phase);

function outcome(state) {
  if (!state.answer?.known) return "Finished";
  return state.trace?.weak ? "Weak answer" : "Answered";
}

function progress(state) {
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

// --- Programs: tokens, calls that are to come, and differences -------------------------------------------------------

const KEYWORDS = new Set(
  (
    "and as assert break continue def del elif else except finally for from if import in is lambda not or pass raise " +
    "return try while with yield None True False"
  ).split(" "),
);
const PRIMITIVES = new Set(["retrieve", "answer", "write"]);
const TOKEN =
  /(#[^\n]*)|([rbfRBF]{0,2}(?:"""[\s\S]*?(?:"""|$)|'''[\s\S]*?(?:'''|$)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?))|(\d[\w.]*)|([^\W\d]\w*)/gu;

// Returns the lines of a program, each a list of [kind, text].
function highlighted(source, primitives) {
  const lines = [[]];
  const add = (kind, part) => {
    part.split("\n").forEach((piece, index) => {
      if (index) lines.push([]);
      if (piece) lines.at(-1).push([kind, piece]);
    });
  };
  let place = 0;
  for (const match of source.matchAll(TOKEN)) {
    add("", source.slice(place, match.index));
    const [whole, comment, string, digits, name] = match;
    add(comment ? "comment" : string ? "string" : digits ? "number" : kindOfName(name, primitives), whole);
    place = match.index + whole.length;
  }
  add("", source.slice(place));
  return lines;
}

function kindOfName(name, primitives) {
  if (KEYWORDS.has(name)) return "keyword";
  if (primitives.has(name)) return "primitive";
  return name === "final_answer" ? "final" : "";
}

// Returns the calls that a program's text holds: line, primitive, query, and which of the calls each depends on; and the
// calls that its answer depends on. An estimate from the text, for the graph of what is still to come: a loop counts once.
function plannedCalls(source, primitives) {
  const calls = [];
  const holders = new Map(); // variable: the calls that its value comes from
  const blocks = []; // of conditions and loops: indentation, calls that they depend on
  const final = new Set();
  const used = (parts) => new Set(parts.flatMap((part) => [...(holders.get(part) ?? [])]));
  const lines = highlighted(source, primitives);
  lines.forEach((tokens, index) => {
    const code = tokens.filter(([kind]) => kind !== "comment");
    const line = code.map(([, part]) => part).join("");
    if (!line.trim()) return;
    const indent = line.length - line.trimStart().length;
    while (blocks.length && blocks.at(-1).indent > indent) blocks.pop();
    const ended = blocks.length && blocks.at(-1).indent === indent ? blocks.pop() : null;
    const names = code.flatMap(([kind, part]) => (kind === "string" ? (part.match(/[^\W\d]\w*/gu) ?? []) : [part]));
    const needs = used(names);
    for (const block of blocks) for (const one of block.needs) needs.add(one);
    const head = line.trim();
    if (/^(if|for|while)\b/.test(head)) blocks.push({ indent, needs });
    else if (/^(elif|else)\b/.test(head)) blocks.push({ indent, needs: new Set([...needs, ...(ended?.needs ?? [])]) });
    const made = new Set();
    code.forEach(([kind, part], at) => {
      if (
        kind !== "primitive" ||
        !code
          .slice(at + 1)
          .find(([, after]) => after.trim())?.[1]
          .trim()
          .startsWith("(")
      )
        return;
      const query = code.slice(at + 1).find(([one]) => one === "string")?.[1] ?? "";
      calls.push({ line: index + 1, primitive: part, query: unquoted(query), needs: new Set([...needs, ...made]) });
      made.add(calls.length - 1);
    });
    const target = /^([^\W\d]\w*)\s*=[^=]/u.exec(head)?.[1] ?? /^for\s+([^\W\d]\w*)\b/u.exec(head)?.[1];
    const holds = made.size ? made : needs;
    if (target === "final_answer") for (const one of holds) final.add(one);
    if (target) holders.set(target, new Set([...(indent ? (holders.get(target) ?? []) : []), ...holds]));
    const grown = /^([^\W\d]\w*)(?:\.\w+\(|\s*\+=|\[.*\]\s*=)/u.exec(head)?.[1];
    if (grown && !target) holders.set(grown, new Set([...(holders.get(grown) ?? []), ...holds]));
  });
  return { calls, final };
}

const unquoted = (literal) => literal.replace(/^[rbfRBF]{0,2}("""|'''|"|')/, "").replace(/("""|'''|"|')$/, "");

// Returns the lines of two texts as [sign, line]: " " kept, "-" removed, "+" added.
function difference(before, after) {
  const [old, now] = [before.split("\n"), after.split("\n")];
  const common = old.map(() => new Uint16Array(now.length + 1)).concat([new Uint16Array(now.length + 1)]);
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = now.length - 1; j >= 0; j -= 1) {
      common[i][j] = old[i] === now[j] ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1]);
    }
  }
  const lines = [];
  let [i, j] = [0, 0];
  while (i < old.length || j < now.length) {
    if (i < old.length && j < now.length && old[i] === now[j]) lines.push([" ", old[((j += 1), i++)]]);
    else if (j < now.length && (i === old.length || common[i][j + 1] > common[i + 1][j])) lines.push(["+", now[j++]]);
    else lines.push(["-", old[i++]]);
  }
  return lines;
}

const triesOf = (step) => Math.max(step.attempts.length, step.recoveries ? step.recoveries.length + 1 : 1);

function result(step) {
  if (step.error) return shortened(step.error, 160);
  if (step.answer) return step.answer.known ? shortened(step.answer.text, 160) : "unknown";
  if (step.output) return shortened(step.output, 160);
  return step.ended === null ? "" : counted(step.passages.length, "passage");
}

// --- The dataflow graph: nodes, edges and places ---------------------------------------------------------------------

// Returns the nodes of one program's run, those to come included: key, level (row), status, and the keys they depend on.
function graphOf(state, round) {
  const program = state.programs[round];
  const steps = [...state.steps.values()].filter((step) => step.round === round || !program);
  const primitives = new Set([...PRIMITIVES, ...steps.map((step) => step.primitive)]);
  const { calls, final } = program ? plannedCalls(program.source, primitives) : { calls: [], final: new Set() };
  const keys = new Map(); // step: key of its node
  const ahead = new Map(); // place of a planned call: key of its node
  const nodes = [];
  for (const step of steps) {
    const place = calls.findIndex(
      (call, index) => step.line === call.line && step.primitive === call.primitive && !ahead.has(index),
    );
    const key = `step-${step.id}`;
    keys.set(step.id, key);
    if (place >= 0) ahead.set(place, key);
    nodes.push({ key, step, call: calls[place], status: step.status, primitive: step.primitive, query: step.query });
  }
  const over = isOver(state) || round < state.programs.length - 1;
  calls.forEach((call, index) => {
    if (ahead.has(index)) return;
    ahead.set(index, `call-${index}`);
    nodes.push({
      key: `call-${index}`,
      call,
      status: over ? "skipped" : "waiting",
      primitive: call.primitive,
      query: call.query,
    });
  });
  for (const node of nodes) {
    const known = (node.step?.dependsOn ?? []).map((id) => keys.get(id)).filter(Boolean);
    const guessed = [...(node.call?.needs ?? [])].map((index) => ahead.get(index));
    node.needs = [...new Set(known.length ? known : guessed)].filter((key) => key !== node.key);
    node.order = node.call?.line ?? node.step?.line ?? 0;
  }
  const ends = [...final]
    .map((index) => ahead.get(index))
    .filter((key) => !(over && statusOf(nodes, key) === "skipped"));
  if (program && ends.length) {
    const last = round === state.programs.length - 1 && state.answer;
    const status = last ? (state.answer.known ? "done" : "unknown") : over ? "skipped" : "waiting";
    const said = last ? state.answer.text : "";
    nodes.push({ key: "final", status, primitive: "final_answer", query: said, needs: ends, order: Infinity });
  }
  return levelled(nodes, Boolean(program));
}

const statusOf = (nodes, key) => nodes.find((node) => node.key === key)?.status;

function levelled(nodes, planned) {
  const byKey = new Map(nodes.map((node) => [node.key, node]));
  const level = (node, path) => {
    if (node.level === undefined) {
      const before = node.needs.map((key) => byKey.get(key)).filter((one) => one && !path.has(one));
      node.level = Math.max(0, ...before.map((one) => level(one, new Set(path).add(one)) + 1));
    }
    return node.level;
  };
  nodes.sort((one, other) => one.order - other.order || (one.step?.id ?? 0) - (other.step?.id ?? 0));
  if (!planned && nodes.every((node) => !node.needs.length)) nodes.forEach((node, index) => (node.level = index));
  nodes.forEach((node) => level(node, new Set([node])));
  for (const node of nodes) node.needs = direct(node, byKey);
  return nodes;
}

// Returns the needs of a node that no other of its needs has already, so that no edge repeats a longer way.
function direct(node, byKey) {
  const behind = new Set();
  const walk = (key) => {
    for (const one of byKey.get(key)?.needs ?? []) {
      if (behind.has(one)) continue;
      behind.add(one);
      walk(one);
    }
  };
  node.needs.forEach(walk);
  return node.needs.filter((key) => !behind.has(key));
}

// Gives each node its column: below its parents where there is room, rows centred. Returns the numbers of columns and rows.
function placeNodes(nodes) {
  const byKey = new Map(nodes.map((node) => [node.key, node]));
  const rows = [];
  for (const node of nodes) (rows[node.level] ??= []).push(node);
  const columns = Math.max(1, ...rows.map((row) => row.length));
  for (const row of rows) {
    const mean = (node) => {
      const parents = node.needs.map((key) => byKey.get(key)?.column).filter((one) => one !== undefined);
      return parents.length ? parents.reduce((sum, one) => sum + one, 0) / parents.length : null;
    };
    const wish = new Map(row.map((node, index) => [node, mean(node) ?? (columns - row.length) / 2 + index]));
    const isSkipped = (node) => Number(node.status === "skipped"); // beside what was run
    row.sort(
      (one, other) => wish.get(one) - wish.get(other) || isSkipped(one) - isSkipped(other) || one.order - other.order,
    );
    row.forEach((node, index) => {
      const free = index ? row[index - 1].column + 1 : 0;
      node.column = Math.max(free, Math.min(wish.get(node), columns - row.length + index));
    });
  }
  return { columns, rows: rows.length };
}

// --- Evidence --------------------------------------------------------------------------------------------------------

const words = (value) => (value.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).filter((word) => word.length > 2);

function sentencesOf(passage) {
  if (!Intl.Segmenter) return passage.match(/[^.!?]+[.!?]*\s*/g) ?? [passage];
  return [...new Intl.Segmenter("en", { granularity: "sentence" }).segment(passage)].map((one) => one.segment);
}

// Returns a passage's sentences as {text, isEvidence}: those that hold the answer, else the one nearest to the question.
function evidenceIn(passage, answers, query) {
  const sentences = sentencesOf(passage);
  let chosen = sentences.map((one) => answers.some((answer) => placeOf(one, answer) >= 0));
  if (!chosen.includes(true)) {
    const sought = new Set(words([query, ...answers].join(" ")));
    const scores = sentences.map((one) => new Set(words(one).filter((word) => sought.has(word))).size);
    const best = Math.max(0, ...scores);
    chosen = scores.map((score, index) => best > 0 && index === scores.indexOf(best));
  }
  return sentences.map((one, index) => ({ text: one, isEvidence: chosen[index] }));
}

// Returns the place of an answer in a sentence, as whole words; -1 if it is not there.
function placeOf(sentence, answer) {
  const [whole, sought] = [sentence.toLowerCase(), answer.toLowerCase()];
  if (sought.length < 2 || whole.length !== sentence.length) return -1;
  const isPart = (character) => /[\p{L}\p{N}]/u.test(character);
  for (let at = whole.indexOf(sought); at >= 0; at = whole.indexOf(sought, at + 1)) {
    if (!isPart(whole.charAt(at - 1)) && !isPart(whole.charAt(at + sought.length))) return at;
  }
  return -1;
}

// Returns the parts of a sentence, the answers in it marked.
function markedAnswers(sentence, answers) {
  for (const answer of answers) {
    const start = placeOf(sentence, answer);
    if (start >= 0) {
      const end = start + answer.length;
      return [
        sentence.slice(0, start),
        h("mark", null, sentence.slice(start, end)),
        ...markedAnswers(sentence.slice(end), answers),
      ];
    }
  }
  return [sentence];
}

function evidenceFor(citation, trace) {
  const step = trace.steps.find((one) => one.id === citation.step);
  const answers = [step?.answer?.known ? step.answer.text : "", trace.answer.known ? trace.answer.text : ""].filter(
    Boolean,
  );
  return { step, answers, query: step?.query ?? trace.question };
}

// --- The program -----------------------------------------------------------------------------------------------------

const RANK = ["failed", "recovering", "running", "stopped", "unknown", "done"];

// Given: state, version (index of the program), open(step).
class ProgramView extends View {
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
class ChangesView extends View {
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

// --- The graph -------------------------------------------------------------------------------------------------------

const NODE = { height: 5.5, gapX: 1, gapY: 1.6, min: 8.5, max: 15 }; // in rem

// Given: state, version, open(step).
class GraphView extends View {
  #width = 40;
  #observer = new ResizeObserver(([entry]) => {
    const width = entry.contentRect.width / parseFloat(getComputedStyle(document.documentElement).fontSize);
    if (Math.abs(width - this.#width) < 0.1) return;
    this.#width = width;
    this.redraw();
  });

  connectedCallback() {
    this.#observer.observe(this);
    super.connectedCallback();
  }

  disconnectedCallback() {
    this.#observer.disconnect();
  }

  view() {
    const { state, version } = this.given;
    const nodes = graphOf(state, version);
    if (!nodes.length)
      return h("p", { class: "empty" }, isOver(state) ? "No step was run." : "Its steps appear here as a graph.");
    const { columns, rows } = placeNodes(nodes);
    const fitting = (this.#width - (columns - 1) * NODE.gapX - 0.25) / columns;
    const width = Math.min(NODE.max, Math.max(NODE.min, fitting));
    const size = [columns * (width + NODE.gapX) - NODE.gapX, rows * (NODE.height + NODE.gapY) - NODE.gapY];
    const byKey = new Map(nodes.map((node) => [node.key, node]));
    const left = (node) => node.column * (width + NODE.gapX);
    const top = (node) => node.level * (NODE.height + NODE.gapY);
    const edges = nodes.flatMap((node) => node.needs.map((key) => [byKey.get(key), node]).filter(([from]) => from));
    const curve = ([from, to]) => {
      const [x1, y1, x2, y2] = [left(from) + width / 2, top(from) + NODE.height, left(to) + width / 2, top(to)];
      const bend = Math.max(NODE.gapY * 0.6, (y2 - y1) / 2);
      return `M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}`;
    };
    const done = (node) => ["done", "unknown"].includes(node.status);
    const path = (edge) =>
      h("path", {
        key: `${edge[0].key}>${edge[1].key}`,
        d: curve(edge),
        "data-status": done(edge[0]) ? (edge[1].status === "skipped" ? "skipped" : "done") : edge[1].status,
      });
    const places = { width: `${size[0]}rem`, height: `${size[1]}rem` };
    return h(
      "div",
      { class: "graph-scroll", role: "group", "aria-label": "Dataflow graph", tabindex: "0" },
      h(
        "div",
        { class: "graph", style: places },
        h("svg", { viewBox: `0 0 ${size[0]} ${size[1]}`, "aria-hidden": "true", style: places }, edges.map(path)),
        h(
          "ol",
          null,
          nodes.map((node) =>
            h(
              "li",
              {
                key: node.key,
                style: {
                  left: `${left(node)}rem`,
                  top: `${top(node)}rem`,
                  width: `${width}rem`,
                  height: `${NODE.height}rem`,
                },
              },
              this.node(node),
            ),
          ),
        ),
      ),
    );
  }

  node(node) {
    const { step } = node;
    const mark = h("span", { class: "mark", "aria-hidden": "true" }, MARKS.get(node.status) ?? "");
    const hidden = h("span", { class: "hidden" }, `, ${STATUSES.get(node.status)}: `);
    const name = node.key === "final" ? "answer of the program" : node.primitive;
    const head = h("span", { class: "node-head" }, name, step?.memo ? " (memo)" : "", hidden, mark);
    const query = h("span", { class: "node-query" }, node.query);
    const said = step
      ? result(step) || STATUSES.get(step.status)
      : node.key === "final"
        ? ""
        : STATUSES.get(node.status);
    const time = step && step.ended !== null && !step.memo ? seconds(step.ended - step.began) : "";
    const took =
      step && triesOf(step) > 1 ? [h("span", { class: "tries" }, `${triesOf(step)} attempts`), " ", time] : time;
    const foot = h(
      "span",
      { class: "node-foot" },
      h("span", { class: "node-result" }, said),
      h("span", { class: "node-time" }, took),
    );
    const inner = [head, query, node.key === "final" ? null : foot];
    const shown = {
      class: `node ${node.key === "final" ? "final" : ""}`,
      "data-status": node.status,
      "data-primitive": node.primitive,
    };
    if (!step) return h("div", shown, inner);
    return h("button", { ...shown, type: "button", onclick: () => this.given.open(step) }, inner);
  }
}

// --- The timeline ----------------------------------------------------------------------------------------------------

function ticksUpTo(end) {
  const rough = end / 5 || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const unit = [1, 2, 5, 10].find((one) => one * power >= rough) * power;
  return Array.from({ length: Math.floor(end / unit + 1e-9) + 1 }, (_, index) => index * unit);
}

// Given: state, now (seconds, of a live run; else null), span (seconds of the whole run), open(step).
class TimelineView extends View {
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

// --- The answer ------------------------------------------------------------------------------------------------------

// Given: state, cite(citation).
class AnswerView extends View {
  view() {
    const { state, cite } = this.given;
    const { answer, error, trace } = state;
    const citations = trace?.citations ?? [];
    const body = [];
    if (error) body.push(h("p", { class: "problem", key: "error" }, error.message || "The question failed."));
    if (answer && (!error || answer.known)) {
      const numbers = citations.map((citation) => [
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
      const said = answer.known ? answer.text : "No answer found";
      body.push(h("p", { class: "answer", key: "answer", "data-known": String(answer.known) }, said, numbers));
      const remark = trace?.remark ?? "";
      if (remark) body.push(h("p", { class: "remark", key: "remark" }, `${sentence(remark)}.`));
      else if (!answer.known)
        body.push(h("p", { class: "note", key: "unknown" }, "The passages that were found do not say it."));
      if (answer.known && answer.confidence !== null && !remark) {
        body.push(h("p", { class: "note", key: "confidence" }, `Confidence ${answer.confidence.toFixed(2)}`));
      }
    }
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

  source(citation) {
    const { state, cite } = this.given;
    const passage = state.trace.passages.get(citation.passage);
    const { answers, query } = evidenceFor(citation, state.trace);
    const sentence = passage && evidenceIn(passage.text, answers, query).find((one) => one.isEvidence)?.text;
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

const titleOf = (citation, trace) => trace.passages.get(citation.passage)?.title || citation.passage;

const OF_MODELS = new Set(["Model calls", "Tokens", "From cache"]);

function costOf(trace, repairs) {
  const { usage } = trace;
  const tokens = usage.prompt_tokens + usage.completion_tokens;
  const figures = [
    ["Model calls", usage.model_calls.toLocaleString("en")],
    ["Retrievals", usage.retrievals.toLocaleString("en")],
    [
      "Tokens",
      tokens
        ? `${usage.prompt_tokens.toLocaleString("en")} in, ${usage.completion_tokens.toLocaleString("en")} out`
        : "0",
    ],
    ["Time", seconds(usage.seconds)],
    ["Repairs", String(repairs)],
    [
      "From cache",
      usage.cached_calls ? `${counted(usage.cached_calls, "call")}, ${counted(usage.cached_tokens, "token")}` : "0",
    ],
  ];
  const ahead = usage.unused_calls + usage.unused_retrievals;
  if (ahead) figures.push(["Begun in vain", counted(ahead, "call")]);
  if (usage.cost !== null) figures.push(["Cost", usage.cost.toLocaleString("en", { maximumSignificantDigits: 3 })]);
  return callsModel(trace) ? figures : figures.filter(([name]) => !OF_MODELS.has(name));
}

// --- A run: everything about one question, live or saved -------------------------------------------------------------

function said(event, state) {
  const name = event.event;
  if (name === "decomposed")
    return `${counted(list(event.sub_queries).length, "sub-query").replace("querys", "queries")} written`;
  if (name === "drafting") return "The program is being written";
  if (name === "planned")
    return state.programs.length > 1 ? `Program ${state.programs.length} written` : "Program written";
  if (name === "rejected") return "The program was rejected";
  if (name === "step_started" || name === "recovering" || name === "step_finished") {
    const id = event.kept?.id ?? (name === "step_finished" ? object(event.step).id : event.step);
    const step = state.steps.get(id);
    if (!step) return "A step";
    const which = `Step ${step.id + 1}, ${step.primitive}`;
    if (name === "step_started") return `${which} starts: ${shortened(step.query, 80)}`;
    if (name === "recovering") return `${which} came back unknown and is tried again (${plain(event.policy)})`;
    return `${which}: ${result(step)}`;
  }
  if (name === "agent_started") return `Agent ${plain(event.role)} is asked`;
  if (name === "agent_finished") return `Agent ${plain(event.role)} has answered`;
  if (name === "warned") return shortened(plain(event.message), 120);
  if (name === "answered") return `Answer: ${state.answer?.text ?? ""}`;
  if (name === "reply") return state.error ? "The question failed" : `Answer: ${state.answer?.text ?? ""}`;
  if (name === "error") return state.error.message;
  return WORDS.get(name) ?? plain(name).replaceAll("_", " ");
}

const WORDS = new Map([
  ["accepted", "Question accepted"],
  ["question_started", "Question accepted"],
  ["program_started", "The program runs"],
  ["program_finished", "The program has ended"],
  ["searched", "Search finished"],
  ["question_finished", "Finished"],
  ["follow_up", "Follow-up"],
  ["stopped", "Stopped"],
]);
const PACE = { least: 180, most: 1100, whole: 9000 }; // milliseconds of a replay

// Given: run {key, question, events, live, began, about}, level of its heading, extra (nodes below the heading).
class RunView extends View {
  #cursor = null; // number of events shown; null for all of them
  #version = null; // of the program; null for the last
  #timer = null;
  #clock = null;
  #key = null;

  set data(data) {
    if (data.run.key !== this.#key) {
      this.pause();
      [this.#cursor, this.#version, this.#key] = [null, null, data.run.key];
    }
    this.given = data;
    if (!this.isConnected) return;
    this.tick();
    this.redraw();
  }

  connectedCallback() {
    super.connectedCallback();
    this.tick();
  }

  disconnectedCallback() {
    this.pause();
    clearInterval(this.#clock);
    this.#clock = null;
  }

  tick() {
    const { live } = this.given.run;
    if (live && this.#clock === null) this.#clock = setInterval(() => this.redraw(), 100);
    if (!live && this.#clock !== null) {
      clearInterval(this.#clock);
      this.#clock = null;
    }
  }

  get isPlaying() {
    return this.#timer !== null;
  }

  view() {
    const { run, level, extra } = this.given;
    const state = stateOf(run.events, this.#cursor ?? run.events.length);
    const whole = this.#cursor === null ? state : stateOf(run.events);
    const version = Math.min(this.#version ?? Infinity, state.programs.length - 1);
    const open = (step) => this.ask("step", { step, trace: whole.trace });
    const cite = (citation) => this.ask("passage", { citation, trace: whole.trace });
    const now = run.live ? Math.max(state.at, (performance.now() - run.began) / 1000) : null;
    const trace = whole.trace;
    const heading = `h${level}`;
    const part = (name, title, ...kids) =>
      h("section", { key: name, class: `part ${name}` }, h(`h${level + 1}`, null, title), kids);
    return h(
      "article",
      {
        class: "run",
        "data-phase": state.phase,
        "data-known": isOver(state) ? String(state.answer?.known === true) : null,
        "data-weak": isOver(state) && state.trace?.weak && !state.error ? "true" : null,
      },
      h(
        "header",
        { class: "run-head", key: "head" },
        h(heading, { class: "question", tabindex: "-1" }, run.question),
        h("p", { class: "about" }, run.about),
        extra,
      ),
      this.verdict(state, whole, now, cite),
      whole.subQueries.length || !isOver(whole) ? part("queries", "Sub-queries", this.subQueries(state)) : null,
      h(
        "div",
        { class: "stage", key: "stage" },
        part(
          "program",
          "Program",
          this.versions(state, version),
          h("pyrag-program", { key: "shown", ".data": { state, version, open } }),
          this.repairs(state, version),
          this.rewriting(state),
        ),
        part("dataflow", "Dataflow", h("pyrag-graph", { ".data": { state, version: Math.max(version, 0), open } })),
      ),
      part("times", "Timeline", h("pyrag-timeline", { ".data": { state, now, span: whole.at, open } })),
      trace
        ? part(
            "cost",
            "Cost",
            h(
              "dl",
              { class: "figures" },
              costOf(trace, Math.max(0, trace.programs.length - 1)).map(([name, value]) =>
                h("div", { key: name }, h("dt", null, name), h("dd", null, value)),
              ),
            ),
          )
        : null,
      (trace?.extensions ?? []).map(([name, value]) =>
        part(`extension ${name}`, `What ${name} kept`, dataTree(value)),
      ),
      run.live ? null : this.stepper(run, state),
    );
  }

  verdict(state, whole, now, cite) {
    const stepping = this.#cursor !== null;
    const shown = isOver(whole) && whole.phase !== "stopped";
    return h(
      "div",
      {
        class: "verdict",
        key: "verdict",
        role: "group",
        "aria-label": "Answer",
        "data-ahead": String(stepping && !isOver(state)),
      },
      h(
        "p",
        { class: "progress", key: "progress" },
        h("span", { class: "lamp", "aria-hidden": "true" }),
        progress(state),
        now === null ? "" : h("span", { class: "clock" }, ` ${now.toFixed(1)} s`),
      ),
      shown
        ? h("pyrag-answer", { ".data": { state: whole, cite } })
        : state.warnings.map((message) => h("p", { class: "warning", key: message }, sentence(message))),
    );
  }

  subQueries(state) {
    if (!state.subQueries.length) return h("p", { class: "empty" }, "They appear here.");
    const same = (one, other) => one.trim().toLowerCase() === other.trim().toLowerCase();
    const found = (query) => [...state.steps.values()].find((step) => step.answer && same(step.query, query));
    return h(
      "ol",
      { class: "sub-queries" },
      state.subQueries.map((query, index) => {
        const step = found(query);
        return h(
          "li",
          { key: index },
          query,
          step ? h("span", { class: "sub-answer", "data-status": step.status }, result(step)) : null,
        );
      }),
    );
  }

  versions(state, version) {
    const { programs } = state;
    if (!programs.length) return null;
    const origin = ORIGINS.get(programs[version].origin) ?? programs[version].origin;
    if (programs.length === 1) return h("p", { class: "origin", key: "origin" }, origin);
    const choose = (index) => () => {
      this.#version = index === programs.length - 1 ? null : index;
      this.draw();
    };
    const button = (program, index) =>
      h(
        "button",
        { key: index, type: "button", "aria-pressed": String(index === version), onclick: choose(index) },
        `Version ${index + 1}`,
        program.error ? h("span", { class: "tag" }, " rejected") : null,
      );
    return h(
      "div",
      { class: "versions", key: "origin" },
      h("div", { class: "tabs", role: "group", "aria-label": "Versions of the program" }, programs.map(button)),
      h("p", { class: "origin" }, origin),
    );
  }

  rewriting(state) {
    if (!state.draft || !state.programs.length) return null;
    const version = state.programs.length;
    return h(
      "div",
      { key: "draft", class: "draft" },
      h("p", { class: "origin" }, `Version ${version + 1}, being written`),
      h("pyrag-program", { ".data": { state, version } }),
    );
  }

  repairs(state, version) {
    const program = state.programs[version];
    const before = state.programs[version - 1];
    if (!program) return null;
    const error = program.error.trim().split("\n").slice(-8).join("\n");
    return [
      program.error
        ? h(
            "div",
            { class: "rejection", key: "error" },
            h("p", null, "Rejected. Its planner was told:"),
            h("pre", null, error),
          )
        : null,
      before
        ? h(
            "details",
            { class: "change", key: `change ${version}`, open: true },
            h("summary", null, `Changes since version ${version}`),
            h("pyrag-changes", { ".data": { before: before.source, after: program.source } }),
          )
        : null,
    ];
  }

  stepper(run, state) {
    const count = run.events.length;
    const at = this.#cursor ?? count;
    const last = at > 0 ? said(run.events[at - 1], state) : "Before the first event";
    const button = (label, sign, target, disabled) =>
      h(
        "button",
        {
          key: label,
          type: "button",
          class: "quiet",
          "aria-label": label,
          title: label,
          disabled,
          onclick: () => this.seek(target),
        },
        sign,
      );
    return h(
      "div",
      { class: "stepper", key: "stepper", role: "group", "aria-label": "Step through the run" },
      h(
        "button",
        { key: "play", type: "button", class: "play", onclick: () => (this.isPlaying ? this.pause() : this.play()) },
        this.isPlaying ? "Pause" : "Replay",
      ),
      button("Previous event", "‹", at - 1, at <= 0),
      h("input", {
        key: "range",
        type: "range",
        min: "0",
        max: String(count),
        step: "1",
        ".value": String(at),
        "aria-label": "Event",
        "aria-valuetext": `${at} of ${count}: ${last}`,
        oninput: (event) => this.seek(Number(event.target.value)),
      }),
      button("Next event", "›", at + 1, at >= count),
      h("span", { class: "stepper-at", key: "at" }, `${at} / ${count}`),
      h("span", { class: "stepper-said", key: "said" }, `${seconds(state.at)} · ${last}`),
    );
  }

  seek(target) {
    this.pause();
    this.moveTo(target);
  }

  moveTo(target) {
    const count = this.given.run.events.length;
    const at = Math.max(0, Math.min(count, target));
    this.#cursor = at === count ? null : at;
    this.draw();
    const state = stateOf(this.given.run.events, at);
    if (at > 0) this.ask("say", { message: said(this.given.run.events[at - 1], state) });
  }

  play() {
    if (this.#cursor === null) this.#cursor = 0;
    this.#timer = setTimeout(() => this.advance(), PACE.least);
    this.draw();
  }

  // Real gaps, stretched so that the whole takes some seconds, each within bounds that an eye can follow.
  advance() {
    const { events } = this.given.run;
    const next = (this.#cursor ?? events.length) + 1;
    if (next >= events.length) {
      this.#timer = null;
      this.moveTo(events.length);
      return;
    }
    const span = Math.max(number(events.at(-1).at), 0.001);
    const gap = ((number(events[next].at) - number(events[next - 1].at)) * PACE.whole) / span;
    this.#timer = setTimeout(() => this.advance(), Math.min(PACE.most, Math.max(PACE.least, gap)));
    this.moveTo(next);
  }

  pause() {
    if (this.#timer === null) return;
    clearTimeout(this.#timer);
    this.#timer = null;
    if (this.isConnected) this.redraw();
  }

  ask(what, detail) {
    this.dispatchEvent(new CustomEvent(`pyrag-${what}`, { bubbles: true, detail }));
  }
}

// --- Sheets: a passage or a step over the page -----------------------------------------------------------------------

const MAX_DEPTH = 6; // of data that is drawn as a tree; what lies deeper is shown as JSON
const MAX_ENTRIES = 100; // of a list or object that are drawn
const MAX_INLINE = 40; // characters of values that stand in one line

// Plain data of a method, whatever its form: names with their values, and lists.
function dataTree(value, depth = 0) {
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

function passageSheet(citation, trace) {
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

function stepSheet(step, trace) {
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
  if (step.output) body.push(h("h3", null, "Output"), h("p", { class: "passage" }, step.output));
  const answers = step.answer?.known ? [step.answer.text] : [];
  if (step.passages.length)
    body.push(
      h("h3", null, counted(step.passages.length, "passage")),
      step.passages.map((id, index) => passageDetails(id, index, step, answers, trace)),
    );
  return { title: `${step.primitive}`, lead: `Step ${step.id + 1}`, body };
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
// --- The server ------------------------------------------------------------------------------------------------------

// A sentence for the person at the page.
class Refused extends Error {
  constructor(message, status = 0) {
    super(message);
    this.status = status;
  }
}

// Storage may be forbidden, in a sandboxed frame say; the page then forgets.
function kept(storage, name, value) {
  try {
    const store = window[storage];
    if (value === undefined) return store.getItem(name);
    if (value === null) store.removeItem(name);
    else store.setItem(name, value);
  } catch {
    // forgotten
  }
  return value ?? null;
}

const GONE = "The server does not answer: check that pyrag serve is still running, then ask again.";

async function request(path, options = {}) {
  const key = kept("sessionStorage", "pyrag-key");
  const headers = { ...options.headers, ...(key ? { Authorization: `Bearer ${key}` } : {}) };
  let response;
  try {
    response = await fetch(path, { ...options, headers, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(GONE);
  }
  if (!response.ok) throw await refusal(response);
  return response;
}

async function refusal(response) {
  const body = object(await response.json().catch(() => null));
  const message = plain(object(body.error).message) || `The server answered with status ${response.status}.`;
  const wait = Number(response.headers.get("Retry-After"));
  const again = wait > 0 ? ` Try again in ${counted(wait, "second")}.` : "";
  const start = message.charAt(0).toUpperCase() + message.slice(1);
  return new Refused(`${start.replace(/\.?$/, ".")}${again}`, response.status);
}

async function* serverEvents(response) {
  const decoder = new TextDecoder();
  const reader = response.body.getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += decoder.decode(value, { stream: true });
    const blocks = rest.split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const fields = new Map(
        block.split("\n").map((line) => [line.split(":", 1)[0], line.slice(line.indexOf(":") + 1).trim()]),
      );
      if (fields.get("data")) yield { ...object(JSON.parse(fields.get("data"))), event: fields.get("event") };
    }
  }
}

const aboutTrace = (trace, created = trace.created) =>
  [
    trace.method,
    trace.engine,
    trace.retriever,
    trace.said && trace.said !== trace.question ? `asked as “${shortened(trace.said, 120)}”` : "",
    created ? moment(created) : "",
    trace.version ? `pyrag ${trace.version}` : "",
  ]
    .filter(Boolean)
    .join(" · ");

function savedRun(key, trace, created) {
  const run = { key, question: trace.question, live: false, began: 0, about: aboutTrace(trace, created), trace };
  let events = null;
  return Object.defineProperty(run, "events", { get: () => (events ??= eventsOf(trace)), enumerable: true });
}

// --- Views of the application ----------------------------------------------------------------------------------------

// Given: options, busy, problem, compact (no examples), ask(request), stop().
class AskForm extends View {
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
          : h("button", { key: "ask", type: "submit", class: "primary" }, "Ask"),
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

  submit(event) {
    event.preventDefault();
    const given = new FormData(event.target);
    const question = text(given.get("question")).trim();
    const where = text(given.get("where")).trim() || undefined;
    const [index, method] = ["index", "method"].map((name) => given.get(name) ?? undefined);
    if (question) this.given.ask({ question, index, method, where });
    else this.querySelector("textarea").focus();
  }
}

const MAX_ROWS = 200; // of files that are listed at once

// Given: traces (summaries of the server), runs (of files), more(), picked (keys), pick(key), follow, files(input), hasServer.
class TraceList extends View {
  #most = MAX_ROWS;

  view() {
    const { traces, runs, more, picked, hasServer } = this.given;
    return h(
      "div",
      { class: "traces" },
      this.given.files
        ? h(
            "p",
            { class: "open-file" },
            h(
              "label",
              { class: "file" },
              h("span", null, "Open trace files"),
              h("input", {
                type: "file",
                multiple: true,
                accept: ".json,.jsonl",
                onchange: (event) => this.given.files(event.target),
              }),
            ),
            h("span", { class: "note" }, " of pyrag ask --trace, or of the folder traces/ of a bench run"),
          )
        : null,
      runs.length
        ? [
            h("h2", { key: "files" }, hasServer ? "From files" : "Traces"),
            this.rows(
              "files-list",
              runs.slice(0, this.#most).map((run) => ({
                id: run.key,
                question: run.question,
                answer: run.trace.answer,
                error: run.trace.error,
                about: run.about,
                seconds: run.trace.usage.seconds,
              })),
            ),
            runs.length > this.#most
              ? h(
                  "button",
                  { key: "files-more", type: "button", class: "quiet", onclick: () => this.widen() },
                  `Show more of ${runs.length.toLocaleString("en")}`,
                )
              : null,
          ]
        : null,
      hasServer
        ? [
            h("h2", { key: "server" }, "History"),
            traces.length
              ? this.rows("server-list", traces)
              : h("p", { class: "empty", key: "none" }, "No question has been asked yet."),
          ]
        : null,
      more ? h("button", { key: "more", type: "button", class: "quiet", onclick: more }, "Show older ones") : null,
      h(
        "div",
        { key: "compare", class: "compare-bar", "data-picked": String(picked.size) },
        picked.size === 2
          ? h(
              "a",
              {
                class: "primary",
                href: `#/compare/${[...picked].map(encodeURIComponent).join("/")}`,
                onclick: this.given.follow,
              },
              "Compare the two",
            )
          : h("p", { class: "note" }, "Tick two traces to compare them."),
      ),
    );
  }

  widen() {
    this.#most += MAX_ROWS;
    this.draw();
  }

  rows(key, rows) {
    const { picked, pick, follow } = this.given;
    return h(
      "ol",
      { key, class: "rows" },
      rows.map((row) =>
        h(
          "li",
          { key: row.id },
          h("input", {
            type: "checkbox",
            ".checked": picked.has(row.id),
            "aria-label": `Compare: ${row.question}`,
            onchange: () => pick(row.id),
          }),
          h(
            "a",
            { href: `#/t/${encodeURIComponent(row.id)}`, onclick: follow },
            h("span", { class: "row-question" }, row.question),
            h(
              "span",
              { class: "row-answer", "data-known": String(row.answer.known && !row.error) },
              row.error ? `failed: ${row.error.kind}` : row.answer.known ? row.answer.text : "unknown",
            ),
            h("span", { class: "row-about" }, [row.about, seconds(row.seconds)].filter(Boolean).join(" · ")),
          ),
        ),
      ),
    );
  }
}

// Given: runs (two).
class CompareView extends View {
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

const THEMES = ["system", "light", "dark"];

class App extends HTMLElement {
  options = { engine: "", note: "", indexes: [], methods: [], examples: [], index: "", method: "" };
  run = null; // of the page's own question
  runs = new Map(); // saved ones by key: of files, and of the server as they are opened
  files = []; // keys of those from files
  traces = [];
  oldest = null; // number of the oldest trace listed, where there may be more
  picked = new Set();
  problem = "";
  wantsKey = false;
  sheet = null;
  view = "ask";
  shown = []; // keys of the traces shown
  controller = null;
  #said = "";
  #saying = null;

  connectedCallback() {
    const embedded = document.getElementById("pyrag-traces");
    this.hasServer = embedded === null;
    this.theme = THEMES.includes(kept("localStorage", "pyrag-theme")) ? kept("localStorage", "pyrag-theme") : "system";
    this.listen();
    if (embedded) this.openEmbedded(JSON.parse(embedded.textContent));
    else {
      window.addEventListener("hashchange", () => this.route(location.hash, true));
      this.loadOptions();
      this.route(location.hash, false);
    }
    this.draw();
  }

  listen() {
    this.addEventListener("pyrag-step", ({ detail }) => this.openSheet(stepSheet(detail.step, detail.trace)));
    this.addEventListener("pyrag-passage", ({ detail }) => this.openSheet(passageSheet(detail.citation, detail.trace)));
    this.addEventListener("pyrag-say", ({ detail }) => this.say(detail.message));
  }

  openEmbedded(values) {
    this.addRuns(list(values).map(readTrace).filter(Boolean), "");
    if (this.files.length === 1) [this.view, this.shown] = ["trace", [...this.files]];
    else this.view = "traces";
  }

  addRuns(traces, name) {
    for (const trace of traces) {
      const key = `file-${this.files.length + 1}`;
      const run = savedRun(key, trace);
      run.about = [name, run.about].filter(Boolean).join(" · ");
      this.runs.set(key, run);
      this.files.push(key);
    }
  }

  // --- routes

  async route(hash, focus) {
    const [view, ...keys] = hash.replace(/^#\/?/, "").split("/").map(decodeOr);
    this.problem = "";
    this.shown = [];
    if (view === "traces") {
      this.view = "traces";
      if (this.hasServer) this.loadTraces(null);
    } else if ((view === "t" && keys[0]) || (view === "compare" && keys.length === 2)) {
      this.view = view === "t" ? "trace" : "compare";
      await this.openTraces(keys);
    } else this.view = "ask";
    document.title = { traces: "Traces · pyrag", compare: "Two traces · pyrag" }[this.view] ?? "pyrag";
    this.draw();
    if (focus) this.querySelector("main h1, main h2")?.focus();
  }

  go(hash) {
    if (this.hasServer) location.hash = hash;
    else this.route(hash, true);
  }

  follow = (event) => {
    if (this.hasServer) return;
    event.preventDefault(); // a frame without an address of its own
    this.go(event.currentTarget.getAttribute("href"));
  };

  async openTraces(keys) {
    try {
      for (const key of keys) if (!this.runs.has(key)) await this.loadTrace(key);
      this.shown = keys;
    } catch (error) {
      this.fail(error);
    }
  }

  async loadTrace(key) {
    if (!this.hasServer || key.startsWith("file-"))
      throw new Refused("This trace is not here any more: open its file again.");
    const response = await request(`v1/traces/${encodeURIComponent(key)}`);
    const trace = readTrace(await response.json());
    if (!trace) throw new Refused("The server sent something that is no trace.");
    const created = this.traces.find((one) => one.id === key)?.created;
    this.runs.set(key, savedRun(key, trace, created));
  }

  async loadTraces(before) {
    try {
      const response = await request(`v1/traces?limit=50${before === null ? "" : `&before=${before}`}`);
      const found = list(object(await response.json()).traces).map((one) => ({
        id: plain(one.id),
        created: number(one.created),
        question: plain(one.question),
        answer: { text: plain(one.answer), known: one.known === true },
        error: one.error ? { kind: plain(one.error) } : null,
        about: [plain(one.index), moment(number(one.created))].join(" · "),
        seconds: number(one.seconds),
        number: number(one.number),
      }));
      this.traces = before === null ? found : [...this.traces, ...found];
      this.oldest = found.length === 50 ? found.at(-1).number : null;
    } catch (error) {
      this.fail(error);
    }
    this.draw();
  }

  async loadOptions() {
    try {
      const found = object(await (await request("v1/options")).json());
      const [index, method] = [plain(found.index), plain(found.method)];
      this.options = {
        engine: plain(found.engine),
        note: plain(found.engine_note),
        index,
        method,
        indexes: texts(found.indexes),
        methods: texts(found.methods),
        examples: texts(found.examples),
      };
      this.wantsKey = false;
    } catch (error) {
      this.fail(error);
    }
    this.draw();
  }

  // --- asking

  async ask(wanted) {
    this.controller = new AbortController();
    const { signal } = this.controller;
    this.problem = "";
    const filter = wanted.where ? `filter ${shortened(wanted.where, 80)}` : "";
    const about = [wanted.method ?? this.options.method, this.options.engine, wanted.index ?? this.options.index, filter]
      .filter(Boolean)
      .join(" · ");
    const run = {
      key: `live-${performance.now()}`,
      question: wanted.question,
      events: [],
      live: true,
      began: performance.now(),
      about,
      trace: null,
    };
    this.run = run;
    this.say("The question is sent");
    this.draw();
    try {
      const body = JSON.stringify({ ...wanted, stream: true, include_trace: true });
      const headers = { "Content-Type": "application/json", Accept: "text/event-stream" };
      const response = await request("v1/ask", { method: "POST", body, headers, signal });
      for await (const event of serverEvents(response)) this.take(run, event);
      if (run.live) throw new Refused("The connection ended before the answer came: ask again.");
    } catch (error) {
      if (error.name === "AbortError") this.end(run, { event: "stopped" });
      else if (run.events.length)
        this.end(run, { event: "error", message: error instanceof Refused ? error.message : GONE });
      else {
        if (this.run === run) this.run = null;
        this.fail(error instanceof Refused ? error : new Refused(GONE));
      }
    }
    this.draw();
  }

  take(run, event) {
    if (event.event === "accepted") {
      run.id = plain(event.id);
      run.began = performance.now();
    }
    if (event.event === "reply") {
      const trace = readTrace(event.trace);
      run.trace = trace;
      if (trace) run.about = aboutTrace(trace);
      this.end(run, { event: "reply", at: trace?.usage.seconds, trace });
      if (run.id && trace) this.runs.set(run.id, { ...run, live: false });
    } else if (event.event === "error") this.end(run, { event: "error", message: plain(object(event.error).message) });
    else {
      run.events.push(event);
      this.say(said(event, stateOf(run.events)));
    }
    this.draw();
  }

  end(run, event) {
    const at = Math.max(
      number(event.at),
      number(run.events.at(-1)?.at),
      event.event === "reply" ? 0 : (performance.now() - run.began) / 1000,
    );
    run.events.push({ ...event, at });
    run.live = false;
    this.controller = null;
    const state = stateOf(run.events);
    this.say(
      state.phase === "done"
        ? `${state.trace?.weak ? "Weak answer" : "Answer"}: ${state.answer?.known ? state.answer.text : "none found"}`
        : (state.error?.message ?? "Stopped"),
    );
  }

  stop = () => this.controller?.abort();

  fail(error) {
    if (error.status === 401) {
      this.wantsKey = true;
      this.problem = kept("sessionStorage", "pyrag-key")
        ? "This API key is unknown to the server: enter another one."
        : "";
      kept("sessionStorage", "pyrag-key", null);
    } else this.problem = error instanceof Refused ? error.message : GONE;
    this.say(this.problem || "The server asks for an API key");
  }

  async openFiles(input) {
    this.problem = "";
    const before = this.files.length;
    try {
      for (const file of input.files) this.addRuns(tracesOfFile(file.name, await file.text()), file.name);
    } catch (error) {
      this.fail(error instanceof Refused ? error : new Refused("The file cannot be read."));
    }
    input.value = "";
    if (this.files.length === before + 1) this.go(`#/t/${this.files.at(-1)}`);
    else this.say(`${counted(this.files.length - before, "trace")} opened`);
    this.draw();
  }

  pick = (key) => {
    if (!this.picked.delete(key)) this.picked.add(key);
    if (this.picked.size > 2) this.picked.delete([...this.picked][0]);
    this.draw();
  };

  // --- what is shown

  draw() {
    if (this.theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = this.theme;
    patch(this, [
      h(
        "a",
        { key: "skip", class: "skip", href: "#main", onclick: (event) => this.skip(event) },
        "Skip to the content",
      ),
      this.header(),
      h("main", { key: "main", id: "main", tabindex: "-1" }, this.wantsKey ? this.keyForm() : this.content()),
      h("p", { key: "status", class: "hidden", role: "status" }, this.#said),
      this.dialog(),
    ]);
  }

  skip(event) {
    event.preventDefault();
    this.querySelector("main").focus();
  }

  header() {
    const link = (hash, label, current) =>
      h("a", { key: hash, href: hash, "aria-current": current ? "page" : null, onclick: this.follow }, label);
    const links = this.hasServer
      ? [link("#/", "Ask", this.view === "ask"), link("#/traces", "Traces", this.view !== "ask")]
      : this.files.length > 1
        ? [link("#/traces", "Traces", this.view === "traces")]
        : [];
    const next = THEMES[(THEMES.indexOf(this.theme) + 1) % THEMES.length];
    const change = () => {
      this.theme = next;
      kept("localStorage", "pyrag-theme", next === "system" ? null : next);
      this.draw();
    };
    return h(
      "header",
      { key: "header", class: "bar-top" },
      h("p", { class: "brand" }, "pyrag"),
      h("nav", { "aria-label": "Pages" }, links),
      h(
        "button",
        {
          type: "button",
          class: "quiet theme",
          onclick: change,
          "aria-label": `Theme: ${this.theme}; change to ${next}`,
        },
        `Theme: ${this.theme}`,
      ),
    );
  }

  content() {
    const problem =
      this.problem && this.view !== "ask"
        ? h("p", { key: "problem", class: "problem", role: "alert" }, this.problem)
        : null;
    if (this.view === "ask") return this.asking();
    if (this.view === "traces") return [h("h1", { key: "h", tabindex: "-1" }, "Traces"), problem, this.list()];
    const runs = this.shown.map((key) => this.runs.get(key)).filter(Boolean);
    if (this.view === "compare") {
      return [
        h("h1", { key: "h", tabindex: "-1" }, "Two traces"),
        problem,
        runs.length === 2 ? h("pyrag-compare", { key: "compare", ".data": { runs } }) : null,
      ];
    }
    return [
      problem,
      runs[0]
        ? h("pyrag-run", { key: "saved", ".data": { run: runs[0], level: 1 } })
        : h("h1", { key: "h", tabindex: "-1" }, "Trace"),
    ];
  }

  asking() {
    const { run, options, problem } = this;
    const data = {
      options,
      busy: Boolean(run?.live),
      problem,
      compact: Boolean(run),
      ask: (wanted) => this.ask(wanted),
      stop: this.stop,
    };
    const link =
      run?.id && !run.live && run.trace
        ? h("p", { class: "permalink" }, h("a", { href: `#/t/${run.id}` }, "Link to this trace"))
        : null;
    return [
      h("h1", { key: "h", tabindex: "-1", class: run ? "hidden" : "lead" }, "Ask, and watch the program think"),
      h("pyrag-ask", { key: "ask", ".data": data }),
      run ? h("pyrag-run", { key: "run", ".data": { run, level: 2, extra: link } }) : null,
    ];
  }

  list() {
    const runs = this.files.map((key) => this.runs.get(key));
    const more = this.oldest === null ? null : () => this.loadTraces(this.oldest);
    const files = this.hasServer ? (input) => this.openFiles(input) : null;
    const { traces, picked, pick, follow, hasServer } = this;
    return h("pyrag-traces", { key: "list", ".data": { traces, runs, more, picked, pick, follow, files, hasServer } });
  }

  keyForm() {
    const submit = (event) => {
      event.preventDefault();
      kept("sessionStorage", "pyrag-key", text(new FormData(event.target).get("key")).trim());
      this.wantsKey = false;
      this.loadOptions().then(() => !this.wantsKey && this.route(location.hash, true));
    };
    return h(
      "form",
      { key: "key", class: "key", onsubmit: submit },
      h("h1", { tabindex: "-1" }, "API key"),
      h("p", null, "This server asks for a key. It is kept until this tab is closed."),
      this.problem ? h("p", { class: "problem", role: "alert" }, this.problem) : null,
      h("label", { for: "key" }, "Key"),
      h("input", { id: "key", name: "key", type: "password", required: true, autocomplete: "off" }),
      h("button", { type: "submit", class: "primary" }, "Continue"),
    );
  }

  dialog() {
    const { title, lead, body } = this.sheet ?? { title: "", lead: "", body: [] };
    const close = () => this.querySelector("dialog").close();
    return h(
      "dialog",
      {
        key: "sheet",
        class: "sheet",
        "aria-labelledby": "sheet-title",
        onclick: (event) => event.target.localName === "dialog" && close(),
        onclose: () => this.closed(),
      },
      h(
        "div",
        { class: "sheet-inner" },
        h(
          "header",
          null,
          h("p", { class: "sheet-lead" }, lead),
          h("h2", { id: "sheet-title" }, title),
          h("button", { type: "button", class: "quiet close", onclick: close }, "Close"),
        ),
        h("div", { class: "sheet-body", tabindex: "0", role: "region", "aria-label": "Content" }, body),
      ),
    );
  }

  openSheet(sheet) {
    this.sheet = sheet;
    this.draw();
    this.querySelector("dialog").showModal();
  }

  closed() {
    this.sheet = null;
    this.draw();
  }

  // Says one thing at a time, the newest, so that a fast program does not talk without end.
  say(message) {
    this.#said = message;
    if (this.#saying !== null) return;
    this.#saying = setTimeout(() => {
      this.#saying = null;
      this.draw();
    }, 400);
  }
}

function decodeOr(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

const ELEMENTS = {
  "pyrag-program": ProgramView,
  "pyrag-changes": ChangesView,
  "pyrag-graph": GraphView,
  "pyrag-timeline": TimelineView,
  "pyrag-answer": AnswerView,
  "pyrag-run": RunView,
  "pyrag-ask": AskForm,
  "pyrag-traces": TraceList,
  "pyrag-compare": CompareView,
  "pyrag-app": App,
};
for (const [name, element] of Object.entries(ELEMENTS)) customElements.define(name, element);

export { START, eventsOf, readTrace, reduce }; // for tests, which compare them with pyrag/trace/reducer.py
