// A stream: its targets with forecasts, its anomaly score, alarms and keys, at any zoom.
import { Chart, calm, colour } from "./chart.js";

const $ = (id) => document.getElementById(id);
const [X, , ANOMALY, , DRIFT, AGAINST, TARGETS] = [0, 1, 2, 3, 4, 5, 6];
const EACH = 4;
const SPEEDS = ["1x", "10x", "60x", "600x", "3600x", "1/s", "5/s", "25/s", "100/s", "1000/s", "max"];
const SYNC = "stream";

let say = () => {};
let hello = null;
let view = { key: null, last: 600, start: null, end: null };
let seen = null; // the last window, decoded
let alarms = [];
let chosen = null;
let charts = {};
let panels = [];
let drawn = 0;
let pending = 0;
let timed = false;

export function begin(message, sender) {
  const again = hello !== null;
  [hello, say] = [message, sender];
  $("stream-title").textContent = message.source === "-" ? "Standard input" : message.source.split("/").at(-1);
  $("replay").hidden = !message.replay;
  $("keys-box").hidden = !message.keyed;
  if (message.keyed) $("keys-title").textContent = `Streams by ${message.keyed}`;
  if (!again) {
    charts.anomaly = new Chart($("anomaly"), 150, anomalyOptions);
    charts.copying = new Chart($("copying"), 120, copyingOptions);
    makeControls();
  }
  look();
}

export function receive(message, payload) {
  if (message.type !== "window") return;
  seen = decode(message, payload);
  if (message.alarms) {
    alarms = message.alarms;
    listAlarms();
  }
  if (message.keys) listKeys(message);
  showStatus(message);
  clearTimeout(pending);
  const wait = calm.matches ? Math.max(0, 1000 - (performance.now() - drawn)) : 0;
  pending = setTimeout(draw, wait);
}

function look(change = {}) {
  view = { ...view, ...change };
  const points = Math.min(4000, Math.max(100, Math.round($("anomaly").clientWidth)));
  say("view", { ...view, points });
  $("follow").setAttribute("aria-pressed", view.last !== null);
}

// A window comes as columns of numbers, then as a forecast of each target; NaN is what there is not.
function decode(message, { buffer, offset }) {
  const { rows, columns, fan, targets } = message;
  const numbers = new Float64Array(buffer, offset);
  const cut = (first, length) => Array.from(numbers.subarray(first, first + length), (value) => (Number.isNaN(value) ? null : value));
  const series = Array.from({ length: columns }, (_, column) => cut(column * rows, rows));
  const ahead = targets.map((_, index) => [0, 1, 2].map((part) => cut(columns * rows + (index * 3 + part) * fan, fan)));
  return { ...message, series, ahead };
}

// Charts

function draw() {
  drawn = performance.now();
  if (!seen || !seen.rows) return;
  if (timed !== seen.timed) {
    timed = seen.timed;
    for (const chart of [charts.anomaly, charts.copying, ...panels.map((panel) => panel.chart)]) chart.draw();
  }
  makePanels();
  const now = seen.span[1];
  const x = seen.series[X];
  const ahead = x.at(-1) >= now ? seen.fan : 0; // the forecast is in sight
  const later = Array.from({ length: ahead }, (_, step) => now + (step + 1) * seen.step);
  const end = view.last !== null ? (later.at(-1) ?? now) : view.end ?? now;
  const range = { min: view.last !== null ? x[0] : view.start ?? x[0], max: Math.max(end, x[0] + seen.step) };
  const none = (count) => new Array(count).fill(null);
  const xs = [...x, ...later];
  panels.forEach(({ chart }, index) => {
    const [observed, predicted, lower, upper] = [0, 1, 2, 3].map((part) => seen.series[TARGETS + EACH * index + part]);
    const [forecast, low, high] = ahead ? seen.ahead[index] : [[], [], []];
    const edge = ahead ? [...none(x.length - 1), observed.at(-1)] : none(x.length);
    chart.set([xs, [...lower, ...none(ahead)], [...upper, ...none(ahead)], [...edge, ...low], [...edge, ...high],
      [...predicted, ...none(ahead)], [...observed, ...none(ahead)], [...edge, ...forecast]]);
    chart.plot.setScale("x", range);
  });
  const shares = seen.series[AGAINST].map((value) => (value === null ? null : 100 * value));
  charts.anomaly.set([xs, [...seen.series[ANOMALY], ...none(ahead)]]);
  charts.copying.set([xs, [...shares, ...none(ahead)]]);
  charts.anomaly.plot.setScale("x", range);
  charts.copying.plot.setScale("x", range);
  const zoomed = seen.bucket > 1 ? ` Each point stands for ${seen.bucket} rows, with their lowest and highest values.` : "";
  $("window-note").textContent = `${seen.seen.toLocaleString("en")} rows in sight, ${Math.min(seen.observations, hello.kept).toLocaleString("en")} kept.${zoomed}`;
  const [start, stop] = [range.min, Math.min(range.max, now)];
  const query = new URLSearchParams({ start, end: stop, ...(seen.key === null ? {} : { key: seen.key }) });
  $("download").href = `download?${query}`;
}

