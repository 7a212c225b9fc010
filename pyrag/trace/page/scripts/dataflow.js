// The dataflow graph of a program: nodes, edges and places.

import { PRIMITIVES, plannedCalls } from "./program_text.js";
import { isOver } from "./reducer.js";

// Returns the nodes of one program's run, those to come included: key, level (row), status, and the keys they depend on.
export function graphOf(state, round) {
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
export function placeNodes(nodes) {
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
