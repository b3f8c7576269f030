// The question box.

import { el } from "./dom.js";
import { icon } from "./icons.js";
import { t } from "./i18n.js";

export class Composer {
  #box = el("textarea", { id: "question", rows: "1", enterkeyhint: "send" });
  #button = el("button", { type: "submit", class: "send primary" });
  #hint = el("p", { class: "hint", id: "hint" });

  /** `onAsk` receives the question; `onStop` is called to stop the current answer. */
  constructor(onAsk, onStop) {
    this.busy = false;
    this.onAsk = onAsk;
    this.onStop = onStop;
    this.#box.setAttribute("aria-describedby", "hint");
    this.#box.addEventListener("keydown", (event) => this.#onKeyDown(event));
    const submit = (event) => {
      event.preventDefault();
      this.busy ? this.onStop() : this.#send();
    };
    this.node = el("form", { class: "composer", onsubmit: submit }, el("div", { class: "box" }, this.#box, this.#button), this.#hint);
    new ResizeObserver(() => this.#reserveSpace()).observe(this.node);
    addEventListener("keydown", (event) => this.#onShortcut(event));
    this.translate();
  }

  /** Focus the box, except on touch devices, where the keyboard would cover the answer. */
  focus() {
    if (matchMedia("(hover: hover)").matches) this.#box.focus({ preventScroll: true });
  }

  setBusy(busy) {
    this.busy = busy;
    this.translate();
  }

  translate() {
    const label = t(this.busy ? "stop" : "ask");
    this.#box.placeholder = t("placeholder");
    this.#box.setAttribute("aria-label", t("question"));
    this.#button.setAttribute("aria-label", label);
    this.#button.title = label;
    this.#button.replaceChildren(icon(this.busy ? "stop" : "ask"));
    this.#hint.textContent = t("hint");
  }

  /** Enter sends, unless it confirms an input method composition (Safari reports code 229). */
  #onKeyDown(event) {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    if (!this.busy) this.#send();
  }

  /** `/` and Ctrl+K or ⌘K focus the box, unless the user is typing in another field. */
  #onShortcut(event) {
    const isK = (event.ctrlKey || event.metaKey) && event.key === "k";
    const isSlash = event.key === "/" && !event.ctrlKey && !event.metaKey && !event.altKey && !event.target.closest("input, textarea");
    if ((!isK && !isSlash) || document.querySelector("dialog[open]")) return;
    event.preventDefault();
    this.#box.focus();
  }

  /** Publish the height of the composer, so that scrolling to an element keeps it above the composer. */
  #reserveSpace() {
    document.documentElement.style.setProperty("--composer-height", `${this.node.parentNode.offsetHeight}px`);
  }

  #send() {
    const question = this.#box.value.trim();
    if (!question) return;
    this.#box.value = "";
    this.onAsk(question);
  }
}
