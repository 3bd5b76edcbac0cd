// The moving world: three pictures, two charts and their controls.
import { Chart, calm } from "./chart.js";

const $ = (id) => document.getElementById(id);
const KEPT = 1500;
const ANSWERED = 400; // milliseconds within which the server answers a button press
const WORDS = { digits: "Digits", letters: "Letters", shapes: "Shapes", clothes: "Clothes", drawing: "My drawing" };
const NETWORKS = {
  LSTM: "Long short-term memory", GRU: "Gated recurrent unit", RNN: "Simple recurrent network", RHN: "Recurrent highway network",
  eLSTM: "Element-wise LSTM", LRU: "Linear recurrent unit", ESN: "Echo state network",
};
const BUTTONS = { pause: "paused", freeze: "frozen", dream: "dreaming" };
const KEYS = { p: "pause", n: "step", f: "freeze", d: "dream", s: "snapshot", b: "back" };
const SLIDERS = {
  objects: (value) => `${value}`,
  speed: (value) => (value === 0 ? "standing still" : `${Math.round(value * 100)} % of the width a frame`),
  occlusion: (value) => (value === 0 ? "nothing hidden" : `${value} of 32 columns`),
};

let say = () => {};
let hello = null;
let state = null;
let latest = null; // the state as the server last sent it
const held = {}; // the time until which each pressed button ignores the server's state
let points = [];
let charts = null;
let waiting = null;
let newest = null; // the last frame that was drawn
let announced = null; // the last frame shown in words and curves
let drawn = 0;
let spokenAt = 0;
let image = null; // reused for all pictures, to avoid creating garbage 75 times a second

export function begin(message, sender) {
  const again = hello !== null;
  [hello, say] = [message, sender];
  points = message.curve;
  $("clothes").textContent = `Clothes are ${message.clothes.replace(/`(.*?)`/g, "“$1”")}.`;
  listLearners(message.rivals);
  if (again) return;
  $("calm").checked = calm.matches;
  charts = { errors: new Chart($("errors"), 190, errorOptions), surprise: new Chart($("surprise"), 150, surpriseOptions) };
  makeControls();
  makePad(message.pad);
  requestAnimationFrame(paint);
}

export function receive(message, payload) {
  if (message.type === "state") showState(message);
  if (message.type === "frame") {
    const last = points.at(-1);
    if (last && message.point[0] <= last[0]) points = points.filter((point) => point[0] < message.point[0]);
    points.push(message.point);
    if (points.length > KEPT) points.splice(0, points.length - KEPT);
    waiting = { message, pixels: new Uint8ClampedArray(payload.buffer, payload.offset) };
  }
}

// Draw pictures and curves when the browser is ready; frames that arrive in between are skipped.
function paint(now) {
  requestAnimationFrame(paint);
  if (waiting && state && !($("calm").checked && now - drawn < 500)) {
    const { message, pixels } = waiting;
    [newest, waiting, drawn] = [message, null, now];
    const size = hello.canvas ** 2;
    ["truth", "expected-0", "expected-1"].forEach((id, index) => picture($(id), pixels.subarray(index * size, (index + 1) * size)));
  }
  if (newest !== announced && now - spokenAt > 400) {
    [announced, spokenAt] = [newest, now];
    tell(newest);
    drawCurves();
  }
}

