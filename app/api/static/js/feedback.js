// Thumbs, and a comment for whoever has more to say.

import { sendFeedback } from "./api.js";
import { el } from "./dom.js";
import { icon } from "./icons.js";
import { t } from "./i18n.js";

/** Two buttons, and what follows them: the comment, thanks, or what went wrong. */
export function renderFeedback(answerId) {
  const after = el("div", { class: "after", role: "status" });
  const buttons = [thumb("up", "helpful", 1), thumb("down", "unhelpful", -1)];

  function thumb(name, label, score) {
    return el(
      "button",
      { type: "button", class: "quiet", "aria-label": t(label), title: t(label), "aria-pressed": "false", onclick: (event) => give(event.currentTarget, score) },
      icon(name),
    );
  }

  async function give(button, score) {
    for (const each of buttons) each.setAttribute("aria-pressed", String(each === button));
    if (await noted(score)) after.replaceChildren(el("p", {}, t("thanks")), commentForm(score));
  }

  async function noted(score, comment) {
    try {
      await sendFeedback(answerId, score, comment);
      return true;
    } catch (problem) {
      for (const each of buttons) each.setAttribute("aria-pressed", "false");
      after.replaceChildren(el("p", { class: "failed" }, `${t("feedbackFailed")}: ${problem.message}`));
      return false;
    }
  }

  function commentForm(score) {
    const input = el("input", { type: "text", maxlength: "1000", "aria-label": t("comment"), placeholder: t("comment") });
    const submit = async (event) => {
      event.preventDefault();
      if (input.value.trim() && (await noted(score, input.value.trim()))) after.replaceChildren(el("p", {}, t("thanks")));
    };
    return el("form", { class: "comment", onsubmit: submit }, input, el("button", { type: "submit" }, t("sendComment")));
  }

  return { buttons, after };
}
