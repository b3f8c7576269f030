// Charts in SVG. Horizontal lengths are in percent, so that a chart fills its container; vertical lengths are in pixels.

import { svg } from "../dom.js";

const HEIGHT = 180;
const BELOW = 28;
const ABOVE = 8;

/**
 * A stacked bar chart. `columns` are `{label, title, parts}`, with one number in `parts` for each of `classes`;
 * `label` describes the chart to screen readers. Four of the columns are labelled.
 */
export function stackedBars({ columns, classes, label, format }) {
  const step = tickStep(Math.max(1, ...columns.map((column) => sum(column.parts))));
  const top = step * Math.ceil(Math.max(1, ...columns.map((column) => sum(column.parts))) / step);
  const up = (value) => ABOVE + (HEIGHT - ABOVE) * (1 - value / top);
  const width = 100 / columns.length;
  return svg(
    "svg",
    { class: "bars", role: "img", "aria-label": label, width: "100%", height: HEIGHT + BELOW },
    ticks(top, step).map((value) => gridLine(up(value), format(value))),
    columns.map((column, index) => stack(column, index * width, width, classes, up)),
    labelledColumns(columns).map((index) => dayLabel(columns[index].label, index, columns.length, width)),
  );
}

/** A bar for a share of 0 to 1, hidden from screen readers: the number is next to it. */
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

function stack({ title, parts }, x, width, classes, up) {
  const across = { x: `${x + width * 0.12}%`, width: `${width * 0.76}%` };
  let below = 0;
  const bars = parts.flatMap((part, index) => {
    if (!part) return [];
    const y = up(below + part);
    const height = Math.max(1, up(below) - y - (below ? 1 : 0));
    below += part;
    return [svg("rect", { ...across, y, height, rx: 1.5, class: classes[index] })];
  });
  const whole = svg("rect", { x: `${x}%`, width: `${width}%`, y: 0, height: HEIGHT, class: "hit" });
  return svg("g", { class: "day" }, svg("title", {}, title), whole, bars);
}

function gridLine(y, text) {
  const line = svg("line", { x1: 0, x2: "100%", y1: y, y2: y });
  return svg("g", { class: "grid" }, line, svg("text", { x: -8, y: y + 4, "text-anchor": "end" }, text));
}

function dayLabel(text, index, count, width) {
  const anchor = index === 0 ? "start" : index === count - 1 ? "end" : "middle";
  const x = { start: 0, middle: width * (index + 0.5), end: 100 }[anchor];
  return svg("text", { class: "label", x: `${x}%`, y: HEIGHT + 20, "text-anchor": anchor }, text);
}

/** The indexes of the labelled columns: the first, the last, and two in between. */
function labelledColumns(columns) {
  const last = columns.length - 1;
  return [...new Set([0, 1 / 3, 2 / 3, 1].map((part) => Math.round(last * part)))];
}

/** The smallest step of 1, 2, 5, 10, 20 … that needs at most four grid lines. */
function tickStep(max) {
  for (let ten = 1; ; ten *= 10) {
    const factor = [1, 2, 5].find((times) => max / (times * ten) <= 4);
    if (factor) return factor * ten;
  }
}

function ticks(top, step) {
  return Array.from({ length: top / step + 1 }, (_, index) => index * step);
}

function sum(numbers) {
  return numbers.reduce((total, number) => total + number, 0);
}
