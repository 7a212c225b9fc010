// Programs as text: tokens, calls that are to come, and differences between versions.

const KEYWORDS = new Set(
  (
    "and as assert break continue def del elif else except finally for from if import in is lambda not or pass raise " +
    "return try while with yield None True False"
  ).split(" "),
);
export const PRIMITIVES = new Set(["retrieve", "answer", "write"]);
const TOKEN =
  /(#[^\n]*)|([rbfRBF]{0,2}(?:"""[\s\S]*?(?:"""|$)|'''[\s\S]*?(?:'''|$)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?))|(\d[\w.]*)|([^\W\d]\w*)/gu;

// Returns the lines of a program, each a list of [kind, text].
export function highlighted(source, primitives) {
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
export function plannedCalls(source, primitives) {
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
export function difference(before, after) {
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
