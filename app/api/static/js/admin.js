// The admin page with its views: insights, ingestions and search. The URL fragment selects the view.

import { InsightsView } from "./admin/insights.js";
import { IngestionsView } from "./admin/ingestions.js";
import { SearchView } from "./admin/search.js";
import { texts } from "./admin/text.js";
import { preferenceButtons } from "./bar.js";
import { el } from "./dom.js";
import { icon } from "./icons.js";
import { addTexts, t, translate } from "./i18n.js";

addTexts(texts);

const byId = (id) => document.getElementById(id);
const announce = (text) => (byId("status").textContent = text);

const VIEWS = {
  insights: new InsightsView(),
  ingestions: new IngestionsView(announce),
  search: new SearchView(announce),
};

let shown = null;

/** Show the view that the URL fragment names. */
function show() {
  const name = requestedView();
  if (shown === name) return;
  if (shown) VIEWS[shown].hide();
  shown = name;
  byId("view").replaceChildren(VIEWS[name].node);
  renderViewLinks();
  scrollTo(0, 0);
  VIEWS[name].show();
}

function requestedView() {
  const name = location.hash.slice(1);
  return Object.hasOwn(VIEWS, name) ? name : "insights";
}

/** Render the links to the views and mark the current one. */
function renderViewLinks() {
  const link = (name) => el("a", { href: `#${name}`, "aria-current": name === shown && "page" }, t(name));
  const focused = byId("views").contains(document.activeElement);
  byId("views").replaceChildren(...Object.keys(VIEWS).map(link));
  if (focused) byId("views").querySelector("[aria-current]").focus();
}

function translatePage() {
  translate();
  document.title = `${t("platformName")} · apidesk`;
  renderViewLinks();
  const home = el("a", { href: "./", class: "home", title: t("toQuestions") }, icon("question"), el("span", {}, t("toQuestions")));
  byId("tools").replaceChildren(home, ...preferenceButtons(translatePage));
  for (const view of Object.values(VIEWS)) view.translate();
}

/** Focus the content without changing the URL fragment, which selects the view. */
function skipToContent(event) {
  event.preventDefault();
  byId("view").focus();
}

show();
translatePage();
document.querySelector(".skip").addEventListener("click", skipToContent);
addEventListener("hashchange", show);
