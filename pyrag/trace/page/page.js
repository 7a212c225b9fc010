// The page of pyrag: a question becomes a program, and the program is shown at work.
//
// Modules without dependencies, served as they are by `pyrag serve` and joined into one script by `pyrag trace html`. A
// run is a list of events in the form of the server's stream; `reduce` turns it into the state that every view draws,
// whether the events arrive now, come from a saved trace, or are stepped through. Text of models, passages and files is
// hostile: it reaches the document only as text nodes, and values of files are checked by `readTrace` before use.

import { AnswerView } from "./scripts/answer_view.js";
import { App } from "./scripts/app.js";
import { AskForm } from "./scripts/ask_form.js";
import { CompareView } from "./scripts/compare_view.js";
import { ExplainView } from "./scripts/explain_view.js";
import { GraphView } from "./scripts/graph_view.js";
import { ProgramForm } from "./scripts/program_form.js";
import { ChangesView, ProgramView } from "./scripts/program_view.js";
import { RunView } from "./scripts/run_view.js";
import { TimelineView } from "./scripts/timeline_view.js";
import { TraceList } from "./scripts/trace_list.js";

const ELEMENTS = {
  "pyrag-program": ProgramView,
  "pyrag-changes": ChangesView,
  "pyrag-graph": GraphView,
  "pyrag-timeline": TimelineView,
  "pyrag-answer": AnswerView,
  "pyrag-run": RunView,
  "pyrag-ask": AskForm,
  "pyrag-editor": ProgramForm,
  "pyrag-explain": ExplainView,
  "pyrag-traces": TraceList,
  "pyrag-compare": CompareView,
  "pyrag-app": App,
};
for (const [name, element] of Object.entries(ELEMENTS)) customElements.define(name, element);

export { START, reduce } from "./scripts/reducer.js"; // for tests, which compare them with pyrag/trace/reducer.py
export { eventsOf, readTrace } from "./scripts/traces.js";
