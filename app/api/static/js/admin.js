// The admin view: what is asked, what is indexed, what is found. The address says which of them shows.

import { InsightsView } from "./admin/insights.js";
import { IngestionsView } from "./admin/ingestions.js";
import { SearchView } from "./admin/search.js";
import en from "./admin/text.en.js";
import zh from "./admin/text.zh.js";
import { readerTools } from "./bar.js";
import { el } from "./dom.js";
import { icon } from "./icons.js";
import { learn, t, translate } from "./i18n.js";

learn({ en, zh });

const at = (id) => document.getElementById(id);
const say = (text) => (at("status").textContent = text);

const VIEWS = {
  insights: new InsightsView(),
  ingestions: new IngestionsView(say),
  search: new SearchView(say),
};

let shown = null;

/** Show the view that the address names. */
function show() {
  const name = named();
  if (shown === name) return;
  if (shown) VIEWS[shown].hide();
  shown = name;
  at("view").replaceChildren(VIEWS[name].node);
  mark();
  scrollTo(0, 0);
  VIEWS[name].show();
}

function named() {
  const name = location.hash.slice(1);
  return Object.hasOwn(VIEWS, name) ? name : "insights";
}

/** The links to the views; the one that shows is marked. */
function mark() {
  const link = (name) => el("a", { href: `#${name}`, "aria-current": name === shown && "page" }, t(name));
  const focused = at("views").contains(document.activeElement);
  at("views").replaceChildren(...Object.keys(VIEWS).map(link));
  if (focused) at("views").querySelector("[aria-current]").focus();
}

function speak() {
  translate();
  mark();
  const home = el("a", { href: "./", class: "home", title: t("toDesk") }, icon("question"), el("span", {}, t("toDesk")));
  at("tools").replaceChildren(home, ...readerTools(speak));
  for (const view of Object.values(VIEWS)) view.translate();
}

/** The link to the content leaves the address alone: that says which view shows. */
function skip(event) {
  event.preventDefault();
  at("view").focus();
}

show();
speak();
document.querySelector(".skip").addEventListener("click", skip);
addEventListener("hashchange", show);
