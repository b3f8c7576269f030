// The tables of the admin page.

import { el } from "../dom.js";

/** A table with the accessible name `label`. Columns are `{name, cell, kind, head}`; `head` marks row headers. */
export function table(label, columns, rows) {
  const heading = ({ name, kind }) => el("th", { scope: "col", class: kind }, name);
  const cell = (row) => ({ cell, kind, head }) =>
    el(head ? "th" : "td", { scope: head && "row", class: kind }, cell(row));
  return el(
    "div",
    { class: "rows", role: "region", "aria-label": label, tabindex: "0" },
    el(
      "table",
      {},
      el("thead", {}, el("tr", {}, columns.map(heading))),
      el("tbody", {}, rows.map((row) => el("tr", {}, columns.map(cell(row))))),
    ),
  );
}
