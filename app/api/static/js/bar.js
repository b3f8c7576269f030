// The buttons of the bar.

import { el } from "./dom.js";
import { icon } from "./icons.js";
import { switchLanguage, t } from "./i18n.js";
import { switchTheme } from "./theme.js";

/** A button of the bar: an icon, and its label for those who hover or listen. */
export function tool(name, label, onclick) {
  return el("button", { type: "button", class: "quiet", "aria-label": label, title: label, onclick }, icon(name));
}

/** The other language and the other theme; `speak` says everything again, these buttons too. */
export function readerTools(speak) {
  const other = () => {
    switchLanguage();
    speak();
    document.querySelector("#tools .language").focus();
  };
  return [
    el("button", { type: "button", class: "quiet language", "aria-label": t("languageLabel"), onclick: other }, t("language")),
    tool("theme", t("theme"), switchTheme),
  ];
}
