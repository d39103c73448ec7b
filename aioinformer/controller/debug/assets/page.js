// Shows the report of a manager. Data becomes text nodes and attributes only, never markup.

const SVG = "http://www.w3.org/2000/svg";
const KEPT = 90; // points of a plot: three minutes
const LISTS = {
  failing: "Failing", parked: "Parked", waiting: "Waiting", running: "Running", oldest: "Longest waiting", hottest: "Hottest",
  slowest: "Slowest", settling: "Awaiting own writes",
};
const element = (id) => document.getElementById(id);
const state = { report: null, list: "", selected: null, memory: null, points: [], before: null };

// Elements.

function h(name, attributes, ...children) {
  const made = name === "svg" || name === "path" ? document.createElementNS(SVG, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key.startsWith("on")) made[key] = value;
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children.flat(3)) {
    if (child !== null && child !== undefined && child !== false && child !== "") {
      made.append(child instanceof Node ? child : String(child));
    }
  }
  return made;
}

// Make what an element contains equal to new nodes. Unchanged nodes stay, and so do the focus and what is unfolded.
function show(parent, ...nodes) {
  const wanted = nodes.flat(3).filter((node) => node);
  wanted.forEach((node, at) => {
    const known = parent.childNodes[at];
    if (!known) parent.append(node);
    else if (!same(known, node)) known.replaceWith(node);
    else if (node.nodeType === Node.TEXT_NODE) { if (known.data !== node.data) known.data = node.data; }
    else {
      for (const { name } of [...known.attributes]) {
        if (!node.hasAttribute(name) && name !== "open") known.removeAttribute(name);
      }
      for (const { name, value } of node.attributes) {
        if (known.getAttribute(name) !== value && name !== "open") known.setAttribute(name, value);
      }
      known.onclick = node.onclick;
      show(known, [...node.childNodes]);
    }
  });
  while (parent.childNodes.length > wanted.length) parent.lastChild.remove();
}

function same(known, node) {
  return known.nodeType === node.nodeType && known.nodeName === node.nodeName
    && (node.nodeType !== Node.ELEMENT_NODE || known.dataset.id === node.dataset.id);
}

function table(columns, rows, none) {
  if (!rows.length) return h("p", { class: "muted" }, none);
  return h("div", {}, h("table", {},
    h("thead", {}, h("tr", {}, columns.map(([name, , number]) => h("th", { scope: "col", class: number && "number" }, name)))),
    h("tbody", {}, rows.map((row) => h("tr", { "data-id": row.id || null }, columns.map(([name, cell, number]) =>
      h("td", { class: number && "number", "data-name": name }, cell(row))))))));
}

const facts = (...pairs) => h("dl", {}, pairs.filter(([, value]) => value !== "" && value !== null && value !== undefined
  && value !== false).map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));

// Texts.

