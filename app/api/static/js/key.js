// The dialog for the API key, which is stored in this tab.

import { el } from "./dom.js";
import { t } from "./i18n.js";
import { tab } from "./store.js";

/** Ask for a key and show `reason`, the message of the server. Resolves to true if a key was entered. */
export function askForKey(reason) {
  return new Promise((resolve) => {
    const input = el("input", { type: "password", id: "key", required: true, autocomplete: "off", spellcheck: "false" });
    const submit = (event) => {
      event.preventDefault();
      tab.set("key", input.value.trim());
      dialog.close("entered");
    };
    const dialog = el(
      "dialog",
      { class: "key", "aria-labelledby": "key-title", onclose: () => (dialog.remove(), resolve(dialog.returnValue === "entered")) },
      el(
        "form",
        { class: "sheet", onsubmit: submit },
        el("h2", { id: "key-title" }, t("keyTitle")),
        el("p", {}, reason),
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
