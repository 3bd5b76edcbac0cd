// A stream: its targets with forecasts, its anomaly score, alarms and keys, at any zoom.
import { Chart, calm, colour, isolated, number } from "./chart.js";
import { listen } from "./gestures.js";
import { at, listAlarms, listKeys } from "./lists.js";

const $ = (id) => document.getElementById(id);
const [X, , ANOMALY, , DRIFT, AGAINST, TARGETS] = [0, 1, 2, 3, 4, 5, 6];
const EACH = 6; // observed, expected, lower, upper, and the same bounds for the middle half
const SPEEDS = ["1x", "10x", "60x", "600x", "3600x", "1/s", "5/s", "25/s", "100/s", "1000/s", "max"];
const FEW_KEYS = 8; // a list of at most this many keys needs no search field
const SYNC = "stream";
const RATES = [[1, "second", 1], [1 / 60, "minute", 60], [0, "hour", 3600]];
const ANSWERED = 400; // milliseconds within which the server answers a button press

let say = () => {};
let hello = null;
let view = { key: null, find: null, last: null, start: null, end: null };
let seen = null; // the last window, decoded
let alarms = [];
let chosen = null;
let charts = {};
let panels = [];
let drawn = 0;
let pending = 0;
let timed = false;
let announced = null; // the last alarm that was announced or was there at the start, and when
let since = null; // when the last row arrived, or when the next one is due
let held = 0; // until when the pause button ignores the server's state, which may be older than the last press

export function begin(message, sender) {
  const again = hello !== null;
  [hello, say] = [message, sender];
  $("stream-title").textContent = message.source === "-" ? "Standard input" : message.source.split("/").at(-1);
  $("replay").hidden = !message.replay;
  $("keys-box").hidden = !message.keyed;
  $("drifts").parentElement.hidden = $("drift-key").hidden = !message.drift;
  if (message.keyed) {
    $("keys-title").textContent = `Streams by ${message.keyed}`;
    $("against-title").textContent = "Error against copying, all keys";
  }
  if (!again) {
    view.last = usual();
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
    showAlarms();
  }
  if (message.keys) showKeys(message);
  showStatus(message);
  clearTimeout(pending);
  const wait = calm.matches ? Math.max(0, 1000 - (performance.now() - drawn)) : 0;
  pending = setTimeout(draw, wait);
}

// Rows shown while following: enough to see the past, few enough to see the forecast.
const usual = () => (hello.horizon ? Math.max(120, 8 * hello.horizon) : 600);
const follow = () => look({ last: usual(), start: null, end: null });

function look(change = {}) {
  view = { ...view, ...change };
  const points = Math.min(4000, Math.max(100, Math.round($("anomaly").clientWidth)));
  say("view", { ...view, points });
  $("follow").setAttribute("aria-pressed", view.last !== null);
}

// A window arrives as columns of numbers, then a forecast of each target; NaN means missing.
function decode(message, { buffer, offset }) {
  const { rows, columns, fan, targets } = message;
  const numbers = new Float64Array(buffer, offset);
  const cut = (first, length) => Array.from(numbers.subarray(first, first + length), (value) => (Number.isNaN(value) ? null : value));
  const series = Array.from({ length: columns }, (_, column) => cut(column * rows, rows));
  const ahead = targets.map((_, index) => [0, 1, 2, 3, 4].map((part) => cut(columns * rows + (index * 5 + part) * fan, fan)));
  return { ...message, series, ahead };
}

// Charts

