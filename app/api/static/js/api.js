// The desk's HTTP interface. Addresses are relative: the desk may live below a path.

import { readEvents } from "./sse.js";
import { tab } from "./store.js";
import { t } from "./i18n.js";

/** What went wrong, as an RFC 9457 problem; `retryAfter` is in seconds. */
export class Problem extends Error {
  constructor({ detail, status = 0, code = "", retryAfter = 0 }) {
    super(detail);
    Object.assign(this, { status, code, retryAfter });
  }
}

/** The events of an answer, as `{name, data}`; the last one is `answer`. Throws Problem or AbortError. */
export async function* ask(question, session, signal) {
  const response = await send("POST", "ask", { question, session }, { Accept: "text/event-stream" }, signal);
  let ended = false;
  try {
    for await (const event of readEvents(response.body)) {
      const data = JSON.parse(event.data);
      if (event.name === "error") throw new Problem(data);
      ended = event.name === "answer";
      yield { name: event.name, data };
      if (ended) return;
    }
  } catch (error) {
    throw error instanceof TypeError ? new Problem({ detail: t("cutOff") }) : error;
  }
  throw new Problem({ detail: t("cutOff") });
}

export async function suggestions(language) {
  const response = await send("GET", `suggestions?language=${language}`);
  return (await response.json()).suggestions;
}

export async function sendFeedback(answerId, score, comment) {
  const body = comment ? { score, comment } : { score };
  await send("POST", `answers/${encodeURIComponent(answerId)}/feedback`, body);
}

/** Make the server forget a conversation, be it known there or not. */
export async function forget(session) {
  await send("DELETE", `sessions/${encodeURIComponent(session)}`).catch(() => {});
}

/** The response to a call with the tab's key. Throws Problem, and AbortError where `signal` says so. */
export async function send(method, address, body, headers = {}, signal) {
  const key = tab.get("key");
  const response = await fetch(address, {
    method,
    signal,
    headers: {
      ...(body && { "Content-Type": "application/json" }),
      ...(key && { Authorization: `Bearer ${key}` }),
      ...headers,
    },
    body: body && JSON.stringify(body),
  }).catch((error) => {
    throw error.name === "AbortError" ? error : new Problem({ detail: t("unreachable") });
  });
  if (!response.ok) throw await problemOf(response);
  return response;
}

async function problemOf(response) {
  const said = await response.json().catch(() => ({}));
  return new Problem({
    detail: said.detail ?? `HTTP ${response.status}`,
    status: response.status,
    code: said.code,
    retryAfter: secondsUntil(response.headers.get("Retry-After")),
  });
}

/** Retry-After, which is a number of seconds or a date, in seconds. */
function secondsUntil(value) {
  if (!value) return 0;
  const seconds = /^\d+$/.test(value) ? Number(value) : (Date.parse(value) - Date.now()) / 1000;
  return Math.max(0, Math.ceil(seconds || 0));
}
