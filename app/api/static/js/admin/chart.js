// Charts: SVG that grows with its place, since what is across is in percent and what is up in pixels.

import { svg } from "../dom.js";

const HEIGHT = 180;
const BELOW = 28;
const ABOVE = 8;

/**
 * Stacked bars. `columns` are `{label, title, parts}`, the parts as many numbers as there are `classes`;
 * `label` tells everything to those who do not see it. Four of the columns are named below.
 */
export function stackedBars({ columns, classes, label, format }) {
  const step = tickStep(Math.max(1, ...columns.map((column) => sum(column.parts))));
  const top = step * Math.ceil(Math.max(1, ...columns.map((column) => sum(column.parts))) / step);
  const up = (value) => ABOVE + (HEIGHT - ABOVE) * (1 - value / top);
  const wide = 100 / columns.length;
  return svg(
    "svg",
    { class: "bars", role: "img", "aria-label": label, width: "100%", height: HEIGHT + BELOW },
    ticks(top, step).map((value) => gridLine(up(value), format(value))),
    columns.map((column, index) => stack(column, index * wide, wide, classes, up)),
    named(columns).map((index) => dayLabel(columns[index].label, index, columns.length, wide)),
  );
}

/** A share of 0 to 1 as a bar; what it means is said beside it. */
export function shareBar(value) {
  const width = `${Math.round(100 * Math.min(1, Math.max(0, value)))}%`;
  const across = { height: "100%", rx: 3 };
  return svg(
    "svg",
    { class: "share", "aria-hidden": "true", height: 6 },
    svg("rect", { ...across, class: "whole", width: "100%" }),
    svg("rect", { ...across, class: "part", width }),
  );
}

function stack({ title, parts }, x, wide, classes, up) {
  const across = { x: `${x + wide * 0.12}%`, width: `${wide * 0.76}%` };
  let below = 0;
  const bars = parts.flatMap((part, index) => {
    if (!part) return [];
    const y = up(below + part);
    const height = Math.max(1, up(below) - y - (below ? 1 : 0));
    below += part;
    return [svg("rect", { ...across, y, height, rx: 1.5, class: classes[index] })];
  });
  const whole = svg("rect", { x: `${x}%`, width: `${wide}%`, y: 0, height: HEIGHT, class: "hit" });
  return svg("g", { class: "day" }, svg("title", {}, title), whole, bars);
}

function gridLine(y, text) {
  const line = svg("line", { x1: 0, x2: "100%", y1: y, y2: y });
  return svg("g", { class: "grid" }, line, svg("text", { x: -8, y: y + 4, "text-anchor": "end" }, text));
}

function dayLabel(text, index, count, wide) {
  const anchor = index === 0 ? "start" : index === count - 1 ? "end" : "middle";
  const x = { start: 0, middle: wide * (index + 0.5), end: 100 }[anchor];
  return svg("text", { class: "label", x: `${x}%`, y: HEIGHT + 20, "text-anchor": anchor }, text);
}

/** The columns that have their name below: the first, the last, and two between. */
function named(columns) {
  const last = columns.length - 1;
  return [...new Set([0, 1 / 3, 2 / 3, 1].map((part) => Math.round(last * part)))];
}

/** The smallest of 1, 2, 5, 10, 20 … that needs at most four lines. */
function tickStep(most) {
  for (let ten = 1; ; ten *= 10) {
    const found = [1, 2, 5].find((times) => most / (times * ten) <= 4);
    if (found) return found * ten;
  }
}

function ticks(top, step) {
  return Array.from({ length: top / step + 1 }, (_, index) => index * step);
}

function sum(numbers) {
  return numbers.reduce((all, each) => all + each, 0);
}
