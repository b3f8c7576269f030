// The desk on a page: its tools, the conversation and the question box.

import { readerTools } from "./bar.js";
import { Composer } from "./composer.js";
import { Conversation } from "./conversation.js";
import { el } from "./dom.js";
import { icon } from "./icons.js";
import { t, translate } from "./i18n.js";
import { suggestionList } from "./suggestions.js";

const at = (id) => document.getElementById(id);

/** Put the desk into the elements that the page has for it; `more` are further tools. */
export function openDesk(more = () => []) {
  const say = (text) => (at("status").textContent = text);
  const composer = new Composer((question) => ask(question), () => conversation.stop());
  const suggestions = suggestionList((question) => ask(question));
  const conversation = new Conversation(at("conversation"), say, () => show());
  at("asking").append(suggestions.node, composer.node);

  function ask(question) {
    if (!conversation.busy) conversation.ask(question);
    composer.focus();
  }

  function show() {
    at("desk").classList.toggle("is-empty", conversation.empty);
    composer.setBusy(conversation.busy);
  }

  function speak() {
    translate();
    composer.translate();
    at("tools").replaceChildren(...tools(), ...more());
    suggestions.fill();
  }

  function tools() {
    const begin = async () => {
      composer.focus();
      await conversation.clear();
    };
    const renew = () => {
      speak();
      conversation.renew();
    };
    return [
      el("button", { type: "button", class: "quiet begin", title: t("newConversation"), onclick: begin }, icon("begin"), el("span", {}, t("newConversation"))),
      ...readerTools(renew),
    ];
  }

  speak();
  show();
  composer.focus();
}
