// The API calls of the admin page. If keys are configured, a key with the scope `admin` allows all calls.

import { Problem, send } from "../api.js";
import { t } from "../i18n.js";
import { askForKey } from "../key.js";
import { tab } from "../store.js";

let keyDialog = null;

export const getInsights = (days) => json("GET", `insights?days=${days}`);

export const listIngestions = async () => (await json("GET", "ingestions")).ingestions;

export const getIngestion = (id) => json("GET", `ingestions/${encodeURIComponent(id)}`);

export const startIngestion = (options) => json("POST", "ingestions", options);

export const retrieve = async (question, k) => (await json("POST", "retrieve", { question, k })).sources;

/** A table of the insights as a CSV file. */
export async function getInsightsCsv(days, table) {
  const response = await withKey(() => send("GET", `insights?days=${days}&table=${table}&format=csv`));
  return { name: `insights-${table}-${days}-days.csv`, content: await response.blob() };
}

/** Ask for another key. Resolves to true if a key was entered. */
export function changeKey(reason) {
  keyDialog ??= askForKey(reason).finally(() => (keyDialog = null));
  return keyDialog;
}

async function json(...request) {
  return (await withKey(() => send(...request))).json();
}

/** The result of `call`. While the server rejects the key, another key is asked for; concurrent calls share the dialog. */
async function withKey(call) {
  for (;;) {
    const used = tab.get("key");
    try {
      return await call();
    } catch (problem) {
      if (problem.status !== 401) throw problem;
      if (tab.get("key") !== used) continue; // a concurrent call has removed or replaced the key
      tab.remove("key");
      if (!(await changeKey(problem.message))) throw new Problem({ detail: t("noKey"), status: 401 });
    }
  }
}