function picture(canvas, grey) {
  image ??= new ImageData(hello.canvas, hello.canvas);
  for (let i = 0; i < grey.length; i += 1) {
    image.data.fill(grey[i], 4 * i, 4 * i + 3);
    image.data[4 * i + 3] = 255;
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
}

function drawCurves() {
  const column = (index) => points.map((point) => point[index] ?? null);
  const x = column(0);
  const layers = Math.max(...points.map((point) => point.length)) - 4;
  charts.errors.set([x, column(1), column(2), column(3)]);
  if (layers > 0) charts.surprise.set([x, column(4), column(5)]);
}

// The first errors are huge and would flatten the rest, so fit the axis to recent errors and to those of repeating the last frame.
const errorRange = (plot, low, high) => {
  const copied = (plot.data[3] ?? []).filter((value) => value !== null);
  const now = [plot.data[1]?.at(-1) ?? 0, plot.data[2]?.at(-1) ?? 0];
  return [0, Math.min(high ?? 1, Math.max(2.2, 2.2 * Math.max(0, ...copied), ...now)) * 1.05];
};

// Likewise for surprise: its first values are far above all others.
const usualRange = (plot, low, high) => {
  const late = plot.data.slice(1).flatMap((series) => series.slice(Math.min(50, series.length >> 1))).filter((value) => value !== null);
  return [0, 1.15 * (late.length ? Math.max(...late) : (high ?? 1)) || 1];
};

const onFrames = { scales: { x: { time: false } }, cursor: { drag: { x: false, y: false } } };
const fixed = (digits) => (plot, value) => (value === null ? "–" : value.toFixed(digits));
const whole = { label: "frame", value: (plot, value) => (value === null ? "–" : value.toLocaleString("en")) };

function errorOptions(colour) {
  const label = state?.learners[1].label ?? "other";
  return {
    ...onFrames,
    scales: { ...onFrames.scales, y: { range: errorRange } },
    series: [
      whole,
      { label: "P-TNCN", stroke: colour("mine"), width: 2, points: { show: false }, value: fixed(1) },
      { label, stroke: colour("other"), width: 2, points: { show: false }, value: fixed(1) },
      { label: "repeat last frame", stroke: colour("copy"), width: 1.5, dash: [5, 4], points: { show: false }, value: fixed(1) },
    ],
  };
}

function surpriseOptions(colour) {
  return {
    ...onFrames,
    scales: { ...onFrames.scales, y: { range: usualRange } },
    series: [
      whole,
      { label: "layer 1", stroke: colour("mine"), width: 1.6, points: { show: false }, value: fixed(2) },
      { label: "layer 2", stroke: colour("drift"), width: 1.6, points: { show: false }, value: fixed(2) },
    ],
  };
}

// Words

function tell(message) {
  const [number, mine, other, copied] = message.point;
  $("frames").textContent = `${number.toLocaleString("en")} frames`;
  $("fps").textContent = message.rate === null || state.paused ? "" : `${message.rate.toFixed(0)} a second`;
  state.learners.forEach((learner, index) => {
    const error = message.point[1 + index];
    const cost = message.milliseconds[index];
    const weights = learner.weights ? `${learner.weights.toLocaleString("en")} weights` : "no weights";
    const parts = [`error <b>${error === null ? "–" : error.toFixed(1)}</b>`, cost === null ? "" : `${cost.toFixed(1)} ms a frame`, weights];
    $(`facts-${index}`).innerHTML = parts.filter(Boolean).join("<br>");
  });
  const doing = describeState();
  if ($("state").textContent !== doing) $("state").textContent = doing; // screen readers announce every change
  $("score").textContent = state.problem ? "" : compare(number, mine, other, copied);
  $("story").classList.toggle("problem", state.problem !== null);
}

function describeState() {
  if (state.problem) return `Stopped: ${state.problem}. “Start over” begins with untrained learners.`;
  const hurt = state.learners.flatMap((each) => each.lesions.map((part) => `${part} of the ${each.label}`));
  const parts = [];
  if (state.paused) parts.push("The world is paused.");
  if (state.dreaming) parts.push("Both learners dream: they see their own predictions, and the error shows how far the dream has drifted from the world.");
  if (state.frozen) parts.push("Weights are frozen: nothing is learnt. The P-TNCN still corrects its state with each frame.");
  if (hurt.length) parts.push(`Lesioned: ${hurt.join(", ")}.`);
  return parts.join(" ");
}

function compare(number, mine, other, copied) {
  const [first, second] = state.learners;
  if (mine === null || other === null || !copied) return "The learners have just started.";
  const share = (error) => `${Math.round((100 * error) / copied)} %`;
  const ahead = mine < 0.98 * other ? `The ${first.label} is ahead.` : other < 0.98 * mine ? `The ${second.label} is ahead.` : "They are about equal.";
  return `After ${number.toLocaleString("en")} frames, the error of the ${first.label} is ${share(mine)} and that of the ${second.label} ${share(other)} of the error of repeating the last frame. ${ahead}`;
}

// Controls

// Group learners by network, with which their labels begin.
function listLearners(rivals) {
  const groups = new Map();
  for (const [name, label] of Object.entries(rivals)) {
    const kind = NETWORKS[label.split(" (")[0]] ?? "Others";
    if (!groups.has(kind)) groups.set(kind, Object.assign(document.createElement("optgroup"), { label: kind }));
    groups.get(kind).append(new Option(label, name));
  }
  $("rival").replaceChildren(...groups.values());
}

function makeControls() {
  const kinds = [...hello.kinds, "drawing"];
  $("kinds").replaceChildren(...kinds.map((kind) => {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: WORDS[kind] ?? kind });
    button.dataset.kind = kind;
    button.setAttribute("role", "radio");
    button.onclick = () => say("kind", kind);
    return button;
  }));
  $("kinds").onkeydown = (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const open = [...$("kinds").children].filter((each) => !each.disabled);
    const next = open[(open.indexOf(document.activeElement) + step + open.length) % open.length];
    next.focus();
    next.click();
  };
  for (const id of Object.keys(SLIDERS)) {
    $(id).oninput = () => { $(`${id}-value`).textContent = SLIDERS[id](Number($(id).value)); };
    $(id).onchange = () => say(id, Number($(id).value));
  }
  for (const [id, flag] of Object.entries(BUTTONS)) $(id).onclick = () => toggle(id, flag);
  for (const id of ["step", "snapshot", "back", "restart"]) $(id).onclick = () => say(id);
  $("rival").onchange = () => say("rival", $("rival").value);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select, #pad")) return;
    const id = KEYS[event.key.toLowerCase()];
    if (id && !$(id).disabled) $(id).click();
  });
}

