// The tool buttons of the header bar.

import { el } from "./dom.js";
import { icon } from "./icons.js";
import { switchLanguage, switchTexts, t } from "./i18n.js";
import { switchTheme } from "./theme.js";

/** A tool button: an icon with its label as tooltip and accessible name. */
export function toolButton(name, label, onclick) {
  return el("button", { type: "button", class: "quiet", "aria-label": label, title: label, onclick }, icon(name));
}

/** The buttons for language and theme; `translatePage` renders all texts again, including these buttons. */
export function preferenceButtons(translatePage) {
  const changeLanguage = () => {
    switchLanguage();
    translatePage();
    document.querySelector("#tools .language").focus();
  };
  const { languageName, switchTo } = switchTexts();
  return [
    el("button", { type: "button", class: "quiet language", "aria-label": switchTo, onclick: changeLanguage }, languageName),
    toolButton("theme", t("theme"), switchTheme),
  ];
}
