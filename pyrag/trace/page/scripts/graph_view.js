// The dataflow graph as a drawing.

import { graphOf, placeNodes } from "./dataflow.js";
import { View, h } from "./elements.js";
import { isOver } from "./reducer.js";
import { MARKS, STATUSES, result, seconds, triesOf } from "./words.js";

const NODE = { height: 5.5, gapX: 1, gapY: 1.6, min: 8.5, max: 15 }; // in rem

// Given: state, version, open(step).
export class GraphView extends View {
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
