// Questions by day and type: the chart, its legend, and the same data as a table.

import { el } from "../dom.js";
import { t } from "../i18n.js";
import { stackedBars } from "./chart.js";
import { day, number, share } from "./format.js";
import { table } from "./table.js";

const DAY_MS = 24 * 60 * 60 * 1000;

const TYPES = ["api_call", "general", "unknown", "failed"];

export function questionsByDay({ days, byType: rows }) {
  const counted = byDay(days, rows);
  const totals = TYPES.map((_, index) => sum(counted.map(({ parts }) => parts[index])));
  const present = TYPES.filter((_, index) => totals[index]);
  return el(
    "div",
    {},
    legend(totals),
    el("div", { class: "chart" }, chart(counted, totals)),
    el("details", {}, el("summary", {}, t("asTable")), dayTable(counted, present)),
  );
}

function chart(counted, totals) {
  const describe = (parts) => TYPES.flatMap((type, index) => (parts[index] ? [`${t(`type_${type}`)} ${number(parts[index])}`] : []));
  const columns = counted.map(({ date, parts }) => ({
    label: day(date),
    title: [day(date), ...describe(parts)].join("\n"),
    parts,
  }));
  const label = t("chartLabel", { first: columns[0].label, last: columns.at(-1).label, counts: describe(totals).join(", ") });
  return stackedBars({ columns, classes: TYPES.map((type) => `type-${type}`), label, format: number });
}

function legend(totals) {
  const all = sum(totals);
  const entry = (type, index) =>
    el("li", {}, el("i", { class: `swatch type-${type}` }), t(`type_${type}`), el("b", {}, number(totals[index])), el("span", {}, share(totals[index] / all)));
  return el("ul", { class: "legend", role: "list" }, TYPES.flatMap((type, index) => (totals[index] ? [entry(type, index)] : [])));
}

function dayTable(counted, types) {
  const of = (type) => ({ name: t(`type_${type}`), cell: ({ parts }) => number(parts[TYPES.indexOf(type)]), kind: "numeric" });
  const columns = [{ name: t("day"), cell: ({ date }) => day(date), kind: "short", head: true }, ...types.map(of)];
  return table(t("byType"), columns, counted.filter(({ parts }) => sum(parts)).reverse());
}

/** Every day of the period with its counts, including days without questions. */
function byDay(days, rows) {
  const first = Math.min(Date.now() - (days - 1) * DAY_MS, ...rows.map((row) => Date.parse(row.day)));
  const counted = new Map();
  for (let date = isoDay(first); date <= isoDay(Date.now()); date = isoDay(Date.parse(date) + DAY_MS)) {
    counted.set(date, { date, parts: TYPES.map(() => 0) });
  }
  for (const { day: date, type, questions } of rows) {
    const parts = counted.get(date)?.parts;
    if (parts) parts[TYPES.indexOf(type ?? "failed")] += questions;
  }
  return [...counted.values()];
}

function isoDay(milliseconds) {
  return new Date(milliseconds).toISOString().slice(0, 10);
}

function sum(numbers) {
  return numbers.reduce((total, number) => total + number, 0);
}
