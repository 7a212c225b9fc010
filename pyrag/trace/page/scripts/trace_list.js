// The list of traces, from the server and from files.

import { View, h } from "./elements.js";
import { seconds } from "./words.js";

const MAX_ROWS = 200; // of files that are listed at once

// Given: traces (summaries of the server), runs (of files), more(), picked (keys), pick(key), follow, files(input), hasServer.
export class TraceList extends View {
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