function seconds(value) {
  if (value < 1) return `${(value * 1000).toFixed(value < 0.01 ? 1 : 0)} ms`;
  if (value < 60) return `${value.toFixed(value < 10 ? 1 : 0)} s`;
  const minutes = Math.floor(value / 60);
  return minutes < 60 ? `${minutes} min ${Math.floor(value % 60)} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
const ago = (time) => (state.report.time - time < 1 ? "just now" : `${seconds(state.report.time - time)} ago`);
const until = (time) => (time <= state.report.time + 0.05 ? "now" : `in ${seconds(time - state.report.time)}`);
const bytes = (value) => (value < 1e6 ? `${(value / 1e3).toFixed(0)} kB` : `${(value / 1e6).toFixed(1)} MB`);
const number = (value) => value.toLocaleString("en");
const code = (text) => text && h("span", { class: "mono" }, text);
// A text in which code is between backticks.
const marked = (text) => text.split("`").map((part, at) => at % 2 ? code(part) : part);
const total = (values) => values.reduce((sum, each) => sum + each, 0);
const count = (value, one, many = `${one}s`) => `${number(value)} ${value === 1 ? one : many}`;

// The parts of the page.

function showFacts(report) {
  document.title = `${report.problems.length ? `(${report.problems.length}) ` : ""}${report.manager}`;
  element("name").textContent = `Manager ${report.manager}`;
  const role = report.elector ? (report.elector.leads ? "leader" : "standby") : "";
  element("facts").textContent = [report.running ? "running" : "not running", role, `process ${report.process.pid}`,
    `aioinformer ${report.process.version}`, `Python ${report.process.python}`].filter(Boolean).join(" · ");
}

function showProblems(report) {
  const see = (problem) => (report.docs
    ? h("a", { href: `${report.docs}#${problem.see}`, rel: "noreferrer", target: "_blank" }, `Troubleshooting: ${problem.see}`)
    : h("span", { class: "muted" }, `docs/troubleshooting.md#${problem.see}`));
  const one = (problem) => h("div", { class: `problem ${problem.severity}` },
    h("p", {}, h("span", { class: "severity" }, problem.severity), h("strong", {}, problem.text)),
    h("p", {}, marked(problem.remedy), " ", see(problem)),
    problem.key && h("p", {}, keyButton(problem, `Show ${problem.key}`)));
  show(element("problem-list"), report.problems.length ? report.problems.map(one)
    : h("p", { class: "all-well" }, "Nothing that is known to be wrong."));
}

function keyButton(key, label = key.key) {
  return h("button", { type: "button", class: "plain mono", onclick: () => select(key.controller, key.key) }, label);
}

function measure(report) {
  const results = Object.values(report.controllers).map((each) => each.results);
  const now = {
    time: report.time,
    runs: total(results.map((each) => total(Object.values(each)))),
    failures: total(results.map((each) => (each.error || 0) + (each.timeout || 0) + (each.conflict || 0))),
    events: total(report.caches.map((cache) => Math.max(0, ...cache.handlers.map((handler) => handler.calls)))),
  };
  const before = state.before;
  state.before = now;
  if (before && now.time > before.time) {
    const rate = (name) => Math.max(0, now[name] - before[name]) / (now.time - before.time);
    state.points.push({ runs: rate("runs"), failures: rate("failures"), events: rate("events"), lag: report.loop.lag * 1000 });
    state.points = state.points.slice(-KEPT);
  }
}

function showRates() {
  const last = state.points.at(-1);
  const plot = (name, label, unit) => {
    const values = state.points.map((point) => point[name]);
    const top = Math.max(...values, name === "lag" ? 50 : 1);
    const line = values.map((value, at) => `${at ? "L" : "M"}${(100 * at) / (KEPT - 1)},${(40 - 38 * (value / top)).toFixed(1)}`);
    const text = last ? `${last[name].toFixed(last[name] < 10 ? 1 : 0)} ${unit}` : "…";
    return h("div", { class: "plot" }, h("span", { class: "muted" }, `${label} `), h("b", {}, text),
      h("svg", { viewBox: "0 0 100 40", preserveAspectRatio: "none", role: "img",
        "aria-label": `${label}: ${text}, at most ${top.toFixed(0)} in the last minutes` }, h("path", { d: line.join("") || "M0,40" })));
  };
  show(element("rates"), plot("runs", "Runs", "/s"), plot("failures", "Failures", "/s"),
    plot("events", "Changes", "/s"), plot("lag", "Loop is late by", "ms"));
}

function showKeys(report) {
  const lists = Object.keys(LISTS);
  if (!report.keys[state.list]) state.list = lists.find((name) => (report.keys[name] || []).length) || lists[0];
  show(element("lists"), lists.map((name) => h("button", {
    type: "button", role: "tab", "data-id": name, "aria-selected": String(name === state.list), "aria-controls": "keys",
    onclick: () => { state.list = name; showKeys(state.report); },
  }, LISTS[name], h("span", { class: "count" }, number(report.key_counts[name] || 0)))));
  const why = (key) => [key.error && h("span", { class: key.parked || key.attempts ? "bad" : "" }, key.error),
    key.awaits && ["awaits ", code(key.awaits)], key.own_writes, !key.error && !key.awaits && key.causes.join(", ")]
    .filter(Boolean).flatMap((part, at) => (at ? [h("br"), part] : [part]));
  const when = (key) => (key.state === "delayed" && key.next_run ? until(key.next_run)
    : key.state === "ready" ? `waits for ${seconds(key.waited)}` : key.since ? `since ${ago(key.since)}` : "");
  const shown = report.keys[state.list] || [];
  const all = report.key_counts[state.list] || 0;
  show(element("keys"), table([
    ["Key", (key) => keyButton(key)],
    ["Controller", (key) => key.controller],
    ["State", (key) => `${key.state} ${when(key)}`],
    ["Attempts", (key) => number(key.attempts), true],
    ["Runs", (key) => (key.runs ? `${key.runs.count}${key.runs.more ? "+" : ""}` : ""), true],
    ["Longest", (key) => (key.runs ? seconds(key.runs.longest) : ""), true],
    ["Why", why],
  ], shown.map((key) => ({ ...key, id: `${key.controller} ${key.key}` })), "No keys."),
  all > shown.length && h("p", { class: "muted" }, `${number(shown.length)} of ${number(all)}`));
  const names = Object.keys(report.controllers);
  show(element("find-controller"), names.map((name) => h("option", { value: name, "data-id": name }, name)));
}

function showControllers(report) {
  show(element("controllers"), table([
    ["Controller", (each) => [each.name, h("br"), h("span", { class: "muted" }, each.resource)]],
    ["Phase", (each) => [h("span", { class: each.phase === "working" ? "good" : "doubtful" }, each.phase),
      each.waits_for.map((reason) => [h("br"), reason])]],
    ["Running", (each) => `${each.running.length} of ${each.workers}`, true],
    ["Ready", (each) => number(each.ready), true],
    ["Delayed", (each) => number(each.delayed), true],
    ["Failing", (each) => h("span", { class: each.failing_keys ? "bad" : "" }, number(each.failing_keys)), true],
    ["Parked", (each) => h("span", { class: each.parked_keys ? "bad" : "" }, number(each.parked_keys)), true],
    ["Waiting", (each) => number(each.waiting_keys), true],
    ["Results", (each) => Object.entries(each.results).map(([name, value]) => `${name} ${number(value)}`).join(", ")],
  ], Object.values(report.controllers).map((each) => ({ ...each, id: each.name })), "No controllers run."));
}

function showCaches(report) {
  const fresh = (cache) => (!cache.synced ? "not synced" : cache.stale_since === null ? "fresh" : `stale, since ${ago(cache.stale_since)}`);
  const handler = (each) => h("p", {}, each.name, ": ", h("span", { class: each.errors ? "bad" : "" }, count(each.errors, "error")),
    `, ${count(each.calls, "call")}, ${number(each.pending)} pending`, each.current
    && `, in ${each.current.function} for ${each.current.key} for ${seconds(each.current.seconds)}`,
    each.last_error && `; last error: ${each.last_error.error} for ${each.last_error.key}`);
  show(element("caches"), table([
    ["Cache", (cache) => code(cache.cache)],
    ["State", (cache) => [h("span", { class: cache.healthy ? "good" : "bad" }, `${cache.phase}, ${fresh(cache)}`),
      cache.reason && h("div", {}, cache.reason), cache.listing && h("div", {}, cache.listing)]],
    ["Objects", (cache) => number(cache.objects), true],
    ["Queue", (cache) => number(cache.queued), true],
    ["Tier", (cache) => cache.storage],
    ["Last event", (cache) => (cache.last_event ? ago(cache.last_event) : "none"), true],
    ["More", (cache) => [h("details", {}, h("summary", {}, count(cache.transitions.length, "transition")),
      cache.transitions.map((each) => h("p", {}, `${ago(each.time)}: ${each.phase}${each.reason ? `: ${each.reason}` : ""}`))),
      h("details", {}, h("summary", {}, count(cache.handlers.length, "handler")), cache.handlers.map(handler))]],
  ], report.caches.map((cache) => ({ ...cache, id: cache.cache })), "No caches."));
}

function showShare(report) {
  const { elector, ring } = report;
  show(element("share"),
    elector && facts(["Leader", elector.leader || "none"], ["This replica", elector.identity],
      ["It leads", elector.leads ? "yes" : "no, it is a standby"], ["Terms", elector.terms], ["Failure", elector.failure]),
    ring && facts(["Ring", ring.name], ["This replica", ring.member], ["Epoch", ring.epoch],
      ["Slots", Object.entries(ring.owners).map(([name, slots]) => `${name}: ${slots}`).join(", ")],
      ["Waits for", ring.waits_for], ["Gap", ring.gap],
      ["", h("span", { class: "slots" }, ring.slots.map((owner, at) => h("span", {
        class: ring.mine.includes(at) ? "mine" : owner ? "" : "none", title: `slot ${at}: ${owner || "no owner"}` })))]),
    !elector && !ring && h("p", { class: "muted" }, "One process: without leader election and without a ring."));
}

function showMemory(report) {
  const kept = report.recording;
  const rows = state.memory || [];
  const tiers = [...new Set(rows.map((row) => row.storage))];
  show(element("memory"), h("button", { id: "measure", type: "button", onclick: loadMemory }, "Measure"),
    state.memory && table([
      ["Tier", (row) => row.tier], ["Caches", (row) => number(row.rows.length), true],
      ["Objects", (row) => number(total(row.rows.map((each) => each.objects))), true],
      ["Size", (row) => bytes(total(row.rows.map((each) => each.bytes + each.index_bytes))), true],
      ["Largest", (row) => row.rows.sort((a, b) => b.bytes - a.bytes).slice(0, 3)
        .map((each) => `${each.cache} ${bytes(each.bytes + each.index_bytes)}`).join(", ")],
    ], tiers.map((tier) => ({ id: tier, tier, rows: rows.filter((row) => row.storage === tier) })), "No caches."),
    kept && h("p", { class: "muted" }, `Changes are recorded of ${count(kept.keys, "key")}: ${bytes(kept.bytes)} of at most `
      + `${bytes(kept.limit)}, ${kept.values ? "with values, those of Secrets excluded" : "without values"}.`));
}

function showDetail(key) {
  const panel = element("detail");
  panel.hidden = !key;
  if (!key) return;
  element("detail-title").textContent = `${key.key} of ${key.controller}`;
  const again = state.report.may_retry && key.state === "parked"
    && h("button", { type: "button", onclick: () => retry(key) }, "Run again");
  const close = h("button", { type: "button", onclick: () => { select(null); } }, "Close");
  if (key.problem) {
    show(element("detail-body"), h("p", { class: "bad" }, key.problem), close);
    return;
  }
  const line = (text) => h("span", { class: text.startsWith("+ ") ? "plus" : text.startsWith("- ") ? "minus" : "" }, `${text}\n`);
  show(element("detail-body"), facts(
    ["State", `${key.state}${key.parked ? ` (${key.parked}), since ${ago(key.since)}` : ""}${key.exists ? "" : ", not in the cache"}`],
    ["Causes", key.causes.join(", ") + (key.causes_left_out ? ` and ${key.causes_left_out} more` : "")],
    ["Failed attempts", key.attempts ? number(key.attempts) : ""],
    ["Error", key.error && h("span", { class: "bad" }, key.error)],
    ["Last error", key.last_error && `${key.last_error.error}, ${ago(key.last_error.time)}`],
    ["Next run", key.next_run && key.state !== "parked" ? until(key.next_run) : ""],
    ["Awaits own writes", key.own_writes],
    ["Runs", key.runs && `${key.runs.count}${key.runs.more ? " or more" : ""}; the last one took ${seconds(key.runs.last)}, ended with ${key.runs.result} `
      + `${ago(key.runs.ended)}; the longest of the last ones took ${seconds(key.runs.longest)}`],
    ["Awaits now", key.awaits && code(key.awaits)],
    ["Stack", key.stack && key.stack.length > 1 && h("details", {}, h("summary", {}, count(key.stack.length, "frame")),
      h("pre", {}, key.stack.join("\n")))]),
  h("h3", {}, "Last changes"),
  key.changes.length ? key.changes.map((change) => h("div", { class: "change" },
    h("p", {}, h("b", {}, change.child ? `${change.child} ${change.what}` : change.what), ` ${ago(change.time)}`, change.managers.length
      ? [" by ", h("b", {}, change.managers.join(", "))] : "", h("span", { class: "muted" }, ` version ${change.version}`)),
    change.lines.length ? h("pre", {}, change.lines.map(line)) : null))
    : h("p", { class: "muted" }, "None since the page was enabled."),
  h("p", {}, again, " ", close));
}

// What the person does.

async function select(controller, key) {
  state.selected = controller ? { controller, key } : null;
  history.replaceState(null, "", controller ? `#key=${encodeURIComponent(controller)}:${encodeURIComponent(key)}` : "#");
  await loadDetail();
  if (state.selected) { element("detail").scrollIntoView({ block: "start" }); element("detail").focus(); }
}

async function fetched(address, options) {
  try {
    const answer = await fetch(address, options);
    const body = await answer.json();
    return answer.ok ? body : { problem: body.error };
  } catch (error) {
    return { problem: "The manager does not answer." };
  }
}

async function loadDetail() {
  const wanted = state.selected;
  if (!wanted) return showDetail(null);
  const found = await fetched(`api/key?${new URLSearchParams(wanted)}`);
  if (wanted === state.selected && state.report) showDetail({ ...found, ...wanted });
}

async function loadMemory() {
  const found = await fetched("api/memory");
  state.memory = Array.isArray(found) ? found : [];
  showMemory(state.report);
}

async function retry(key) {
  const body = JSON.stringify({ controller: key.controller, key: key.key });
  const answer = await fetched("api/retry", { method: "POST", body, headers: { "Content-Type": "application/json" } });
  connection(answer.problem || `${key.key} runs again`, Boolean(answer.problem));
  await loadDetail();
}

function connection(text, lost) {
  element("connection").textContent = text;
  element("connection").className = lost ? "lost" : "";
}

function showAll(report) {
  state.report = report;
  measure(report);
  showFacts(report);
  showProblems(report);
  showRates();
  showKeys(report);
  showControllers(report);
  showCaches(report);
  showShare(report);
  showMemory(report);
  loadDetail();
  connection(`updated ${new Date(report.time * 1000).toLocaleTimeString("en-GB")}`, false);
}

element("find").onsubmit = (event) => {
  event.preventDefault();
  if (element("find-key").value) select(element("find-controller").value, element("find-key").value.trim());
};
element("lists").onkeydown = (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const tabs = [...element("lists").children];
  const next = tabs[(tabs.indexOf(document.activeElement) + step + tabs.length) % tabs.length];
  next.focus();
  next.click();
};
document.onkeydown = (event) => { if (event.key === "Escape" && state.selected) select(null); };

window.onhashchange = () => {
  const chosen = /^#key=([^:]*):(.*)$/.exec(location.hash);
  state.selected = chosen && { controller: decodeURIComponent(chosen[1]), key: decodeURIComponent(chosen[2]) };
  loadDetail();
};
window.onhashchange();
const events = new EventSource("api/events");
events.onmessage = (event) => showAll(JSON.parse(event.data));
events.onerror = () => connection("connection lost; what is shown is old", true);
