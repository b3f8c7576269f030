// Numbers, shares, times and durations in the format of the user's language.

import { locale, t } from "../i18n.js";

export const number = (value) => new Intl.NumberFormat(locale()).format(value);

export const share = (value) => new Intl.NumberFormat(locale(), { style: "percent" }).format(value);

/** A time in the local time zone. A line can break only between the day and the hour. */
export function moment(text) {
  const part = (options) => new Intl.DateTimeFormat(locale(), options).format(new Date(text)).replace(/ /g, "\u00a0");
  return `${part({ month: "short", day: "numeric" })} ${part({ hour: "2-digit", minute: "2-digit", hourCycle: "h23" })}`;
}

/** A day of the report, in UTC. */
export const day = (text) =>
  new Intl.DateTimeFormat(locale(), { month: "short", day: "numeric", timeZone: "UTC" }).format(new Date(text));

export function duration(seconds) {
  if (seconds < 60) return t("seconds", { count: seconds < 10 ? seconds.toFixed(1) : Math.round(seconds) });
  return t("minutes", { minutes: Math.floor(seconds / 60), seconds: Math.round(seconds % 60) });
}
