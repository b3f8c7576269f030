// A part of a view that is loaded: what is awaited, what is there, what went wrong.

import { Problem } from "../api.js";
import { el } from "../dom.js";
import { icon } from "../icons.js";
import { t } from "../i18n.js";
import { renderProblem } from "../problem.js";
import { tab } from "../store.js";
import { changeKey } from "./calls.js";

export class Panel {
  node = el("div", { class: "panel" });
  #render;
  #load = null;
  #data = null;
  #problem = null;

  /** `render` makes nodes of what is loaded; `idle`, if given, what stands there before. */
  constructor(render, idle = () => []) {
    this.#render = render;
    this.idle = idle;
  }

  get data() {
    return this.#data;
  }

  /** Show what `load` gives; of several loads the last one counts. Problems are shown, with a retry. */
  async load(load) {
    this.#load = load;
    this.#problem = null;
    this.node.setAttribute("aria-busy", "true");
    if (this.#data === null) this.node.replaceChildren(el("p", { class: "progress" }, t("loading")));
    try {
      const data = await load();
      if (this.#load === load) this.show(data);
    } catch (error) {
      if (this.#load === load) this.fail(error);
    }
  }

  show(data) {
    this.#data = data;
    this.#problem = null;
    this.translate();
  }

  /** Remember `data` as what is shown, because whoever loaded it has shown it. */
  keep(data) {
    this.#data = data;
  }

  fail(error) {
    if (!(error instanceof Problem)) console.error(error);
    this.#problem = error instanceof Problem ? error : new Problem({ detail: t("unreadable") });
    this.translate();
  }

  /** Say everything again, in the language that is the page's now. */
  translate() {
    this.node.removeAttribute("aria-busy");
    if (this.#problem) this.node.replaceChildren(this.#failure());
    else this.node.replaceChildren(...(this.#data === null ? this.idle() : this.#render(this.#data)));
  }

  #failure() {
    const again = () => this.load(this.#load);
    const shown = renderProblem(this.#problem, again, t("notShown"));
    if (this.#problem.status === 403 && tab.get("key")) shown.append(otherKey(this.#problem.message, again));
    return shown;
  }
}

function otherKey(why, again) {
  const change = async () => (await changeKey(why)) && again();
  return el("button", { type: "button", onclick: change }, t("otherKey"));
}

/** What stands where there is nothing to show, and what would bring it there. */
export function nothing(title, hint) {
  return el("div", { class: "nothing" }, icon("empty"), el("p", {}, el("strong", {}, title)), hint && el("p", {}, hint));
}
