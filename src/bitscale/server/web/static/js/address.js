// The search as the address bar holds it, so that it can be shared, reloaded and gone back to.
//
//   c      the collection              q      id:17, text:WORDS, or code:BASE64 with m, its model
//   view   browse or duplicates        bits   how many are compared
//   where  a condition, may repeat     e      what matters, as kind:1
//   compare  the item looked at beside the query

export function read(text = location.search) {
  const given = new URLSearchParams(text);
  const asked = given.get("q") || "";
  let query = null;
  if (/^id:\d+$/.test(asked)) query = { id: Number(asked.slice(3)) };
  else if (/^text:\s*\S/.test(asked)) query = { text: asked.slice(5) };
  else if (asked.startsWith("code:") && given.get("m")) query = { code: asked.slice(5), model: given.get("m") };
  const emphasis = {};
  for (const one of given.getAll("e")) {
    const colon = one.lastIndexOf(":");
    const value = Number(one.slice(colon + 1));
    if (colon > 0 && value >= 0 && Number.isFinite(value)) emphasis[one.slice(0, colon)] = value;
  }
  const bits = Number.parseInt(given.get("bits") || "", 10);
  const compare = given.get("compare");
  return {
    collection: given.get("c"),
    view: ["browse", "duplicates"].includes(given.get("view")) ? given.get("view") : "search",
    query,
    bits: bits > 0 ? bits : null,
    where: given.getAll("where"),
    emphasis,
    compare: compare && /^\d+$/.test(compare) ? Number(compare) : null,
  };
}

export function write(state) {
  const given = new URLSearchParams();
  if (state.collection) given.set("c", state.collection);
  if (state.view !== "search") given.set("view", state.view);
  if (state.query?.id !== undefined) given.set("q", `id:${state.query.id}`);
  else if (state.query?.text) given.set("q", `text:${state.query.text}`);
  else if (state.query) { given.set("q", `code:${state.query.code}`); given.set("m", state.query.model); }
  if (state.bits) given.set("bits", state.bits);
  for (const one of state.where) given.append("where", one);
  for (const [name, value] of Object.entries(state.emphasis)) given.append("e", `${name}:${value}`);
  if (state.compare !== null) given.set("compare", state.compare);
  const text = given.toString();
  return text ? `/?${text}` : "/";
}
