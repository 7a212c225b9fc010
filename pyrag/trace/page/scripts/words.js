// Words and figures for people: statuses, durations, counts, the result of a step.

export const ORIGINS = new Map([
  ["plan", "as planned"],
  ["check", "revised after a check"],
  ["repair", "repaired after an error"],
  ["fallback", "fallback, which no planner wrote"],
  ["caller", "as it was handed in"],
]);
export const STATUSES = new Map([
  ["waiting", "waiting"],
  ["running", "running"],
  ["recovering", "trying again"],
  ["done", "finished"],
  ["unknown", "unknown"],
  ["failed", "failed"],
  ["stopped", "stopped"],
  ["skipped", "not run"],
]);
export const MARKS = new Map([
  ["running", "▸"],
  ["recovering", "↻"],
  ["done", "✓"],
  ["unknown", "?"],
  ["failed", "✗"],
  ["stopped", "–"],
]);

export const counted = (count, word) => `${count.toLocaleString("en")} ${count === 1 ? word : `${word}s`}`;

export function seconds(value) {
  if (value < 0.0095) return `${(value * 1000).toFixed(1)} ms`;
  return value < 0.9995 ? `${Math.round(value * 1000)} ms` : `${value.toFixed(value < 10 ? 2 : 1)} s`;
}

export function shortened(text, most) {
  const flat = text.replace(/\s+/g, " ").trim();
  return flat.length > most ? `${flat.slice(0, most - 1)}…` : flat;
}

export function moment(created) {
  const date = new Date(created * 1000);
  return Number.isNaN(date.getTime()) ? "" : date.toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
}

export const triesOf = (step) => Math.max(step.attempts.length, step.recoveries ? step.recoveries.length + 1 : 1);

// "412 of 415 documents answered, 3 unknown", as pyrag/trace/model.py words it.
export function covered(coverage) {
  const { total, answered, unknown, missing, weak, what, reason } = coverage;
  const figure = (count) => count.toLocaleString("en");
  let text = `${figure(answered)} of ${figure(total)} ${what} answered, ${figure(unknown)} unknown`;
  if (missing) text += `, ${figure(missing)} not reached${reason ? ` (${reason})` : ""}`;
  return weak ? `${text}; ${figure(weak)} of ${figure(answered)} answers ${weak === 1 ? "is" : "are"} weak` : text;
}

export function result(step) {
  if (step.error) return shortened(step.error, 160);
  if (step.coverage) return covered(step.coverage);
  if (step.answer) return step.answer.known ? shortened(step.answer.text, 160) : "unknown";
  if (step.output) return shortened(step.output, 160);
  return step.ended === null ? "" : counted(step.passages.length, "passage");
}
