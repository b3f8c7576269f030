// The turns of one session, and their storage in the browser tab.

import { outcome } from "./answer.js";
import { ask, deleteSession, Problem } from "./api.js";
import { t } from "./i18n.js";
import { askForKey } from "./key.js";
import { tab } from "./store.js";
import { Turn } from "./turn.js";

const MAX_STORED_TURNS = 20;

export class Conversation {
  #container;
  #turns = [];
  #abort = null;
  #announce;

  /** Show the turns in `container`. `announce` informs screen readers; `onChange` is called when an
   *  answer starts or ends, and when the conversation is cleared. */
  constructor(container, announce, onChange) {
    this.#container = container;
    this.#announce = announce;
    this.onChange = onChange;
    this.session = tab.get("session") ?? newSession();
    for (const { question, answer } of storedTurns()) this.#add(question).finish(answer);
  }

  get empty() {
    return this.#turns.length === 0;
  }

  get busy() {
    return this.#abort !== null;
  }

  /** Ask a question and show the answer as it arrives. */
  async ask(question) {
    const turn = this.#add(question);
    this.#container.style.setProperty("--turn-height", `${availableHeight()}px`);
    turn.node.scrollIntoView({ block: "start" });
    await this.#run(turn);
  }

  stop() {
    this.#abort?.abort();
  }

  /** Delete the conversation, here and on the server, and start a new one. */
  async clear() {
    this.stop();
    const session = this.session;
    this.#turns = [];
    this.#container.replaceChildren();
    tab.remove("turns");
    this.session = newSession();
    this.onChange();
    await deleteSession(session);
  }

  /** Render every turn again in the current language. */
  translate() {
    for (const turn of this.#turns) turn.translate();
  }

  #add(question) {
    const turn = new Turn(question, (next) => this.busy || this.ask(next));
    this.#turns.push(turn);
    this.#container.append(turn.node);
    return turn;
  }

  async #run(turn) {
    const abort = new AbortController();
    this.#abort = abort;
    const retry = () => this.busy || this.#run(turn);
    turn.begin();
    this.#announce(t("reading"));
    this.onChange();
    try {
      for await (const event of ask(turn.question, this.session, abort.signal)) turn.apply(event);
      this.#announce(summary(turn.answer));
      this.#store();
    } catch (error) {
      if (this.#abort === abort) this.#abort = null;
      this.onChange();
      await this.#handleError(turn, error, retry);
    } finally {
      if (this.#abort === abort) this.#abort = null;
      this.onChange();
    }
  }

  async #handleError(turn, error, retry) {
    if (error.name === "AbortError") {
      turn.stop(retry);
      this.#announce(t("stopped"));
    } else if (error instanceof Problem && error.status === 401) {
      tab.remove("key");
      if (await askForKey(error.message)) return this.#run(turn);
      turn.fail(new Problem({ detail: t("keyMissing") }), retry);
    } else {
      this.#announce(""); // the problem is an alert, which screen readers read
      turn.fail(shownProblem(error, turn.question), retry);
    }
  }

  #store() {
    const turns = this.#turns.filter((turn) => turn.answer).slice(-MAX_STORED_TURNS);
    tab.set("turns", JSON.stringify(turns.map(({ question, answer }) => ({ question, answer }))));
  }
}

/** The announcement for screen readers when the answer is complete. */
function summary(answer) {
  if (outcome(answer) !== "answered") return answer.answer.join(" ");
  const { answer: steps, sources, confidence } = answer;
  return t("answered", { steps: steps.length, sources: sources.length, confidence: t(confidence) });
}

/** The problem shown for an error. */
function shownProblem(error, question) {
  if (error instanceof Problem) {
    if (error.code !== "too_large") return error;
    return new Problem({ ...error, detail: t("tooLong", { count: [...question].length }) });
  }
  console.error(error);
  return new Problem({ detail: t("cutOff") });
}

function storedTurns() {
  try {
    return JSON.parse(tab.get("turns") ?? "[]");
  } catch {
    return [];
  }
}

/** A new session id. crypto.randomUUID is available with TLS only. */
function newSession() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  const session = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  tab.set("session", session);
  return session;
}

/** The height left for a turn, so that its question can scroll to the top of the window. */
function availableHeight() {
  const used = ["header.bar", "#asking"].map((name) => document.querySelector(name)?.offsetHeight ?? 0);
  return Math.max(0, innerHeight - used[0] - used[1] - 48);
}
