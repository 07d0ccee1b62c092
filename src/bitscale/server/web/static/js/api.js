// The service's API: JSON in and out, errors as sentences, and the way to sign in where a key is needed.
export class Problem extends Error {
  constructor(status, message) { super(message); this.status = status; }
}

async function ask(address, options = {}) {
  let answer;
  try {
    answer = await fetch(address, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, "The service does not answer. Is it still running?");
  }
  if (answer.status === 401) {
    location.assign(`/sign-in?next=${encodeURIComponent(location.pathname + location.search)}`);
    throw new Problem(401, "Please sign in.");
  }
  if (answer.status === 204) return null;
  let body = null;
  try { body = await answer.json(); } catch { /* told below */ }
  if (!answer.ok) throw new Problem(answer.status, sentence(body?.error?.message || `the service answered ${answer.status}.`));
  return body;
}

const sentence = (words) => words[0].toUpperCase() + words.slice(1);

const json = (method, body, signal) => ({
  method, signal, headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
});
const home = (name) => `/v1/collections/${encodeURIComponent(name)}`;

export const session = () => ask("/v1/session");
export const signOut = () => ask("/v1/session", { method: "DELETE" });
export const collections = () => ask("/v1/collections");
export const facets = (name) => ask(`${home(name)}/facets`);
export const item = (name, id) => ask(`${home(name)}/items/${id}`);
export const search = (name, body, signal) => ask(`${home(name)}/search`, json("POST", body, signal));
export const learn = (name, body, signal) => ask(`${home(name)}/learn`, json("POST", body, signal));
export const mark = (name, body) => ask(`${home(name)}/marks`, json("POST", body));
export const marks = (name) => ask(`${home(name)}/marks`);
export const takeBack = (name, id) => ask(`${home(name)}/marks/${id}`, { method: "DELETE" });
export const duplicates = (name) => ask(`${home(name)}/duplicates`);
export const planOf = (name, form) => `${home(name)}/duplicates/plan?form=${form}`;
export const thumbnail = (name, id, side = 256) => `${home(name)}/items/${id}/thumbnail?side=${side}`;
export const picture = (name, id) => `${home(name)}/items/${id}/picture`;

export function items(name, after, where, limit = 60) {
  const parameters = new URLSearchParams({ after, limit });
  for (const one of where) parameters.append("where", one);
  return ask(`${home(name)}/items?${parameters}`);
}

export function searchPicture(name, file, how, signal) {
  const parameters = new URLSearchParams({ k: how.k, explain: "true" });
  if (how.bits) parameters.set("bits", how.bits);
  for (const one of how.where || []) parameters.append("where", one);
  if (Object.keys(how.emphasis || {}).length) parameters.set("emphasis", JSON.stringify(how.emphasis));
  const headers = { "Content-Type": file.type || "application/octet-stream" };
  return ask(`${home(name)}/search/picture?${parameters}`, { method: "POST", headers, body: file, signal });
}
