// The notice of a problem, with the message of the server and a retry button.

import { el } from "./dom.js";
import { icon } from "./icons.js";
import { t } from "./i18n.js";

/** The problem under `title`. With `retry`, it has a button that is disabled for the time the server asked for. */
export function renderProblem(problem, retry, title = t("problem")) {
  return el(
    "div",
    { class: "problem", role: "alert" },
    el("p", {}, el("strong", {}, title)),
    el("p", {}, problem.message),
    retry && retryButton(problem, retry),
  );
}

function retryButton(problem, retry) {
  const label = el("span", {}, t("retry"));
  const button = el("button", { type: "button", onclick: retry }, icon("again"), label);
  if (problem.retryAfter) countDown(problem.retryAfter, button, label);
  return button;
}

function countDown(seconds, button, label) {
  button.disabled = seconds > 0;
  label.textContent = seconds > 0 ? t("retryIn", { seconds }) : t("retry");
  if (seconds > 0) setTimeout(countDown, 1000, seconds - 1, button, label);
}
