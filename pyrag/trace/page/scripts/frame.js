// The frame of the page: its header, the form for an API key, and the dialog of sheets.

import { h } from "./elements.js";
import { kept } from "./server.js";
import { text } from "./values.js";

const THEMES = ["system", "light", "dark"];

export function savedTheme() {
  const name = kept("localStorage", "pyrag-theme");
  return THEMES.includes(name) ? name : "system";
}

export function header(app) {
  const link = (hash, label, current) =>
    h("a", { key: hash, href: hash, "aria-current": current ? "page" : null, onclick: app.follow }, label);
  const links = app.hasServer
    ? [
        link("#/", "Ask", app.view === "ask"),
        link("#/program", "Program", app.view === "program"),
        link("#/traces", "Traces", !["ask", "program"].includes(app.view)),
      ]
    : app.files.length > 1
      ? [link("#/traces", "Traces", app.view === "traces")]
      : [];
  const next = THEMES[(THEMES.indexOf(app.theme) + 1) % THEMES.length];
  const change = () => {
    app.theme = next;
    kept("localStorage", "pyrag-theme", next === "system" ? null : next);
    app.draw();
  };
  return h(
    "header",
    { key: "header", class: "bar-top" },
    h("p", { class: "brand" }, "pyrag"),
    h("nav", { "aria-label": "Pages" }, links),
    h(
      "button",
      { type: "button", class: "quiet theme", onclick: change, "aria-label": `Theme: ${app.theme}; change to ${next}` },
      `Theme: ${app.theme}`,
    ),
  );
}

export function keyForm(problem, take) {
  const submit = (event) => {
    event.preventDefault();
    take(text(new FormData(event.target).get("key")).trim());
  };
  return h(
    "form",
    { key: "key", class: "key", onsubmit: submit },
    h("h1", { tabindex: "-1" }, "API key"),
    h("p", null, "This server asks for a key. It is kept until this tab is closed."),
    problem ? h("p", { class: "problem", role: "alert" }, problem) : null,
    h("label", { for: "key" }, "Key"),
    h("input", { id: "key", name: "key", type: "password", required: true, autocomplete: "off" }),
    h("button", { type: "submit", class: "primary" }, "Continue"),
  );
}

export function sheetDialog(sheet, closed) {
  const { title, lead, body } = sheet ?? { title: "", lead: "", body: [] };
  const close = (event) => event.target.closest("dialog").close();
  return h(
    "dialog",
    {
      key: "sheet",
      class: "sheet",
      "aria-labelledby": "sheet-title",
      onclick: (event) => event.target.localName === "dialog" && close(event),
      onclose: closed,
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