function makePanels() {
  if (panels.map((panel) => panel.name).join("\n") === seen.targets.join("\n")) return;
  panels.forEach((panel) => panel.chart.remove());
  panels = [];
  $("targets").replaceChildren();
  for (const name of seen.targets) {
    const figure = document.createElement("figure");
    figure.className = "chart target";
    const caption = document.createElement("figcaption");
    const title = Object.assign(document.createElement("h2"), { textContent: name });
    const share = Math.round(100 * hello.level);
    caption.append(title, hello.horizon ? ` with what was expected, and the next ${hello.horizon} rows: ${share} % of values should lie within the shades.` : " with what was expected. For a forecast ahead of now, start with --horizon 24.");
    const place = document.createElement("div");
    figure.append(caption, place);
    $("targets").append(figure);
    panels.push({ name, chart: new Chart(place, seen.targets.length > 3 ? 150 : 200, targetOptions) });
  }
}

function number(plot, value) {
  return value === null || value === undefined ? "–" : Number(value.toPrecision(5)).toString();
}

function common(extra) {
  return {
    cursor: { sync: { key: SYNC, setSeries: false }, drag: { x: true, y: false, setScale: false }, bind: { dblclick: () => () => { look({ last: 600, start: null, end: null }); return null; } } },
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
    hooks: { setSelect: [select], draw: [marks], ready: [interact] },
    ...extra,
    scales: { x: { time: timed, auto: false, range: (plot, min, max) => [min, max] }, ...extra.scales },
  };
}

const when = { label: "at", value: (plot, value) => (value === null ? "–" : seen?.timed ? new Date(value * 1000).toISOString().replace("T", " ").slice(0, 19) : value.toLocaleString("en")) };

function targetOptions(tint) {
  const silent = { width: 0, points: { show: false }, value: number };
  return common({
    series: [
      when,
      { ...silent, label: "low", stroke: tint("band") },
      { ...silent, label: "high", stroke: tint("band") },
      { ...silent, label: "ahead, low", stroke: tint("fan") },
      { ...silent, label: "ahead, high", stroke: tint("fan") },
      { label: "expected", stroke: tint("mine"), width: 1.2, points: { show: false }, value: number },
      { label: "observed", stroke: tint("ink"), width: 1.3, points: { show: false }, value: number },
      { label: "forecast", stroke: tint("ahead"), width: 2, dash: [4, 3], points: { show: false }, value: number },
    ],
    bands: [{ series: [2, 1], fill: tint("band") }, { series: [4, 3], fill: tint("fan") }],
  });
}

function anomalyOptions(tint) {
  return common({
    series: [when, { label: "score", stroke: tint("ink"), fill: tint("band"), width: 1.2, points: { show: false }, value: number }],
    scales: { y: { range: [0, 1.15] } },
    axes: [{}, { values: (plot, values) => values.map((value) => (value > 1 ? "" : value)) }],
  });
}

function copyingOptions(tint) {
  return common({
    series: [when, { label: "of copying", stroke: tint("mine"), width: 1.5, points: { show: false }, value: (plot, value) => (value === null ? "–" : `${value.toFixed(0)} %`) }],
    scales: { y: { range: (plot, low, high) => [0, Math.max(110, (high ?? 100) * 1.05)] } },
    axes: [{}, { values: (plot, values) => values.map((value) => `${value} %`) }],
  });
}

// Now, drifts and alarms across a chart.
function marks(plot) {
  if (!seen?.rows) return;
  const { ctx, bbox } = plot;
  const at = (x) => plot.valToPos(x, "x", true);
  const inside = (x) => x >= plot.scales.x.min && x <= plot.scales.x.max;
  const line = (x, tint, dash) => {
    ctx.strokeStyle = tint;
    ctx.setLineDash(dash);
    ctx.beginPath();
    ctx.moveTo(at(x), bbox.top);
    ctx.lineTo(at(x), bbox.top + bbox.height);
    ctx.stroke();
  };
  ctx.save();
  ctx.lineWidth = devicePixelRatio;
  if (inside(seen.span[1])) line(seen.span[1], colour("soft"), [2, 3]);
  seen.series[DRIFT].forEach((drift, index) => { if (drift && inside(seen.series[X][index])) line(seen.series[X][index], colour("drift"), [6, 4]); });
  const top = plot === charts.anomaly?.plot;
  for (const alarm of alarms) {
    if ((alarm.key ?? null) !== seen.key || !inside(alarm.x)) continue;
    const tint = colour(alarm.acknowledged ? "soft" : "alarm");
    if (alarm.row === chosen) line(alarm.x, tint, []);
    if (top) triangle(ctx, at(alarm.x), bbox.top + 2 * devicePixelRatio, tint, !alarm.acknowledged);
  }
  ctx.restore();
}

