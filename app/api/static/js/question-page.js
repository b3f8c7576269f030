// The question page: its tool buttons, the conversation and the question box.

import { preferenceButtons } from "./bar.js";
import { Composer } from "./composer.js";
import { Conversation } from "./conversation.js";
import { el } from "./dom.js";
import { icon } from "./icons.js";
import { t, translate } from "./i18n.js";
import { suggestionList } from "./suggestions.js";

const byId = (id) => document.getElementById(id);

/** Set up the elements of the page. `extraTools` returns further tool buttons. */
export function openQuestionPage(extraTools = () => []) {
  const announce = (text) => (byId("status").textContent = text);
  const composer = new Composer((question) => ask(question), () => conversation.stop());
  const suggestions = suggestionList((question) => ask(question));
  const conversation = new Conversation(byId("conversation"), announce, () => update());
  byId("asking").append(suggestions.node, composer.node);

  function ask(question) {
    if (!conversation.busy) conversation.ask(question);
    composer.focus();
  }

  function update() {
    byId("questions").classList.toggle("is-empty", conversation.empty);
    composer.setBusy(conversation.busy);
  }

  function translatePage() {
    translate();
    composer.translate();
    byId("tools").replaceChildren(...tools(), ...extraTools());
    suggestions.fill();
  }

  function tools() {
    const startNew = async () => {
      composer.focus();
      await conversation.clear();
    };
    const retranslate = () => {
      translatePage();
      conversation.translate();
    };
    const docs = byId("tools").dataset.docs;
    return [
      docs && el("a", { class: "docs", href: docs, target: "_blank", rel: "noopener", title: t("docs") }, icon("outside"), el("span", {}, t("docs"))),
      el("button", { type: "button", class: "quiet begin", title: t("newConversation"), onclick: startNew }, icon("begin"), el("span", {}, t("newConversation"))),
      ...preferenceButtons(retranslate),
    ].filter(Boolean);
  }

  translatePage();
  update();
  composer.focus();
}
