// The questions of one session, and what the tab remembers of them.

import { outcome } from "./answer.js";
import { ask, forget, Problem } from "./api.js";
import { t } from "./i18n.js";
import { askForKey } from "./key.js";
import { tab } from "./store.js";
import { Turn } from "./turn.js";

const KEPT = 20;

export class Conversation {
  #place;
  #turns = [];
  #abort = null;
  #say;

  /** In `place`; `say` tells a screen reader, `changed` is called when asking begins or ends. */
  constructor(place, say, changed) {
    this.#place = place;
    this.#say = say;
    this.changed = changed;
    this.session = tab.get("session") ?? newSession();
    for (const { question, answer } of remembered()) this.#add(new Turn(question)).finish(answer);
  }

  get empty() {
    return this.#turns.length === 0;
  }

  get busy() {
    return this.#abort !== null;
  }

  /** Ask, and show what comes. */
  async ask(question) {
    const turn = this.#add(new Turn(question));
    this.#place.style.setProperty("--room", `${roomBelow()}px`);
    turn.node.scrollIntoView({ block: "start" });
    await this.#run(turn);
  }

  stop() {
    this.#abort?.abort();
  }

  /** Forget everything, here and at the server, and begin anew. */
  async clear() {
    this.stop();
    const session = this.session;
    this.#turns = [];
    this.#place.replaceChildren();
    tab.remove("turns");
    this.session = newSession();
    this.changed();
    await forget(session);
  }

  /** Say everything again in another language. */
  renew() {
    for (const turn of this.#turns) turn.renew();
  }

  #add(turn) {
    this.#turns.push(turn);
    this.#place.append(turn.node);
    return turn;
  }

  async #run(turn) {
    const abort = new AbortController();
    this.#abort = abort;
    const retry = () => this.busy || this.#run(turn);
    turn.begin();
    this.#say(t("reading"));
    this.changed();
    try {
      for await (const event of ask(turn.question, this.session, abort.signal)) turn.take(event);
      this.#say(summary(turn.answer));
      this.#remember();
    } catch (error) {
      if (this.#abort === abort) this.#abort = null;
      this.changed();
      await this.#failed(turn, error, retry);
    } finally {
      if (this.#abort === abort) this.#abort = null;
      this.changed();
    }
  }

  async #failed(turn, error, retry) {
    if (error.name === "AbortError") {
      turn.stop(retry);
      this.#say(t("stopped"));
    } else if (error instanceof Problem && error.status === 401) {
      tab.remove("key");
      if (await askForKey(error.message)) return this.#run(turn);
      turn.fail(new Problem({ detail: t("keyMissing") }), retry);
    } else {
      turn.fail(error instanceof Problem ? error : unreadable(error), retry);
    }
  }

  #remember() {
    const told = this.#turns.filter((turn) => turn.answer).slice(-KEPT);
    tab.set("turns", JSON.stringify(told.map(({ question, answer }) => ({ question, answer }))));
  }
}

/** What a screen reader is told once the answer is there. */
function summary(answer) {
  if (outcome(answer) !== "answered") return answer.answer.join(" ");
  const { answer: steps, sources, confidence } = answer;
  return t("answered", { steps: steps.length, sources: sources.length, confidence: t(confidence) });
}

/** The problem of an answer that this page cannot make sense of. */
function unreadable(error) {
  console.error(error);
  return new Problem({ detail: t("cutOff") });
}

function remembered() {
  try {
    return JSON.parse(tab.get("turns") ?? "[]");
  } catch {
    return [];
  }
}

/** A name for a conversation; randomUUID is only there on pages with TLS. */
function newSession() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  const session = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  tab.set("session", session);
  return session;
}

/** What is left of the window for a turn, so that its question can stand at the top. */
function roomBelow() {
  const taken = ["header.bar", "#asking"].map((name) => document.querySelector(name)?.offsetHeight ?? 0);
  return Math.max(0, innerHeight - taken[0] - taken[1] - 48);
}
