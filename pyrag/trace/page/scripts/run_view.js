// A run: everything about one question, live or saved.

import { costOf } from "./cost.js";
import { View, h } from "./elements.js";
import { eventText } from "./event_text.js";
import { isOver, progress, sentence, stateOf } from "./reducer.js";
import { dataTree } from "./sheets.js";
import { number } from "./values.js";
import { ORIGINS, result, seconds } from "./words.js";

const PACE = { least: 180, most: 1100, whole: 9000 }; // milliseconds of a replay

// Given: run {key, question, events, live, began, about}, level of its heading, extra (nodes below the heading).
export class RunView extends View {
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
          this.output(whole, version),
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

  // What a finished program printed.
  output(state, version) {
    const output = state.trace?.programs[version]?.output ?? "";
    if (!output) return null;
    return h("div", { key: "output", class: "printed" }, h("p", { class: "origin" }, "Output"), h("pre", null, output));
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
    const last = at > 0 ? eventText(run.events[at - 1], state) : "Before the first event";
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
    if (at > 0) this.ask("say", { message: eventText(this.given.run.events[at - 1], state) });
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