function triangle(ctx, x, y, tint, filled) {
  const size = 5 * devicePixelRatio;
  ctx.setLineDash([]);
  ctx.beginPath();
  ctx.moveTo(x - size, y);
  ctx.lineTo(x + size, y);
  ctx.lineTo(x, y + 1.7 * size);
  ctx.closePath();
  ctx.fillStyle = ctx.strokeStyle = tint;
  if (filled) ctx.fill();
  ctx.stroke();
}

// Zoom and pan

function span() {
  const plot = charts.anomaly.plot;
  return [plot.scales.x.min, plot.scales.x.max];
}

function zoomTo(start, end) {
  const least = 4 * (seen?.step || 1);
  if (end - start >= least) look({ last: null, start, end });
}

function zoom(factor, share = 1) {
  if (!seen?.rows) return;
  if (view.last !== null) {
    look({ last: Math.round(Math.min(hello.kept, Math.max(20, view.last * factor))) });
    return;
  }
  const [start, end] = span();
  const place = start + (end - start) * share;
  zoomTo(place - (place - start) * factor, place + (end - place) * factor);
}

function pan(share) {
  if (!seen?.rows) return;
  const [start, end] = span();
  const shift = (end - start) * share;
  if (shift > 0 && end + shift > seen.span[1] + seen.step * (seen.fan + 1)) return look({ last: view.last ?? Math.max(20, seen.seen), start: null, end: null });
  return look({ last: null, start: Math.max(start + shift, seen.span[0] - (end - start) / 2), end: end + shift });
}

function select(plot) {
  const { left, width } = plot.select;
  if (width > 5) zoomTo(plot.posToVal(left, "x"), plot.posToVal(left + width, "x"));
  plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
}

function interact(plot) {
  const over = plot.over;
  over.addEventListener("wheel", (event) => {
    event.preventDefault();
    const share = event.offsetX / over.clientWidth;
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan(Math.sign(event.deltaX || event.deltaY) * 0.15);
    else zoom(event.deltaY > 0 ? 1.25 : 0.8, share);
  }, { passive: false });
  let from = null;
  over.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "mouse" || event.shiftKey) {
      from = { x: event.clientX, span: span() };
      over.setPointerCapture(event.pointerId);
    }
  });
  over.addEventListener("mousedown", (event) => { if (event.shiftKey) event.stopImmediatePropagation(); }, { capture: true });
  over.addEventListener("pointermove", (event) => {
    if (!from) return;
    const shift = ((from.x - event.clientX) / over.clientWidth) * (from.span[1] - from.span[0]);
    if (Math.abs(from.x - event.clientX) > 4) zoomTo(from.span[0] + shift, from.span[1] + shift);
  });
  for (const end of ["pointerup", "pointercancel"]) over.addEventListener(end, () => { from = null; });
}

// Words and lists

function showStatus(message) {
  const count = (value) => (value ?? 0).toLocaleString("en");
  $("rows").textContent = count(message.observations);
  $("row-rate").textContent = message.ended || message.paused || message.rate === null ? "–" : count(Math.round(message.rate * 10) / 10);
  $("against").textContent = message.against_copy === null ? "–" : `${Math.round(100 * message.against_copy)} %`;
  $("open").textContent = count(message.open_alarms);
  $("open").parentElement.classList.toggle("trouble", message.open_alarms > 0);
  $("drifts").textContent = hello.drift ? count(message.drifts) : "off";
  $("acknowledge-all").disabled = message.open_alarms === 0;
  if (hello.replay) {
    $("stream-pause").setAttribute("aria-pressed", message.paused);
    if (document.activeElement !== $("pace")) choosePace(message.speed);
  }
  const doing = message.problem ? `Stopped: ${message.problem}.`
    : message.ended ? "The feed has ended; you can still look around."
    : message.paused ? "Paused."
    : message.observations === 0 ? "Waiting for the first row …"
    : "Each row is predicted before it comes, then learnt from.";
  const key = message.key === null ? "" : ` You see ${message.key}.`;
  const alarm = `An alarm marks what is more unusual than all but about ${Number((100 * hello.alarm_rate).toPrecision(2))} % of ordinary rows.`;
  const text = `${doing}${key} ${alarm}`;
  if ($("stream-story").textContent !== text) $("stream-story").textContent = text;
}

