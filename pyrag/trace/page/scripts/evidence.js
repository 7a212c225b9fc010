// Evidence in a passage: the sentences that hold an answer.

import { h } from "./elements.js";

const words = (value) => (value.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).filter((word) => word.length > 2);

function sentencesOf(passage) {
  if (!Intl.Segmenter) return passage.match(/[^.!?]+[.!?]*\s*/g) ?? [passage];
  return [...new Intl.Segmenter("en", { granularity: "sentence" }).segment(passage)].map((one) => one.segment);
}

// Returns a passage's sentences as {text, isEvidence}: those that hold the answer, else the one nearest to the question.
export function evidenceIn(passage, answers, query) {
  const sentences = sentencesOf(passage);
  let chosen = sentences.map((one) => answers.some((answer) => placeOf(one, answer) >= 0));
  if (!chosen.includes(true)) {
    const sought = new Set(words([query, ...answers].join(" ")));
    const scores = sentences.map((one) => new Set(words(one).filter((word) => sought.has(word))).size);
    const best = Math.max(0, ...scores);
    chosen = scores.map((score, index) => best > 0 && index === scores.indexOf(best));
  }
  return sentences.map((one, index) => ({ text: one, isEvidence: chosen[index] }));
}

// Returns the sentence that holds most of the answers, else the one nearest to the question; undefined if there is none.
export function bestEvidence(passage, answers, query) {
  const held = (text) => new Set(answers.filter((answer) => placeOf(text, answer) >= 0)).size;
  const [first, ...others] = evidenceIn(passage, answers, query).filter((one) => one.isEvidence);
  return others.reduce((best, one) => (held(one.text) > held(best.text) ? one : best), first)?.text;
}

// Returns the place of an answer in a sentence, as whole words; -1 if it is not there.
function placeOf(sentence, answer) {
  const [whole, sought] = [sentence.toLowerCase(), answer.toLowerCase()];
  if (sought.length < 2 || whole.length !== sentence.length) return -1;
  const isPart = (character) => /[\p{L}\p{N}]/u.test(character);
  for (let at = whole.indexOf(sought); at >= 0; at = whole.indexOf(sought, at + 1)) {
    if (!isPart(whole.charAt(at - 1)) && !isPart(whole.charAt(at + sought.length))) return at;
  }
  return -1;
}

// Returns the parts of a sentence, the answers in it marked.
export function markedAnswers(sentence, answers) {
  for (const answer of answers) {
    const start = placeOf(sentence, answer);
    if (start >= 0) {
      const end = start + answer.length;
      return [
        sentence.slice(0, start),
        h("mark", null, sentence.slice(start, end)),
        ...markedAnswers(sentence.slice(end), answers),
      ];
    }
  }
  return [sentence];
}

export function evidenceFor(citation, trace) {
  const step = trace.steps.find((one) => one.id === citation.step);
  const answers = [step?.answer?.known ? step.answer.text : "", trace.answer.known ? trace.answer.text : ""].filter(
    Boolean,
  );
  return { step, answers, query: step?.query ?? trace.question };
}
