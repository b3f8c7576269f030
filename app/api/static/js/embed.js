// The question page in the frame of the widget. The only message to the embedding site is "close".

import { toolButton } from "./bar.js";
import { t } from "./i18n.js";
import { openQuestionPage } from "./question-page.js";

function close() {
  parent.postMessage("apidesk:close", "*");
}

openQuestionPage(() => (parent === window ? [] : [toolButton("close", t("close"), close)]));

addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !document.querySelector("dialog[open]")) close();
});
