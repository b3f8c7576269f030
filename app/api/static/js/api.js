// The client of the HTTP API. URLs are relative, because the server may be mounted below a path.

import { readEvents } from "./sse.js";
import { tab } from "./store.js";
import { t } from "./i18n.js";

/** An RFC 9457 problem; `retryAfter` is in seconds. A problem that the page itself finds is retryable. */
export class Problem extends Error {
  constructor({ detail, status = 0, code = "", retryable = true, retryAfter = 0 }) {
    super(detail);
    Object.assign(this, { status, code, retryable, retryAfter });
  }
}

/** Yields the events of an answer as `{name, data}`; the last one is `answer`. Throws Problem or AbortError. */
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

/** Suggested questions. `about`, pairs of query parameters, selects questions about one document. */
export async function suggestions(language, about = []) {
  const response = await send("GET", `suggestions?${new URLSearchParams([["language", language], ...about])}`);
  return (await response.json()).suggestions;
}

export async function sendFeedback(answerId, score, comment) {
  const body = comment ? { score, comment } : { score };
  await send("POST", `answers/${encodeURIComponent(answerId)}/feedback`, body);
}

/** Delete a session on the server; errors are ignored, because the session may not exist. */
export async function deleteSession(session) {
  await send("DELETE", `sessions/${encodeURIComponent(session)}`).catch(() => {});
}

/** Send a request with the API key of the tab. Throws Problem, and AbortError if `signal` aborts it. */
export async function send(method, url, body, headers = {}, signal) {
  const key = tab.get("key");
  const response = await fetch(url, {
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
  if (!response.ok) throw await readProblem(response);
  return response;
}

async function readProblem(response) {
  const body = await response.json().catch(() => ({}));
  return new Problem({
    detail: body.detail ?? `HTTP ${response.status}`,
    status: response.status,
    code: body.code,
    retryable: body.retryable,
    retryAfter: secondsUntil(response.headers.get("Retry-After")),
  });
}

/** The value of Retry-After, a number of seconds or a date, in seconds. */
function secondsUntil(value) {
  if (!value) return 0;
  const seconds = /^\d+$/.test(value) ? Number(value) : (Date.parse(value) - Date.now()) / 1000;
  return Math.max(0, Math.ceil(seconds || 0));
}
