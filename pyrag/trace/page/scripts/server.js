// Requests to the server, its stream of events, and what the browser keeps.

import { object, plain } from "./values.js";
import { counted } from "./words.js";

// A sentence for the person at the page.
export class Refused extends Error {
  constructor(message, status = 0) {
    super(message);
    this.status = status;
  }
}

// Storage may be forbidden, in a sandboxed frame say; the page then forgets.
export function kept(storage, name, value) {
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

export const GONE = "The server does not answer: check that pyrag serve is still running, then ask again.";

export async function request(path, options = {}) {
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

export async function* serverEvents(response) {
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
