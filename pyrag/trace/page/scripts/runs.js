// Saved traces as runs.

import { eventsOf } from "./traces.js";
import { moment, shortened } from "./words.js";

export const aboutTrace = (trace, created = trace.created) =>
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

export function savedRun(key, trace, created) {
  const run = { key, question: trace.question, live: false, began: 0, about: aboutTrace(trace, created), trace };
  let events = null;
  return Object.defineProperty(run, "events", { get: () => (events ??= eventsOf(trace)), enumerable: true });
}
