// The page's own words, in the reader's language.

import en from "./text.en.js";
import zh from "./text.zh.js";
import { browser } from "./store.js";

const TEXTS = { en: { ...en }, zh: { ...zh } };

let language = initialLanguage();

function initialLanguage() {
  const named = new URLSearchParams(location.search).get("language");
  const wanted = browser.get("language") ?? named ?? navigator.language;
  return wanted.toLowerCase().startsWith("zh") ? "zh" : "en";
}

export function currentLanguage() {
  return language;
}

/** Words that only some pages use, by language. */
export function learn(texts) {
  for (const [spoken, more] of Object.entries(texts)) Object.assign(TEXTS[spoken], more);
}

/** Whether there is a text called `name`. */
export function has(name) {
  return Object.hasOwn(TEXTS[language], name);
}

/** The text called `name`, with `{…}` filled in. */
export function t(name, values = {}) {
  return TEXTS[language][name].replace(/\{(\w+)\}/g, (_, key) => values[key]);
}

/** Put the texts in place that the HTML asks for by `data-text` and `data-label`. */
export function translate(root = document) {
  document.documentElement.lang = language === "zh" ? "zh-CN" : "en";
  for (const node of root.querySelectorAll("[data-text]")) node.textContent = t(node.dataset.text);
  for (const node of root.querySelectorAll("[data-label]")) node.setAttribute("aria-label", t(node.dataset.label));
}

/** Change to the other language, from now on. */
export function switchLanguage() {
  language = language === "zh" ? "en" : "zh";
  browser.set("language", language);
}
