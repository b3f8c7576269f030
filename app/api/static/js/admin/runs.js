// Ingestion runs: the card of the current run and the table of the others.

import { el } from "../dom.js";
import { t } from "../i18n.js";
import { duration, moment, number } from "./format.js";
import { table } from "./table.js";

/** The progress of a run by source. */
export function runningCard(run) {
  return el(
    "section",
    { class: "card running", "aria-labelledby": "running-title" },
    el("header", {}, el("h3", { id: "running-title" }, t("running")), el("p", { class: "hint" }, t(`trigger_${run.trigger}`), options(run), ` · ${elapsed(run)}`)),
    run.sources.length ? run.sources.map(sourceProgress) : el("p", { class: "progress" }, t("starting")),
  );
}

function sourceProgress({ name, documents, expected, ...counts }) {
  const progress = expected ? { max: expected, value: Math.min(documents, expected) } : {};
  const label = expected ? t("readOf", { count: number(documents), expected: number(expected) }) : t("read", { count: number(documents) });
  return el(
    "div",
    { class: "source-progress" },
    el("p", {}, el("b", {}, name), el("span", {}, label)),
    el("progress", { ...progress, "aria-label": `${name}: ${label}` }),
    el("p", { class: "hint" }, changes(counts)),
  );
}

export function runTable(runs) {
  const columns = [
    { name: t("run"), head: true, cell: (run) => [state(run), el("span", { class: "hint" }, t(`trigger_${run.trigger}`), options(run))] },
    { name: t("startedAt"), kind: "short", cell: (run) => [moment(run.startedAt), el("span", { class: "hint" }, elapsed(run))] },
    { name: t("documents"), cell: documents },
  ];
  return table(t("runs"), columns, runs);
}

function state({ state }) {
  return el("span", { class: `state ${state}` }, t(`state_${state}`));
}

function options({ options: { dryRun, rebuild, allowDeletes } }) {
  const labels = [dryRun && t("dryRunShort"), rebuild && t("rebuild"), allowDeletes && t("allowDeletes")].filter(Boolean);
  return labels.map((option) => ` · ${option}`);
}

function elapsed({ state, startedAt, seconds }) {
  return duration(state === "running" ? Math.max(0, (Date.now() - Date.parse(startedAt)) / 1000) : seconds);
}

function documents({ error, sources }) {
  return [
    error && el("p", { class: "failed" }, error),
    ...sources.map(({ name, documents: read, refused, ...counts }) =>
      el(
        "div",
        { class: "source-counts" },
        el("b", {}, name),
        " ",
        el("span", {}, [t("read", { count: number(read) }), changes(counts)].join(" · ")),
        refused.length > 0 && el("details", {}, el("summary", {}, t("refused", { count: number(refused.length) })), el("ul", {}, refused.map((line) => el("li", {}, line)))),
      ),
    ),
  ].filter(Boolean);
}

/** The counts of changed documents; zero counts are omitted. */
function changes(counts) {
  const labels = ["added", "changed", "deleted", "kept"].filter((name) => counts[name]).map((name) => t(name, { count: number(counts[name]) }));
  return labels.length ? labels.join(" · ") : t("noChanges");
}