// The button follows the user at once; late answers to earlier presses are ignored for a moment.
function toggle(id, flag) {
  state[flag] = !state[flag];
  held[flag] = performance.now() + ANSWERED;
  $(id).setAttribute("aria-pressed", state[flag]);
  $("step").disabled = !state.paused;
  say(id, state[flag]);
  setTimeout(() => showState(latest), ANSWERED);
}

function showState(message) {
  const before = state;
  const renamed = before?.learners[1].label !== message.learners[1].label;
  latest = message;
  state = { ...message };
  for (const flag of Object.values(BUTTONS)) if (performance.now() < (held[flag] ?? 0)) state[flag] = before[flag];
  for (const button of $("kinds").children) {
    const chosen = button.dataset.kind === state.kind;
    button.setAttribute("aria-checked", chosen);
    button.tabIndex = chosen ? 0 : -1;
    if (button.dataset.kind === "drawing") button.disabled = !state.has_drawing;
  }
  for (const [id, words] of Object.entries(SLIDERS)) {
    if (document.activeElement !== $(id)) $(id).value = state[id];
    $(`${id}-value`).textContent = words(state[id]);
  }
  for (const [id, flag] of Object.entries(BUTTONS)) $(id).setAttribute("aria-pressed", state[flag]);
  $("step").disabled = !state.paused;
  $("back").disabled = state.snapshot === null;
  $("back").title = state.snapshot === null ? "There is no snapshot yet" : `To frame ${state.snapshot.toLocaleString("en")}`;
  const [left, right] = state.bar;
  $("strip").hidden = right === left;
  $("strip").style.left = `${(100 * left) / hello.canvas}%`;
  $("strip").style.width = `${(100 * (right - left)) / hello.canvas}%`;
  $("rival").value = state.learners[1].name;
  $("rival").title = `${state.learners[1].about}. Choose another learner here.`;
  showLesions();
  $("honest").textContent = honesty();
  $("settings").replaceChildren(...state.learners.map((each) => {
    const item = document.createElement("li");
    item.textContent = `${each.label}: ${each.about}${each.options ? ` (${each.options})` : ""}`;
    return item;
  }));
  if (renamed) charts.errors.draw();
  if (newest) tell(newest); // a paused world sends no frames
}

