// The texts of the page in the user's language.

import en from "./text.en.js";
import zh from "./text.zh.js";
import { browser } from "./store.js";

const TEXTS = { en: { ...en }, zh: { ...zh } };

let language = initialLanguage();

function initialLanguage() {
  const requested = new URLSearchParams(location.search).get("language");
  const preferred = browser.get("language") ?? requested ?? navigator.language;
  return preferred.toLowerCase().startsWith("zh") ? "zh" : "en";
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

/** The text called `name`, with `{…}` filled in. */
export function t(name, values = {}) {
  return TEXTS[language][name].replace(/\{(\w+)\}/g, (_, key) => values[key]);
}

/** Set the texts of elements with `data-text` and the labels of elements with `data-label`. */
export function translate(root = document) {
  document.documentElement.lang = language === "zh" ? "zh-CN" : "en";
  for (const node of root.querySelectorAll("[data-text]")) node.textContent = t(node.dataset.text);
  for (const node of root.querySelectorAll("[data-label]")) node.setAttribute("aria-label", t(node.dataset.label));
}

/** Switch to the other language and remember the choice. */
export function switchLanguage() {
  language = language === "zh" ? "en" : "zh";
  browser.set("language", language);
}