function listAlarms() {
  $("no-alarms").hidden = alarms.length > 0;
  const focused = document.activeElement?.dataset?.row;
  $("alarms").replaceChildren(...alarms.slice(0, 100).map((alarm) => {
    const item = document.createElement("li");
    item.className = alarm.acknowledged ? "done" : "";
    const what = Object.assign(document.createElement("div"), { className: "what" });
    what.textContent = [alarm.key, alarm.cause].filter(Boolean).join(": ") || "alarm";
    what.append(Object.assign(document.createElement("small"), { textContent: `${alarm.when ?? `row ${alarm.row.toLocaleString("en")}`}, severity ${alarm.severity.toPrecision(2)}` }));
    const jump = Object.assign(document.createElement("button"), { type: "button", textContent: "Show", onclick: () => jumpTo(alarm) });
    jump.dataset.row = `${alarm.row}`;
    jump.setAttribute("aria-label", `Show the alarm at ${alarm.when ?? `row ${alarm.row}`}`);
    item.append(what, jump);
    if (!alarm.acknowledged) {
      const ok = Object.assign(document.createElement("button"), { type: "button", textContent: "OK", onclick: () => say("acknowledge", alarm.row) });
      ok.setAttribute("aria-label", `Acknowledge the alarm at ${alarm.when ?? `row ${alarm.row}`}`);
      item.append(ok);
    }
    return item;
  }));
  if (focused) $("alarms").querySelector(`[data-row="${focused}"]`)?.focus();
}

function jumpTo(alarm) {
  chosen = alarm.row;
  const half = 60 * (seen?.step || 1);
  look({ key: alarm.key, last: null, start: alarm.x - half, end: alarm.x + half });
  $("targets").scrollIntoView({ behavior: calm.matches ? "auto" : "smooth", block: "nearest" });
}

function listKeys(message) {
  const focused = document.activeElement?.dataset?.key;
  $("keys").replaceChildren(...message.keys.map(({ key, alarms: open, highest, rows }) => {
    const item = document.createElement("li");
    const button = Object.assign(document.createElement("button"), { type: "button", className: "key", textContent: key });
    button.dataset.key = key;
    button.setAttribute("aria-pressed", key === message.key);
    button.append(Object.assign(document.createElement("small"), { textContent: ` ${rows.toLocaleString("en")} rows, score ${(highest ?? 0).toFixed(2)}` }));
    button.onclick = () => look({ key, last: view.last ?? 600, start: null, end: null });
    item.append(button);
    if (open) item.append(Object.assign(document.createElement("span"), { className: "badge", textContent: open, title: "open alarms" }));
    return item;
  }));
  if (focused !== undefined) [...$("keys").querySelectorAll("button")].find((each) => each.dataset.key === focused)?.focus();
}

function choosePace(speed) {
  const known = [...$("pace").options].map((option) => option.value);
  if (!known.includes(speed)) $("pace").add(new Option(speed, speed));
  $("pace").value = speed;
}

function makeControls() {
  const words = (speed) => (speed === "max" ? "as fast as it goes" : speed.endsWith("x") ? `${speed.slice(0, -1)} × as it came` : `${speed.slice(0, -2)} rows a second`);
  $("pace").replaceChildren(...SPEEDS.map((speed) => new Option(words(speed), speed)));
  $("pace").onchange = () => say("speed", $("pace").value);
  $("stream-pause").onclick = () => say("pause", $("stream-pause").getAttribute("aria-pressed") !== "true");
  $("follow").onclick = () => look({ last: 600, start: null, end: null });
  $("all").onclick = () => look({ last: hello.kept, start: null, end: null });
  $("in").onclick = () => zoom(0.5, 0.5);
  $("out").onclick = () => zoom(2, 0.5);
  $("earlier").onclick = () => pan(-0.4);
  $("later").onclick = () => pan(0.4);
  $("acknowledge-all").onclick = () => say("acknowledge_all");
  const keys = { f: "follow", "+": "in", "=": "in", "-": "out", ArrowLeft: "earlier", ArrowRight: "later", p: "stream-pause" };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select")) return;
    const id = keys[event.key];
    if (id && !$(id).closest("[hidden]")) { event.preventDefault(); $(id).click(); }
  });
  new ResizeObserver(() => look()).observe($("anomaly"));
}