function showLesions() {
  const wanted = JSON.stringify(state.learners.map((each) => [each.label, each.parts]));
  const place = $("lesions");
  if (place.dataset.parts !== wanted) {
    place.dataset.parts = wanted;
    place.replaceChildren(...state.learners.flatMap((learner, index) => learner.parts.map((part) => {
      const button = Object.assign(document.createElement("button"), { type: "button", textContent: `${learner.label}: ${part}` });
      Object.assign(button.dataset, { learner: index, part });
      button.onclick = () => {
        const held = state.learners[index];
        const on = !held.lesions.includes(part);
        held.lesions = on ? [...held.lesions, part] : held.lesions.filter((each) => each !== part);
        say("lesion", { learner: index, part, on });
      };
      return button;
    })));
  }
  for (const button of place.children) {
    button.setAttribute("aria-pressed", state.learners[button.dataset.learner].lesions.includes(button.dataset.part));
  }
}

function honesty() {
  const [first, second] = state.learners;
  const count = (learner) => learner.weights.toLocaleString("en");
  const size = second.equal
    ? `Both have about the same number of weights (${count(first)} and ${count(second)}).`
    : second.weights
      ? `The ${second.label} is smaller (${count(second)} weights compared with ${count(first)}), because at equal size a step would take too long to watch.`
      : `The ${second.label} has no weights to learn.`;
  const search = second.searched
    ? "Their step sizes were chosen by the same search, on worlds other than this one."
    : second.weights ? `The step size of the P-TNCN was chosen by a search on other worlds; the ${second.label} uses its default.` : "";
  return `Both see the same frames in the same order, and start each scene of 60 frames with an empty state. ${size} ${search} Errors, surprise and costs are running means over about 20 frames; costs are the processor time of the learner alone, on one thread.`;
}

// Drawing

function makePad(side) {
  const pad = $("pad");
  const context = pad.getContext("2d");
  const cells = new Uint8Array(side * side);
  const pen = { x: side >> 1, y: side >> 1 };
  let drawing = false;

  const redraw = () => {
    const image = new ImageData(side, side);
    cells.forEach((value, i) => { image.data.set([value, value, value, 255], 4 * i); });
    if (document.activeElement === pad) image.data.set([93, 180, 236, 255], 4 * (pen.y * side + pen.x));
    context.putImageData(image, 0, 0);
    $("pad-use").disabled = !cells.some(Boolean);
    $("pad-use").title = $("pad-use").disabled ? "Draw something first" : "";
  };
  const dab = (x, y) => {
    for (const [dx, dy, value] of [[0, 0, 255], [1, 0, 255], [0, 1, 255], [1, 1, 255], [-1, 0, 140], [0, -1, 140], [2, 0, 140], [0, 2, 140]]) {
      const [i, j] = [x + dx, y + dy];
      if (i >= 0 && j >= 0 && i < side && j < side) cells[j * side + i] = Math.max(cells[j * side + i], value);
    }
  };
  const moveTo = (event) => {
    const box = pad.getBoundingClientRect();
    const [x, y] = [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height].map((part) => Math.min(side - 1, Math.max(0, Math.floor(part * side))));
    const steps = drawing ? Math.max(Math.abs(x - pen.x), Math.abs(y - pen.y), 1) : 1;
    const [fromX, fromY] = drawing ? [pen.x, pen.y] : [x, y];
    for (let step = 1; step <= steps; step += 1) dab(Math.round(fromX + ((x - fromX) * step) / steps), Math.round(fromY + ((y - fromY) * step) / steps));
    Object.assign(pen, { x, y });
    redraw();
  };
  pad.onpointerdown = (event) => { pad.setPointerCapture(event.pointerId); moveTo(event); drawing = true; };
  pad.onpointermove = (event) => { if (drawing) moveTo(event); };
  pad.onpointerup = pad.onpointercancel = () => { drawing = false; };
  pad.onfocus = pad.onblur = redraw;
  pad.onkeydown = (event) => {
    const move = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!move && event.key !== " ") return;
    event.preventDefault();
    if (move) {
      pen.x = Math.min(side - 1, Math.max(0, pen.x + move[0]));
      pen.y = Math.min(side - 1, Math.max(0, pen.y + move[1]));
    } else dab(pen.x, pen.y);
    redraw();
  };
  $("pad-clear").onclick = () => { cells.fill(0); redraw(); };
  $("pad-use").onclick = () => say("drawing", btoa(String.fromCharCode(...cells)));
  redraw();
}
