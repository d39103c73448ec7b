// Shows the report of a manager. Data becomes text nodes and attributes only, never markup.

const SVG = "http://www.w3.org/2000/svg";
const KEPT = 90; // points of a plot: three minutes
const SILENCE = 30; // seconds without an event after which the connection is lost
const RETRY = 1; // seconds before the first new attempt; twice as many before each further one
const SLOWEST = { shown: 10, lost: 30 }; // seconds between two attempts at most: with a report, and without one
const LISTS = {
  failing: "Failing", parked: "Parked", waiting: "Waiting", running: "Running", oldest: "Longest waiting", hottest: "Hottest",
  slowest: "Slowest", settling: "Awaiting own writes",
};
const element = (id) => document.getElementById(id);
const state = {
  report: null, list: "", selected: null, opener: null, said: "", memory: null, points: [], before: null, wrong: null,
};

// Elements.

function h(name, attributes, ...children) {
  const made = name === "svg" || name === "path" ? document.createElementNS(SVG, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key.startsWith("on")) made[key] = value;
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children.flat(3)) {
    if (child !== null && child !== undefined && child !== false && child !== "") {
      made.append(...(child instanceof Node || name === "option" ? [child] : breakable(String(child))));
    }
  }
  return made;
}

// A text whose lines break between words, and in long words after separators. Only what has none breaks anywhere.
function breakable(text) {
  return text.split(/(\S{21,})/).flatMap((part, at) => (at % 2 ? part.split(/(?<=[/.:,;=@_?&#%-])/).flatMap((piece) => [
    piece.length > 30 ? Object.assign(document.createElement("span"), { className: "long", textContent: piece }) : piece,
    document.createElement("wbr"),
  ]) : part)).filter((part) => part !== "");
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
  return h("div", { class: "table" }, h("table", {},
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
const moment = (time) => new Date(time * 1000).toLocaleString("sv-SE");
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
  const started = `started ${moment(report.process.started)}, ${ago(report.process.started)}`;
  element("facts").textContent = [report.running ? "running" : "not running", role, `process ${report.process.pid}`, started,
    `aioinformer ${report.process.version}`, `Python ${report.process.python}`].filter(Boolean).join(" · ");
}

function showProblems(report) {
  const see = (problem) => h("a", {
    href: `${report.docs || "troubleshooting"}#${problem.see}`, rel: "noreferrer", target: "_blank",
  }, `Troubleshooting: ${problem.see}`);
  const one = (problem) => h("div", { class: `problem ${problem.severity}` },
    h("p", {}, h("span", { class: "severity" }, problem.severity), h("strong", {}, problem.text)),
    h("p", {}, marked(problem.remedy), " ", see(problem)),
    problem.key && h("p", {}, keyLink(problem, `Show ${problem.key}`)));
  element("standby").hidden = !report.standby;
  show(element("standby"), ...(report.standby ? breakable(report.standby).map(textNode) : []));
  announce(report);
  show(element("problem-list"), report.problems.length ? report.problems.map(one)
    : h("p", { class: "all-well" }, "Nothing that is known to be wrong."));
}

// What a screen reader says: only when problems come or go, and not when their numbers change.
function announce(report) {
  const subjects = JSON.stringify([report.standby && "standby", ...report.problems.map((each) => [each.see, each.controller])]);
  if (subjects === state.said) return;
  state.said = subjects;
  const first = report.problems.length ? `: ${report.problems[0].text}` : "";
  element("announcement").textContent = `${report.standby} ${count(report.problems.length, "problem")}${first}`.trim();
}

const textNode = (part) => (part instanceof Node ? part : document.createTextNode(part));
const addressOf = (key) => `#${new URLSearchParams({ controller: key.controller, key: key.key })}`;

function keyLink(key, label = key.key) {
  return h("a", { class: "mono", href: addressOf(key) }, label);
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

// A key that waits on purpose, or for a moment, has a reason and no error.
const isBad = (key) => key.state !== "waiting" && Boolean(key.parked || key.attempts || key.conflicts);

function showKeys(report) {
  const lists = Object.keys(LISTS);
  if (!report.keys[state.list]) state.list = lists.find((name) => (report.keys[name] || []).length) || lists[0];
  show(element("lists"), lists.map((name) => h("button", {
    type: "button", role: "tab", "data-id": name, "aria-selected": String(name === state.list), "aria-controls": "keys",
    onclick: () => { state.list = name; showKeys(state.report); },
  }, LISTS[name], h("span", { class: "count" }, number(report.key_counts[name] || 0)))));
  const why = (key) => [key.error && h("span", { class: isBad(key) ? "bad" : "" }, key.error),
    key.awaits && ["awaits ", code(key.awaits)], key.own_writes, !key.error && !key.awaits && key.causes.join(", ")]
    .filter(Boolean).flatMap((part, at) => (at ? [h("br"), part] : [part]));
  const when = (key) => (key.state === "delayed" && key.next_run ? `runs ${until(key.next_run)}`
    : key.state === "ready" ? `waits for ${seconds(key.waited)}` : key.since ? `since ${ago(key.since)}` : "");
  const shown = report.keys[state.list] || [];
  const all = report.key_counts[state.list] || 0;
  show(element("keys"), all > shown.length
    && h("p", { class: "muted" }, `${number(shown.length)} of ${number(all)} keys; enter others above.`), table([
    ["Key", (key) => keyLink(key)],
    ["Controller", (key) => key.controller],
    ["State", (key) => [key.state, when(key)].filter(Boolean).join(", ")],
    ["Attempts", (key) => number(key.attempts), true],
    ["Runs", (key) => (key.runs ? `${key.runs.count}${key.runs.more ? "+" : ""}` : ""), true],
    ["Longest", (key) => (key.runs ? seconds(key.runs.longest) : ""), true],
    ["Why", why],
  ], shown.map((key) => ({ ...key, id: `${key.controller} ${key.key}` })), "No keys."));
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
    ["Results", (each) => [Object.entries(each.results).map(([name, value]) => `${name} ${number(value)}`).join(", "),
      each.last_loop && h("div", { class: each.looping_keys ? "doubtful" : "muted" }, `triggered itself ${count(each.loops, "time")}, `
        + `${each.looping_keys ? `and goes on${each.braked_keys ? ", braked" : ""}` : `the last time ${ago(each.last_loop.time)}`}: `, keyLink({ controller: each.name, ...each.last_loop }))]],
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
    elector && facts(["Lease", elector.lease], ["Leader", elector.leader || "none"], ["This replica", elector.identity],
      ["It leads", elector.leads ? "yes" : "no, it is a standby"], ["Terms", elector.terms], ["Trouble", elector.trouble], ["Failure", elector.failure]),
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
    state.wrong && h("p", { class: "bad" }, state.wrong),
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
  const again = state.report.may_retry && key.parked
    && h("button", { type: "button", onclick: () => retry(key) }, "Run again");
  const ending = h("button", { type: "button", onclick: close }, "Close");
  if (key.problem) {
    show(element("detail-body"), h("p", { class: "bad" }, key.problem), ending);
    return;
  }
  const line = (text) => h("span", { class: text.startsWith("+ ") ? "plus" : text.startsWith("- ") ? "minus" : "" }, `${text}\n`);
  show(element("detail-body"), facts(
    ["State", `${key.state}${key.parked && key.state === "parked" ? ` (${key.parked})` : ""}${key.parked ? `, since ${ago(key.since)}` : ""}${key.exists ? "" : ", not in the cache"}`],
    ["Causes", key.causes.join(", ") + (key.causes_left_out ? ` and ${key.causes_left_out} more` : "")],
    ["Failed attempts", key.attempts ? number(key.attempts) : ""],
    [isBad(key) ? "Error" : "Reason", key.error && h("span", { class: isBad(key) ? "bad" : "" }, key.error)],
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
  h("p", { id: "retried", role: "status" }, key.retried || ""), h("p", {}, again, " ", ending));
}

// What the person does.

// The selected key is in the address, so that it can be sent to others, and Back leads to the one before.
function open(key) {
  history.pushState(null, "", addressOf(key));
  readAddress();
}

function close() {
  history.pushState(null, "", location.pathname + location.search);
  readAddress();
  if (state.opener && state.opener.isConnected) state.opener.focus();
}

async function readAddress() {
  const chosen = new URLSearchParams(location.hash.slice(1));
  const wanted = chosen.has("key") ? { controller: chosen.get("controller") || "", key: chosen.get("key") } : null;
  if (wanted && !state.selected) state.opener = document.activeElement;
  state.selected = wanted;
  await loadDetail();
}

async function fetched(address, options) {
  let answer;
  try {
    answer = await fetch(address, options);
  } catch (error) {
    return { problem: "The manager does not answer" };
  }
  return answer.ok && (answer.headers.get("Content-Type") || "").startsWith("application/json")
    ? answer.json() : { problem: await refusal(answer) };
}

// Why an answer is not what was asked for. It may be that of a proxy.
async function refusal(answer) {
  try {
    return (await answer.clone().json()).error.toString();
  } catch (error) {
    const kind = answer.headers.get("Content-Type") || "no type";
    return answer.ok || answer.redirected ? `The answer is ${kind}, as that of a login page: load this page again`
      : `${answer.status} ${answer.statusText}`.trim();
  }
}

async function loadDetail() {
  const wanted = state.selected;
  if (!wanted) return showDetail(null);
  const found = await fetched(`api/key?${new URLSearchParams({ controller: wanted.controller, key: wanted.key })}`);
  if (wanted !== state.selected || !state.report) return;
  showDetail({ ...found, ...wanted });
  if (!wanted.reached) {
    wanted.reached = true;
    element("detail").scrollIntoView({ block: "start" });
    element("detail").focus();
  }
}

async function loadMemory() {
  const found = await fetched("api/memory");
  state.wrong = found.problem || null;
  if (!found.problem) state.memory = found;
  showMemory(state.report);
}

async function retry(key) {
  const body = JSON.stringify({ controller: key.controller, key: key.key });
  const answer = await fetched("api/retry", { method: "POST", body, headers: { "Content-Type": "application/json" } });
  if (state.selected) state.selected.retried = answer.problem || "It runs again.";
  await loadDetail();
}

// Text that a screen reader says: it changes with the state of the connection only.
function connection(text, kind) {
  if (element("connection").textContent !== text) element("connection").textContent = text;
  element("connection").className = kind;
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
  element("updated").textContent = `updated ${new Date(report.time * 1000).toLocaleTimeString("en-GB")}`;
}

element("find").onsubmit = (event) => {
  event.preventDefault();
  const key = element("find-key").value.trim();
  if (key) open({ controller: element("find-controller").value, key });
};
element("lists").onkeydown = (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const tabs = [...element("lists").children];
  const next = tabs[(tabs.indexOf(document.activeElement) + step + tabs.length) % tabs.length];
  next.focus();
  next.click();
};
document.onkeydown = (event) => { if (event.key === "Escape" && state.selected) close(); };

// Events, and what is shown when they end.

async function* events() {
  const stop = new AbortController();
  let timer = 0;
  const wait = () => {
    clearTimeout(timer);
    timer = setTimeout(() => stop.abort(), 1000 * SILENCE);
  };
  try {
    wait();
    const answer = await fetch("api/events", { signal: stop.signal });
    if (!answer.ok || !(answer.headers.get("Content-Type") || "").startsWith("text/event-stream")) return refusal(answer);
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return "The manager has ended the events";
      wait();
      const received = (text + value).split("\n\n");
      text = received.pop();
      for (const event of received) if (event.startsWith("data: ")) yield JSON.parse(event.slice(6));
    }
  } catch (error) {
    return stop.signal.aborted ? `No event for ${SILENCE} s` : "The manager does not answer";
  } finally {
    clearTimeout(timer);
    stop.abort();
  }
}

// Events may be refused where a report is not: there are enough readers, or a proxy passes no streams.
async function follow() {
  for (let delay = RETRY; ;) {
    const stream = events();
    const began = Date.now();
    let next = await stream.next();
    for (; !next.done; next = await stream.next()) {
      connection("", "");
      showAll(next.value);
    }
    if (Date.now() - began > 10_000) delay = RETRY;
    const report = await fetched("api/report");
    const shown = !report.problem;
    if (shown) showAll(report);
    const reason = shown ? next.value : report.problem;
    delay = Math.min(delay, shown ? SLOWEST.shown : SLOWEST.lost);
    const what = shown ? "reading the report" : "what is shown is old; trying";
    connection(`${reason.replace(/\.$/, "")}; ${what} again in ${delay} s`, shown ? "polled" : "lost");
    await new Promise((resolve) => { setTimeout(resolve, 1000 * delay); });
    delay *= 2;
  }
}

window.onhashchange = readAddress; // after a click on a key, and Back
readAddress();
follow();
