// A search box for retrieval: the chunks that an answer would be based on, and their scores.

import { el, link } from "../dom.js";
import { icon } from "../icons.js";
import { t } from "../i18n.js";
import { renderMarkdown } from "../markdown.js";
import { openSource } from "../source.js";
import { retrieve } from "./calls.js";
import { shareBar } from "./chart.js";
import { emptyState, Panel } from "./panel.js";

const COUNTS = [5, 10, 20, 50];

export class SearchView {
  node = el("section", { class: "search", "aria-labelledby": "search-title" });
  #announce;
  #head = el("header", { class: "head" });
  #question = el("input", { type: "search", id: "search-question", required: true, autocomplete: "off" });
  #count = el("select", { id: "search-count" }, COUNTS.map((count) => el("option", { value: count }, String(count))));
  #button = el("button", { type: "submit", class: "primary" });
  #label = el("label", { for: "search-question", class: "unseen" });
  #countLabel = el("label", { for: "search-count" });
  #panel = new Panel(results, () => [emptyState(t("notSearched"), t("notSearchedHint"))]);

  /** `announce` informs screen readers. */
  constructor(announce) {
    this.#announce = announce;
    this.#count.value = "10";
    const form = el("form", { class: "find", role: "search", onsubmit: (event) => this.#search(event) }, this.#label, this.#question, this.#countLabel, this.#count, this.#button);
    this.node.append(this.#head, form, this.#panel.node);
  }

  show() {
    if (matchMedia("(hover: hover)").matches && !this.#panel.data) this.#question.focus();
  }

  hide() {}

  translate() {
    this.#head.replaceChildren(el("div", {}, el("h2", { id: "search-title" }, t("searchTitle")), el("p", {}, t("searchHint"))));
    this.#label.textContent = t("question");
    this.#question.placeholder = t("placeholder");
    this.#countLabel.textContent = t("count");
    this.#button.replaceChildren(icon("search"), t("find"));
    this.#panel.translate();
  }

  async #search(event) {
    event.preventDefault();
    const question = this.#question.value.trim();
    const count = Number(this.#count.value);
    if (!question) return;
    await this.#panel.load(async () => {
      const sources = await retrieve(question, count);
      this.#announce(t("found", { count: sources.length }));
      return sources;
    });
  }
}

function results(sources) {
  if (!sources.length) return [emptyState(t("nothingFound"), t("nothingFoundHint"))];
  const maxScore = Math.max(...sources.map(({ score }) => score));
  return [el("ol", { class: "results", role: "list" }, sources.map((source) => result(source, maxScore)))];
}

function result(source, maxScore) {
  const { number: place, title, section, score, text, pageUrl, apiUrl } = source;
  return el(
    "li",
    { class: "card" },
    el("header", {}, el("span", { class: "number", "aria-hidden": "true" }, String(place)), el("div", {}, el("h3", {}, title), section && el("p", { class: "hint" }, section))),
    el("p", { class: "score" }, el("span", {}, t("score")), el("b", {}, String(score)), shareBar(maxScore > 0 ? score / maxScore : 0)),
    el("p", { class: "excerpt" }, plainText(text)),
    el(
      "footer",
      {},
      el("span", { class: "from" }, source.source),
      apiUrl && el("code", {}, apiUrl),
      el("button", { type: "button", class: "quiet", "aria-haspopup": "dialog", onclick: () => openSource(source) }, t("readAll")),
      pageUrl && link(pageUrl, t("openPage"), icon("outside")),
    ),
  );
}

/** The text of Markdown without formatting, on one line. */
function plainText(text) {
  const body = el("div", {}, renderMarkdown(text));
  const walker = document.createTreeWalker(body, NodeFilter.SHOW_TEXT);
  const words = [];
  while (walker.nextNode()) words.push(walker.currentNode.data);
  return words.join(" ").replace(/\s+/g, " ").trim();
}
