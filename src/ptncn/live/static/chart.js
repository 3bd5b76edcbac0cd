// uPlot in the colours of the page, as wide as its container.
const dark = matchMedia("(prefers-color-scheme: dark)");
export const calm = matchMedia("(prefers-reduced-motion: reduce)");

// The smallest step, the format of a time, and the second line of a label where the year, day or minute changes.
const TIMES = [
  [31536000, "{YYYY}", null, null, null, null, null, null, 1],
  [2419200, "{MMM}", "\n{YYYY}", null, null, null, null, null, 1],
  [86400, "{D} {MMM}", "\n{YYYY}", null, null, null, null, null, 1],
  [60, "{HH}:{mm}", "\n{D} {MMM} {YYYY}", null, "\n{D} {MMM}", null, null, null, 1],
  [1, "{HH}:{mm}:{ss}", "\n{D} {MMM} {YYYY}", null, "\n{D} {MMM}", null, null, null, 1],
  [0.001, ":{ss}.{fff}", "\n{D} {MMM} {HH}:{mm}", null, "\n{D} {MMM} {HH}:{mm}", null, "\n{HH}:{mm}", null, 1],
];

let left = 46; // pixels for the numbers of the y axes, the same in all charts, so that their times are aligned

// Numbers of an axis with enough digits to distinguish them, in scientific notation if that is too many.
function ticks(plot, values) {
  const step = Math.abs(values[1] - values[0]) || 1;
  const largest = Math.max(...values.map(Math.abs));
  const digits = Math.max(1, 1 - Math.floor(Math.log10(step)));
  if (largest < 1e6 && step >= 1e-5) return values.map((value) => value.toLocaleString("en", { maximumFractionDigits: digits }));
  const places = Math.max(0, Math.ceil(Math.log10(largest / step)));
  return values.map((value) => (value === 0 ? "0" : power(Number(value.toExponential(places)))));
}

function roomFor(plot, values) {
  left = Math.max(left, 12 + 6.5 * Math.max(0, ...(values ?? []).map((value) => `${value}`.length)));
  return left;
}

const power = (value) => value.toExponential().replace("e+", "e");

// A number with five digits.
export function number(plot, value) {
  if (value === null || value === undefined) return "–";
  const short = Number(value.toPrecision(5));
  return short !== 0 && (Math.abs(short) >= 1e9 || Math.abs(short) < 1e-4) ? power(short) : `${short}`;
}

// Isolated values, which a line alone would not show.
export const isolated = (plot, series) => plot.data[series].flatMap((value, place, all) => (value !== null && (all[place - 1] ?? null) === null && (all[place + 1] ?? null) === null ? [place] : []));

export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

export class Chart {
  // `make(colour)` returns the options of uPlot; it is called again when the colours change.
  constructor(place, height, make) {
    Object.assign(this, { place, height, make, plot: null, data: null, newest: null });
    this.draw = this.draw.bind(this);
    dark.addEventListener("change", this.draw);
    this.resized = new ResizeObserver(() => {
      const width = place.clientWidth;
      if (this.plot && width && width !== this.plot.width) this.plot.setSize({ width, height });
    });
    this.resized.observe(place);
    this.draw();
  }

  draw() {
    this.plot?.destroy();
    const axis = { stroke: colour("soft"), grid: { stroke: colour("line"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
    const options = this.make(colour);
    const tall = options.scales?.x?.time ? 34 : 22;
    const axes = (options.axes ?? [{}, {}]).map((each, index) => ({ ...axis, ...(index ? { values: ticks, size: roomFor } : { size: tall, values: options.scales?.x?.time ? TIMES : undefined }), ...each }));
    const series = options.series.map((each) => ({ ...each, value: this.orNewest(each) }));
    const width = Math.max(this.place.clientWidth, 200);
    this.plot = new uPlot({ width, height: this.height, ...options, axes, series }, this.data, this.place);
    const title = this.place.closest("figure").querySelector("h2").textContent;
    this.plot.ctx.canvas.setAttribute("role", "img");
    this.plot.ctx.canvas.setAttribute("aria-label", `Chart: ${title}. The newest values are listed below it.`);
  }

  // The legend shows the values at the pointer, or else the newest ones; for some series, those that follow.
  orNewest({ value: write, later = 0 }) {
    return (plot, value, series, index) => {
      const at = index ?? (this.newest === null ? null : this.newest + later);
      return write(plot, at === null ? null : (plot.data[series]?.[at] ?? null));
    };
  }

  set(data, newest = data[0].length - 1) {
    this.data = data;
    this.newest = newest < 0 ? null : newest;
    this.plot.setData(data);
  }

  remove() {
    this.plot.destroy();
    this.resized.disconnect();
    dark.removeEventListener("change", this.draw);
  }
}
