// The desk in the widget's frame. All that it tells the site around it is that it wants to close.

import { tool } from "./bar.js";
import { openDesk } from "./desk.js";
import { t } from "./i18n.js";

function close() {
  parent.postMessage("apidesk:close", "*");
}

openDesk(() => (parent === window ? [] : [tool("close", t("close"), close)]));

addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !document.querySelector("dialog[open]")) close();
});
