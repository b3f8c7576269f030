// The API key, where the server takes one: asked for once, kept in this tab.

import { el } from "./dom.js";
import { t } from "./i18n.js";
import { tab } from "./store.js";

/** Ask for a key, with the server's sentence why. True when one was given. */
export function askForKey(why) {
  return new Promise((resolve) => {
    const input = el("input", { type: "password", id: "key", required: true, autocomplete: "off", spellcheck: "false" });
    const submit = (event) => {
      event.preventDefault();
      tab.set("key", input.value.trim());
      dialog.close("given");
    };
    const dialog = el(
      "dialog",
      { class: "key", "aria-labelledby": "key-title", onclose: () => (dialog.remove(), resolve(dialog.returnValue === "given")) },
      el(
        "form",
        { class: "sheet", onsubmit: submit },
        el("h2", { id: "key-title" }, t("keyTitle")),
        el("p", {}, why),
        el("label", { for: "key" }, t("keyLabel")),
        input,
        el("p", { class: "hint" }, t("keyHint")),
        el(
          "div",
          { class: "row" },
          el("button", { type: "button", onclick: () => dialog.close() }, t("cancel")),
          el("button", { type: "submit", class: "primary" }, t("keyUse")),
        ),
      ),
    );
    document.body.append(dialog);
    dialog.showModal();
  });
}
