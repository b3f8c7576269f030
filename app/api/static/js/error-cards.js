// The rows of a table of error codes as cards, because their sentences are too long for columns.

import { el } from "./dom.js";
import { errorColumns } from "./text.js";

/** Replace the tables in `root` whose first column contains error codes. */
export function showErrorCards(root) {
  for (const table of root.querySelectorAll("table")) {
    const [header, ...rows] = table.rows;
    if (errorColumns.includes(header.cells[0].textContent)) table.parentNode.replaceWith(...rows.map((row) => card(header, row)));
  }
}

function card(header, row) {
  const [code, ...cells] = row.cells;
  const lines = cells.flatMap((cell, index) =>
    cell.childNodes.length ? [el("dt", {}, header.cells[index + 1].textContent), el("dd", {}, ...cell.childNodes)] : [],
  );
  return el("div", { class: "error-card" }, el("p", {}, `${header.cells[0].textContent} `, el("strong", {}, ...code.childNodes)), el("dl", {}, ...lines));
}
