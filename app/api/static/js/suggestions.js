// Suggested questions.

import { suggestions } from "./api.js";
import { el } from "./dom.js";
import { currentLanguage, t } from "./i18n.js";

/** A list of question buttons. `fill` loads the questions; the list stays empty on errors. */
export function suggestionList(onAsk) {
  const list = el("ul", { class: "suggestions" });
  const fill = async () => {
    list.setAttribute("aria-label", t("suggestions"));
    const questions = await suggestions(currentLanguage()).catch(() => []);
    const button = (question) => el("button", { type: "button", onclick: () => onAsk(question) }, question);
    list.replaceChildren(...questions.map((question) => el("li", {}, button(question))));
  };
  return { node: list, fill };
}
