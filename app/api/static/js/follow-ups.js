// Questions to ask after an answer.

import { suggestions } from "./api.js";
import { el } from "./dom.js";
import { currentLanguage, t } from "./i18n.js";

/** A list of questions about the page that `answer` cites first. Without questions, the list stays empty. */
export function followUps(answer, onAsk) {
  const section = el("section", { class: "follow-ups" });
  if (answer.sources.length) fill(section, answer.sources, onAsk);
  return section;
}

async function fill(section, sources, onAsk) {
  // A restored conversation adds its later turns before this continues. Only its last answer has follow-up questions.
  await null;
  if (section.closest(".turn").nextElementSibling) return;
  const [{ source, documentId }] = sources;
  const seen = sources.filter((each) => each.documentId === documentId).map((each) => ["seen", each.section]);
  const about = [["source", source], ["document", documentId], ...seen];
  const questions = await suggestions(currentLanguage(), about).catch(() => []);
  if (!questions.length) return;
  const item = (question) => el("li", {}, el("button", { type: "button", onclick: () => onAsk(question) }, question));
  section.append(el("h3", {}, t("followUps")), el("ul", {}, ...questions.map(item)));
}
