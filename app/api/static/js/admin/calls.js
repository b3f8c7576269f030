// The calls of the admin view; each takes a key with the scope `admin` where the server wants one.

import { Problem, send } from "../api.js";
import { t } from "../i18n.js";
import { askForKey } from "../key.js";
import { tab } from "../store.js";

let asking = null;

export const insights = (days) => json("GET", `insights?days=${days}`);

export const ingestions = async () => (await json("GET", "ingestions")).ingestions;

export const ingestion = (id) => json("GET", `ingestions/${encodeURIComponent(id)}`);

export const beginIngestion = (options) => json("POST", "ingestions", options);

export const retrieve = async (question, k) => (await json("POST", "retrieve", { question, k })).sources;

/** A table of the insights as a CSV file. */
export async function insightsFile(days, table) {
  const response = await keyed(() => send("GET", `insights?days=${days}&table=${table}&format=csv`));
  return { name: `insights-${table}-${days}-days.csv`, content: await response.blob() };
}

/** Ask for another key than the one that is not enough. True when one was given. */
export function changeKey(why) {
  asking ??= askForKey(why).finally(() => (asking = null));
  return asking;
}

async function json(...request) {
  return (await keyed(() => send(...request))).json();
}

/** What `call` gives, once there is a key that the server knows; calls that wait ask for one together. */
async function keyed(call) {
  for (;;) {
    const used = tab.get("key");
    try {
      return await call();
    } catch (problem) {
      if (problem.status !== 401) throw problem;
      if (tab.get("key") !== used) continue;
      tab.remove("key");
      if (!(await changeKey(problem.message))) throw new Problem({ detail: t("noKey"), status: 401 });
    }
  }
}