function draw() {
  drawn = performance.now();
  if (!seen) return;
  if (!seen.rows) {
    $("window-note").textContent = seen.observations ? `There are no rows here${seen.kept ? "; rows from that time are no longer stored" : ""}. “Follow now” returns to the newest.` : "";
    return;
  }
  if (timed !== seen.timed) {
    timed = seen.timed;
    for (const chart of [charts.anomaly, charts.copying, ...panels.map((panel) => panel.chart)]) chart.draw();
  }
  makePanels();
  const now = seen.span[1];
  const x = seen.series[X];
  const ahead = x.at(-1) >= now ? seen.fan : 0; // whether the forecast is in view
  const later = Array.from({ length: ahead }, (_, step) => now + (step + 1) * seen.step);
  const end = view.last !== null ? (later.at(-1) ?? now) : view.end ?? now;
  const range = { min: view.last !== null ? x[0] : view.start ?? x[0], max: Math.max(end, x[0] + seen.step) };
  const none = (count) => new Array(count).fill(null);
  const xs = [...x, ...later];
  const past = (series) => [...series, ...none(ahead)];
  panels.forEach(({ chart }, index) => {
    const [observed, predicted, ...bounds] = Array.from({ length: EACH }, (_, part) => seen.series[TARGETS + EACH * index + part]);
    const [forecast, ...fan] = ahead ? seen.ahead[index] : new Array(EACH - 1).fill([]);
    const edge = ahead ? [...none(x.length - 1), observed.at(-1)] : none(x.length);
    const future = (series) => [...edge, ...series];
    chart.set([xs, ...bounds.map(past), ...fan.map(future), past(predicted), past(observed), future(forecast)], x.length - 1);
    chart.plot.setScale("x", range);
  });
  const shares = seen.series[AGAINST].map((value) => (value === null ? null : 100 * value));
  charts.anomaly.set([xs, past(seen.series[ANOMALY])], x.length - 1);
  charts.copying.set([xs, past(shares)], x.length - 1);
  charts.anomaly.plot.setScale("x", range);
  charts.copying.plot.setScale("x", range);
  const zoomed = seen.bucket > 1 ? ` Each point represents ${seen.bucket} rows by their lowest and highest values.` : "";
  $("window-note").textContent = `${seen.seen.toLocaleString("en")} rows in view, ${seen.kept.toLocaleString("en")} stored.${zoomed}`;
  $("not-drawn").textContent = seen.not_drawn.length ? `Also learnt but not shown: ${seen.not_drawn.join(", ")}.` : "";
  const [start, stop] = [range.min, Math.min(range.max, now)];
  const query = new URLSearchParams({ start, end: stop, ...(seen.key === null ? {} : { key: seen.key }) });
  $("download").href = `download?${query}`;
}

function makePanels() {
  if (panels.map((panel) => panel.name).join("\n") === seen.targets.join("\n")) return;
  panels.forEach((panel) => panel.chart.remove());
  panels = [];
  $("targets").replaceChildren();
  for (const [place, name] of seen.targets.entries()) {
    const figure = document.createElement("figure");
    figure.className = "chart target";
    const caption = document.createElement("figcaption");
    const title = Object.assign(document.createElement("h2"), { textContent: name });
    const ahead = hello.horizon ? `, and the next ${hello.horizon} rows. ${shades()}` : ". To see a forecast, start the command with --horizon 24.";
    caption.append(title, place ? "" : ` with its prediction${ahead}`);
    const below = document.createElement("div");
    figure.append(caption, below);
    $("targets").append(figure);
    panels.push({ name, chart: new Chart(below, seen.targets.length > 3 ? 150 : 200, targetOptions) });
  }
}

function shades() {
  const share = Number((100 * hello.level).toPrecision(3));
  return hello.middle ? `${100 * hello.middle} % of the values should lie within the dark band, and ${share} % within the light one.` : `${share} % of the values should lie within the band.`;
}

// Draw a nearly constant line flat instead of zooming into its last digits.
function valueRange(plot, low, high) {
  if (low === null) return [0, 1];
  const least = 1e-4 * Math.max(Math.abs(low), Math.abs(high)) || 1;
  const middle = (low + high) / 2;
  return high - low < least ? [middle - least / 2, middle + least / 2] : uPlot.rangeNum(low, high, 0.1, true);
}

function common(extra) {
  return {
    cursor: { sync: { key: SYNC, setSeries: false }, drag: { x: true, y: false, setScale: false }, bind: { dblclick: () => () => { follow(); return null; } } },
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
    hooks: { setSelect: [select], draw: [marks], ready: [(plot) => listen(plot, { span, zoomTo, zoom, pan, chooseAt })] },
    ...extra,
    scales: { x: { time: timed, auto: false, range: (plot, min, max) => [min, max] }, ...extra.scales },
  };
}

const when = { label: "at", value: (plot, value) => (value === null ? "–" : seen?.timed ? new Date(value * 1000).toISOString().replace("T", " ").slice(0, seen.step % 1 ? 23 : 19) : value.toLocaleString("en")) };

function targetOptions(tint) {
  const silent = { width: 0, points: { show: false }, value: number };
  const pair = (label) => [{ ...silent, label: `${label}, low` }, { ...silent, label: `${label}, high` }];
  const inner = hello.middle !== null;
  const shade = (name, first, deep) => [{ series: [first + 1, first], fill: tint(name) }, ...(deep ? [{ series: [first + 3, first + 2], fill: tint(name) }] : [])];
  const dots = { show: true, size: 4, filter: isolated };
  return common({
    scales: { y: { range: valueRange } },
    series: [
      when, ...pair("usual"), ...pair("middle"), ...pair("ahead"), ...pair("ahead, middle"),
      { label: "expected", stroke: tint("mine"), width: 1.2, points: { show: false }, value: number },
      { label: "observed", stroke: tint("ink"), width: 1.3, points: { ...dots, fill: tint("ink") }, value: number },
      { label: "forecast", stroke: tint("ahead"), width: 2, dash: [4, 3], points: { ...dots, fill: tint("ahead") }, value: number, later: 1 },
    ],
    bands: [...shade("band", 1, inner), ...shade("fan", 5, inner)],
  });
}

