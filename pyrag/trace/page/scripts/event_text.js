// One event of a run in words.

import { list, object, plain } from "./values.js";
import { counted, result, shortened } from "./words.js";

export function eventText(event, state) {
  const name = event.event;
  if (name === "decomposed")
    return `${counted(list(event.sub_queries).length, "sub-query").replace("querys", "queries")} written`;
  if (name === "drafting") return "The program is being written";
  if (name === "planned")
    return state.programs.length > 1 ? `Program ${state.programs.length} written` : "Program written";
  if (name === "rejected") return "The program was rejected";
  if (name === "step_started" || name === "recovering" || name === "step_finished") {
    const id = event.kept?.id ?? (name === "step_finished" ? object(event.step).id : event.step);
    const step = state.steps.get(id);
    if (!step) return "A step";
    const which = `Step ${step.id + 1}, ${step.primitive}`;
    if (name === "step_started") return `${which} starts: ${shortened(step.query, 80)}`;
    if (name === "recovering") return `${which} came back unknown and is tried again (${plain(event.policy)})`;
    return `${which}: ${result(step)}`;
  }
  if (name === "agent_started") return `Agent ${plain(event.role)} is asked`;
  if (name === "agent_finished") return `Agent ${plain(event.role)} has answered`;
  if (name === "warned") return shortened(plain(event.message), 120);
  if (name === "answered") return `Answer: ${state.answer?.text ?? ""}`;
  if (name === "reply") return state.error ? "The question failed" : `Answer: ${state.answer?.text ?? ""}`;
  if (name === "error") return state.error.message;
  return WORDS.get(name) ?? plain(name).replaceAll("_", " ");
}

const WORDS = new Map([
  ["accepted", "Question accepted"],
  ["question_started", "Question accepted"],
  ["program_started", "The program runs"],
  ["program_finished", "The program has ended"],
  ["searched", "Search finished"],
  ["question_finished", "Finished"],
  ["follow_up", "Follow-up"],
  ["stopped", "Stopped"],
]);
