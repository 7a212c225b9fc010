// Figures of what a question cost.

import { callsModel } from "./traces.js";
import { counted, seconds } from "./words.js";

const OF_MODELS = new Set(["Model calls", "Tokens", "From cache"]);

export function costOf(trace, repairs) {
  const { usage } = trace;
  const tokens = usage.prompt_tokens + usage.completion_tokens;
  const figures = [
    ["Model calls", usage.model_calls.toLocaleString("en")],
    ["Retrievals", usage.retrievals.toLocaleString("en")],
    [
      "Tokens",
      tokens
        ? `${usage.prompt_tokens.toLocaleString("en")} in, ${usage.completion_tokens.toLocaleString("en")} out`
        : "0",
    ],
    ["Time", seconds(usage.seconds)],
    ["Repairs", String(repairs)],
    [
      "From cache",
      usage.cached_calls ? `${counted(usage.cached_calls, "call")}, ${counted(usage.cached_tokens, "token")}` : "0",
    ],
  ];
  const ahead = usage.unused_calls + usage.unused_retrievals;
  if (ahead) figures.push(["Begun in vain", counted(ahead, "call")]);
  if (usage.cost !== null) figures.push(["Cost", usage.cost.toLocaleString("en", { maximumSignificantDigits: 3 })]);
  return callsModel(trace) ? figures : figures.filter(([name]) => !OF_MODELS.has(name));
}
