// The rating buttons of an answer, and the comment form.

import { sendFeedback } from "./api.js";
import { el } from "./dom.js";
import { icon } from "./icons.js";
import { t } from "./i18n.js";

/** Two rating buttons and the element for the result: the comment form, thanks, or the error. */
export function renderFeedback(answerId) {
  const result = el("div", { class: "feedback-result", role: "status" });
  const buttons = [thumb("up", "helpful", 1), thumb("down", "unhelpful", -1)];

  function thumb(name, label, score) {
    return el(
      "button",
      { type: "button", class: "quiet", "aria-label": t(label), title: t(label), "aria-pressed": "false", onclick: (event) => rate(event.currentTarget, score) },
      icon(name),
    );
  }

  async function rate(button, score) {
    for (const each of buttons) each.setAttribute("aria-pressed", String(each === button));
    if (!(await submitRating(score))) return;
    result.replaceChildren(el("p", {}, t("thanks")), commentForm(score));
    result.scrollIntoView({ block: "nearest" });
  }

  async function submitRating(score, comment) {
    try {
      await sendFeedback(answerId, score, comment);
      return true;
    } catch (problem) {
      for (const each of buttons) each.setAttribute("aria-pressed", "false");
      result.replaceChildren(el("p", { class: "failed" }, `${t("feedbackFailed")}: ${problem.message}`));
      return false;
    }
  }

  function commentForm(score) {
    const input = el("input", { type: "text", maxlength: "1000", "aria-label": t("comment"), placeholder: t("comment") });
    const onSubmit = async (event) => {
      event.preventDefault();
      if (input.value.trim() && (await submitRating(score, input.value.trim()))) result.replaceChildren(el("p", {}, t("thanks")));
    };
    return el("form", { class: "comment", onsubmit: onSubmit }, input, el("button", { type: "submit" }, t("sendComment")));
  }

  return { buttons, result };
}
