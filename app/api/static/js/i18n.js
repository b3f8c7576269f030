// The texts of the page in the user's language.

import { browser } from "./store.js";
import { texts as pageTexts } from "./text.js";

const LANGUAGES = Object.keys(pageTexts);
const DEFAULT_LANGUAGE = "en";
const TEXTS = Object.fromEntries(LANGUAGES.map((code) => [code, { ...pageTexts[code] }]));

let language = initialLanguage();

function initialLanguage() {
  const requested = new URLSearchParams(location.search).get("language");
  const preferred = (browser.get("language") ?? requested ?? navigator.language).toLowerCase();
  return LANGUAGES.find((code) => preferred.startsWith(code)) ?? DEFAULT_LANGUAGE;
}

export function currentLanguage() {
  return language;
}

/** Add texts that only some pages use, by language. */
export function addTexts(texts) {
  for (const [code, added] of Object.entries(texts)) Object.assign(TEXTS[code], added);
}

/** Whether there is a text called `name`. */
export function has(name) {
  return Object.hasOwn(TEXTS[language], name);
}

/** The text called `name`, with placeholders such as `{count}` replaced by `values`. */
export function t(name, values = {}) {
  return TEXTS[language][name].replace(/\{(\w+)\}/g, (_, key) => values[key]);
}

/** The locale for a language code; by default, for the language of the page. */
export function locale(code = language) {
  return TEXTS[code].locale;
}

/** Set the texts of elements with `data-text` and the labels of elements with `data-label`. */
export function translate() {
  document.documentElement.lang = locale();
  for (const node of document.querySelectorAll("[data-text]")) node.textContent = t(node.dataset.text);
  for (const node of document.querySelectorAll("[data-label]")) node.setAttribute("aria-label", t(node.dataset.label));
}

/** The name and the label of the button that switches to the next language, in that language. */
export function switchTexts() {
  const { languageName, switchTo } = TEXTS[nextLanguage()];
  return { languageName, switchTo };
}

/** Switch to the next language and remember the choice. */
export function switchLanguage() {
  language = nextLanguage();
  browser.set("language", language);
}

function nextLanguage() {
  return LANGUAGES[(LANGUAGES.indexOf(language) + 1) % LANGUAGES.length];
}