function anomalyOptions(tint) {
  return common({
    series: [when, { label: "score", stroke: tint("ink"), fill: tint("band"), width: 1.2, points: { show: true, size: 4, fill: tint("ink"), filter: isolated }, value: (plot, value) => (value === null ? "–" : value.toFixed(2)) }],
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

// Draw the present, drifts and alarms across a chart.
function marks(plot) {
  if (!seen?.rows) return;
  const { ctx, bbox } = plot;
  const place = (x) => plot.valToPos(x, "x", true);
  const inside = (x) => x >= plot.scales.x.min && x <= plot.scales.x.max;
  const line = (x, tint, dash) => {
    ctx.strokeStyle = tint;
    ctx.setLineDash(dash);
    ctx.beginPath();
    ctx.moveTo(place(x), bbox.top);
    ctx.lineTo(place(x), bbox.top + bbox.height);
    ctx.stroke();
  };
  ctx.save();
  ctx.lineWidth = devicePixelRatio;
  if (inside(seen.span[1])) line(seen.span[1], colour("soft"), [2, 3]);
  const each = seen.bucket > 1 ? 2 : 1; // in thinned-out data, two points represent the same rows
  seen.series[DRIFT].forEach((drift, index) => { if (drift && index % each === 0 && inside(seen.series[X][index])) line(seen.series[X][index], colour("drift"), [6, 4]); });
  const top = plot === charts.anomaly?.plot;
  for (const alarm of alarms.filter(isHere)) {
    if (!inside(alarm.x)) continue;
    const tint = colour(alarm.acknowledged ? "soft" : "alarm");
    if (alarm.row === chosen) line(alarm.x, tint, []);
    if (top) triangle(ctx, place(alarm.x), bbox.top + 2 * devicePixelRatio, tint, !alarm.acknowledged);
  }
  ctx.restore();
}

const isHere = (alarm) => (alarm.key ?? null) === seen.key;

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

// The span that is visible or was just requested, so that two quick presses move twice, even if the rows arrive late.
function span() {
  if (view.last === null) return [view.start, view.end];
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

// The marked alarm that is closest to a position on a chart.
function chooseAt(plot, offset) {
  const away = (alarm) => Math.abs(plot.valToPos(alarm.x, "x") - offset);
  const [nearest] = alarms.filter(isHere).sort((a, b) => away(a) - away(b));
  if (nearest && away(nearest) <= 12) choose(nearest);
}

// Words and lists

function showStatus(message) {
  const count = (value) => (value ?? 0).toLocaleString("en");
  $("rows").textContent = count(message.observations);
  showRate(message.ended || message.paused ? null : message.rate);
  $("against").textContent = message.against_copy === null ? "–" : `${Math.round(100 * message.against_copy)} %`;
  $("open").textContent = count(message.open_alarms);
  $("open").parentElement.classList.toggle("trouble", message.open_alarms > 0);
  $("drifts").textContent = count(message.drifts);
  $("acknowledge-all").disabled = message.open_alarms === 0;
  if (hello.replay) {
    if (performance.now() >= held) $("stream-pause").setAttribute("aria-pressed", message.paused);
    $("stream-pause").disabled = $("pace").disabled = message.ended;
    for (const option of $("pace").options) option.hidden = option.disabled = /\dx$/.test(option.value) && message.observations > 0 && !message.timed;
    if (document.activeElement !== $("pace")) choosePace(message.speed);
  }
  const doing = message.problem ? `Stopped: ${message.problem}.`
    : message.ended ? "The feed has ended, but you can still explore it."
    : message.paused ? "Paused."
    : message.observations === 0 ? "Waiting for the first row …"
    : message.silent !== null ? `No row has arrived since ${clock(-message.silent)}.`
    : message.wait !== null ? `At this speed, the next row is due at ${clock(message.wait)}.`
    : "Each row is predicted before it arrives, and then learnt from.";
  if (message.silent === null && message.wait === null) since = null;
  const key = message.key === null ? "" : ` Showing ${message.key}${view.key === null ? ", the key with the most severe alarms" : ""}.`;
  const rate = Math.round(1 / hello.alarm_rate).toLocaleString("en");
  const text = `${doing}${key} `;
  if ($("stream-story").firstChild?.data !== text) {
    const option = Object.assign(document.createElement("code"), { textContent: "--alarm-rate" });
    const alarmed = [`Alarms mark the most unusual rows, about one in ${rate}, even in a calm feed; the option `, option, " sets this rate."];
    $("stream-story").replaceChildren(text, ...(message.problem ? [] : alarmed));
  }
  $("stream-story").classList.toggle("problem", message.problem !== null);
}

// Rows a second, a minute or an hour, whichever is easiest to read.
function showRate(rate) {
  const [, unit, seconds] = RATES.find(([least]) => (rate ?? 1) >= 0.95 * least);
  $("rate-title").textContent = `Rows ${unit === "hour" ? "an" : "a"} ${unit}`;
  $("row-rate").textContent = rate === null ? "–" : (Math.round(rate * seconds * 10) / 10).toLocaleString("en");
}

// The time of day this many seconds from now. It does not change with small variations of the same moment.
function clock(seconds) {
  const moment = Date.now() + 1000 * seconds;
  if (since === null || Math.abs(moment - since) > 2500) since = moment;
  return new Date(since).toLocaleTimeString("en-GB");
}

// For screen readers: new alarms, at most every ten seconds.
function tellAlarms() {
  announced ??= { row: alarms[0]?.row ?? -1, at: -Infinity };
  const fresh = alarms.filter((alarm) => alarm.row > announced.row && !alarm.acknowledged);
  if (!fresh.length || performance.now() - announced.at < 10000) return;
  announced = { row: alarms[0].row, at: performance.now() };
  $("spoken").textContent = `${fresh.length === 1 ? "New alarm" : `${fresh.length} new alarms, the last`} at ${at(fresh[0])}: ${fresh[0].why}.`;
}

function showAlarms() {
  tellAlarms();
  const open = alarms.filter((alarm) => !alarm.acknowledged).length;
  document.title = `${open ? `(${open}) ` : ""}${$("stream-title").textContent} · ptncn live`;
  $("no-alarms").hidden = alarms.length > 0;
  const listed = listAlarms($("alarms"), alarms, chosen, { show: jumpTo, acknowledge: (alarm) => say("acknowledge", alarm.row) });
  $("older-alarms").textContent = alarms.length > listed ? `${alarms.length - listed} older alarms are not listed.` : "";
}

// Show the cause of an alarm, and mark it in the charts and the list.
function choose(alarm) {
  chosen = alarm.row;
  showAlarms();
  $("chosen").textContent = `Alarm at ${at(alarm)}${alarm.cause ? ` in ${alarm.cause}` : ""}: ${alarm.why}.`;
  $("chosen").classList.add("found");
  draw();
}

function jumpTo(alarm) {
  choose(alarm);
  const half = 60 * (seen?.step || 1);
  look({ key: alarm.key, last: null, start: alarm.x - half, end: alarm.x + half });
  $("chosen").scrollIntoView({ behavior: calm.matches ? "auto" : "smooth", block: "nearest" });
}

function choosePace(speed) {
  const known = [...$("pace").options].map((option) => option.value);
  if (!known.includes(speed)) $("pace").add(new Option(paceInWords(speed), speed));
  $("pace").value = speed;
}

function paceInWords(speed) {
  const count = Number.parseFloat(speed).toLocaleString("en");
  return speed === "max" ? "as fast as possible" : speed === "1x" ? "as recorded" : speed.endsWith("x") ? `${count} times as fast as recorded` : `${count} row${count === "1" ? "" : "s"} a second`;
}

function showKeys(message) {
  const { found, keys, key_count: count } = message;
  listKeys($("keys"), message, (key) => look({ key, last: view.last ?? usual(), start: null, end: null }));
  $("find").parentElement.hidden = count <= FEW_KEYS;
  $("more-keys").textContent = found > keys.length ? `${(found - keys.length).toLocaleString("en")} more keys are not listed.`
    : found === 0 && count ? "No key matches." : "";
}

function makeControls() {
  $("find").oninput = () => look({ find: $("find").value || null });
  $("pace").replaceChildren(...SPEEDS.map((speed) => new Option(paceInWords(speed), speed)));
  $("pace").onchange = () => say("speed", $("pace").value);
  $("stream-pause").onclick = () => {
    const paused = $("stream-pause").getAttribute("aria-pressed") !== "true";
    $("stream-pause").setAttribute("aria-pressed", paused);
    held = performance.now() + ANSWERED;
    say("pause", paused);
    setTimeout(() => { if (seen) showStatus(seen); }, ANSWERED);
  };
  $("follow").onclick = follow;
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
  new ResizeObserver(([{ contentRect }]) => { if (contentRect.width) look(); }).observe($("anomaly"));
}
