// Shows the OpenAPI document of this service: every route, what it takes and what it answers.

// Text is text, but for what stands between backticks: that is code.
function write(element, text) {
  text.split("`").forEach((part, place) => {
    if (place % 2) element.append(Object.assign(document.createElement("code"), { textContent: part }));
    else element.append(part);
  });
}

function add(parent, tag, text, name) {
  const element = document.createElement(tag);
  if (text) write(element, text);
  if (name) element.className = name;
  parent.append(element);
  return element;
}

function resolved(schema, all) {
  const name = schema && schema.$ref ? schema.$ref.split("/").pop() : null;
  return name ? { name, ...all[name] } : schema || {};
}

function kind(schema, all) {
  const known = resolved(schema, all);
  if (known.name) return known.name;
  if (known.anyOf) return known.anyOf.map((one) => kind(one, all)).join(" | ");
  if (known.type === "array") return `[${kind(known.items, all)}]`;
  if (known.enum) return known.enum.map((one) => JSON.stringify(one)).join(" | ");
  return known.format || known.type || "anything";
}

function table(parent, title, rows) {
  if (!rows.length) return;
  add(parent, "h4", title);
  const body = add(add(parent, "table"), "tbody");
  for (const cells of rows) {
    const row = add(body, "tr");
    cells.forEach((cell, place) => add(row, place ? "td" : "th", cell).setAttribute("scope", place ? "" : "row"));
  }
}

function fields(schema, all) {
  const known = resolved(schema, all);
  const must = new Set(known.required || []);
  return Object.entries(known.properties || {}).map(([name, one]) => [
    must.has(name) ? `${name} *` : name, kind(one, all), one.description || "",
  ]);
}

function route(parent, method, path, one, all) {
  const box = add(parent, "details");
  const head = add(box, "summary");
  add(head, "code", `${method.toUpperCase()} ${path}`);
  add(head, "span", ` ${(one.description || one.summary || "").split("\n")[0]}`);
  table(box, "Parameters", (one.parameters || []).map((given) => [
    given.required ? `${given.name} *` : given.name, kind(given.schema, all), given.schema.description || given.in,
  ]));
  for (const [type, content] of Object.entries((one.requestBody || {}).content || {})) {
    const rows = fields(content.schema, all);
    table(box, `Body: ${type}`, rows.length ? rows : [["body", kind(content.schema, all), ""]]);
  }
  table(box, "Answers", Object.entries(one.responses || {}).map(([status, told]) => [
    status, Object.values(told.content || {}).map((some) => kind(some.schema, all)).join(" | "), told.description || "",
  ]));
}

async function show() {
  const about = document.getElementById("about");
  try {
    const answer = await fetch("/openapi.json");
    const document_ = await answer.json();
    if (!answer.ok) throw new Error(document_.error.message);
    const all = (document_.components || {}).schemas || {};
    about.textContent = "";
    write(about, document_.info.description);
    const groups = new Map();
    for (const [path, methods] of Object.entries(document_.paths)) {
      for (const [method, one] of Object.entries(methods)) {
        const name = (one.tags || ["other"])[0];
        if (!groups.has(name)) {
          const section = add(document.getElementById("routes"), "section");
          add(section, "h2", name);
          groups.set(name, section);
        }
        route(groups.get(name), method, path, one, all);
      }
    }
    const shapes = add(document.getElementById("routes"), "section");
    add(shapes, "h2", "shapes");
    for (const name of Object.keys(all).sort()) {
      const box = add(shapes, "details");
      add(add(box, "summary"), "code", name);
      table(box, all[name].description || name, fields(all[name], all));
    }
  } catch (error) {
    about.textContent = `The description cannot be shown: ${error.message}`;
  }
}

show();
