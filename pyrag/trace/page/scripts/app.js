// The application: routes, questions, files and keys.

import { h, patch } from "./elements.js";
import { eventText } from "./event_text.js";
import { header, keyForm, savedTheme, sheetDialog } from "./frame.js";
import { stateOf } from "./reducer.js";
import { aboutTrace, savedRun } from "./runs.js";
import { GONE, Refused, kept, request, serverEvents } from "./server.js";
import { passageSheet, stepSheet } from "./sheets.js";
import { readOptions, readSummary, readTrace, tracesOfFile } from "./traces.js";
import { list, number, object, plain } from "./values.js";
import { counted, shortened } from "./words.js";

export class App extends HTMLElement {
  options = { engine: "", note: "", indexes: [], methods: [], examples: [], index: "", method: "" };
  run = null; // of the page's own question
  estimate = null; // of the page's last question or program that was explained
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
    this.theme = savedTheme();
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
    } else this.view = view === "program" && this.hasServer ? "program" : "ask";
    document.title =
      { traces: "Traces · pyrag", compare: "Two traces · pyrag", program: "Program · pyrag" }[this.view] ?? "pyrag";
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
      const found = list(object(await response.json()).traces).map(readSummary);
      this.traces = before === null ? found : [...this.traces, ...found];
      this.oldest = found.length === 50 ? found.at(-1).number : null;
    } catch (error) {
      this.fail(error);
    }
    this.draw();
  }

  async loadOptions() {
    try {
      this.options = readOptions(await (await request("v1/options")).json());
      this.wantsKey = false;
    } catch (error) {
      this.fail(error);
    }
    this.draw();
  }

  // --- asking

  ask = (wanted) => this.send("v1/ask", wanted.question, wanted, wanted.method ?? this.options.method);

  runProgram = (wanted) => this.send("v1/programs", "Your program", wanted, "program");

  explain = async (wanted) => {
    this.problem = "";
    this.estimate = null;
    this.say("The estimate is made");
    this.draw();
    try {
      const headers = { "Content-Type": "application/json" };
      const response = await request("v1/explain", { method: "POST", body: JSON.stringify(wanted), headers });
      this.estimate = { view: this.view, explanation: object(await response.json()) };
      this.say("The estimate is here");
    } catch (error) {
      this.fail(error);
    }
    this.draw();
  };

  async send(path, question, wanted, method) {
    this.estimate = null;
    this.controller = new AbortController();
    const { signal } = this.controller;
    this.problem = "";
    const filter = wanted.where ? `filter ${shortened(wanted.where, 80)}` : "";
    const about = [method, this.options.engine, wanted.index ?? this.options.index, filter].filter(Boolean);
    const run = {
      key: `live-${performance.now()}`,
      question,
      view: this.view,
      events: [],
      live: true,
      began: performance.now(),
      about: about.join(" · "),
      trace: null,
    };
    this.run = run;
    this.say(path === "v1/ask" ? "The question is sent" : "The program is sent");
    this.draw();
    try {
      const body = JSON.stringify({ ...wanted, stream: true, include_trace: true });
      const headers = { "Content-Type": "application/json", Accept: "text/event-stream" };
      const response = await request(path, { method: "POST", body, headers, signal });
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
      if (trace) [run.about, run.question] = [aboutTrace(trace), trace.question];
      this.end(run, { event: "reply", at: trace?.usage.seconds, trace });
      if (run.id && trace) this.runs.set(run.id, { ...run, live: false });
    } else if (event.event === "error") this.end(run, { event: "error", message: plain(object(event.error).message) });
    else {
      run.events.push(event);
      this.say(eventText(event, stateOf(run.events)));
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
      header(this),
      h(
        "main",
        { key: "main", id: "main", tabindex: "-1" },
        this.wantsKey ? keyForm(this.problem, this.takeKey) : this.content(),
      ),
      h("p", { key: "status", class: "hidden", role: "status" }, this.#said),
      sheetDialog(this.sheet, () => this.closed()),
    ]);
  }

  skip(event) {
    event.preventDefault();
    this.querySelector("main").focus();
  }

  content() {
    const problem =
      this.problem && !["ask", "program"].includes(this.view)
        ? h("p", { key: "problem", class: "problem", role: "alert" }, this.problem)
        : null;
    if (this.view === "ask" || this.view === "program") return this.asking();
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
    const { options, problem } = this;
    const isProgram = this.view === "program";
    const run = this.run?.view === this.view ? this.run : null;
    const data = {
      options,
      busy: Boolean(this.run?.live),
      problem,
      compact: Boolean(run),
      ask: this.ask,
      run: this.runProgram,
      explain: this.explain,
      stop: this.stop,
    };
    const link =
      run?.id && !run.live && run.trace
        ? h("p", { class: "permalink" }, h("a", { href: `#/t/${run.id}` }, "Link to this trace"))
        : null;
    return [
      h(
        "h1",
        { key: "h", tabindex: "-1", class: run ? "hidden" : "lead" },
        isProgram ? "Write a program, and watch its lines" : "Ask, and watch the program think",
      ),
      isProgram
        ? h("pyrag-editor", { key: "editor", ".data": data })
        : h("pyrag-ask", { key: "ask", ".data": data }),
      this.estimate?.view === this.view
        ? h("pyrag-explain", { key: "estimate", ".data": { explanation: this.estimate.explanation, close: () => this.closeEstimate() } })
        : null,
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

  takeKey = (key) => {
    kept("sessionStorage", "pyrag-key", key);
    this.wantsKey = false;
    this.loadOptions().then(() => !this.wantsKey && this.route(location.hash, true));
  };

  openSheet(sheet) {
    this.sheet = sheet;
    this.draw();
    this.querySelector("dialog").showModal();
  }

  closed() {
    this.sheet = null;
    this.draw();
  }

  closeEstimate() {
    this.estimate = null;
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
