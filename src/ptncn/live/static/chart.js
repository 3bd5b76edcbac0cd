// uPlot in the colours of the page, as wide as its place.
const dark = matchMedia("(prefers-color-scheme: dark)");
export const calm = matchMedia("(prefers-reduced-motion: reduce)");

// From which step on, how a time is written, and what goes below it where year, day or minute change.
const TIMES = [
  [31536000, "{YYYY}", null, null, null, null, null, null, 1],
  [2419200, "{MMM}", "\n{YYYY}", null, null, null, null, null, 1],
  [86400, "{D} {MMM}", "\n{YYYY}", null, null, null, null, null, 1],
  [60, "{HH}:{mm}", "\n{D} {MMM} {YYYY}", null, "\n{D} {MMM}", null, null, null, 1],
  [1, "{HH}:{mm}:{ss}", "\n{D} {MMM} {YYYY}", null, "\n{D} {MMM}", null, null, null, 1],
  [0.001, ":{ss}.{fff}", "\n{D} {MMM} {HH}:{mm}", null, "\n{D} {MMM} {HH}:{mm}", null, "\n{HH}:{mm}", null, 1],
];

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
    const axes = (options.axes ?? [{}, {}]).map((each, index) => ({ ...axis, ...(index ? { size: 46 } : { size: tall, values: options.scales?.x?.time ? TIMES : undefined }), ...each }));
    const series = options.series.map((each) => ({ ...each, value: this.orNewest(each) }));
    const width = Math.max(this.place.clientWidth, 200);
    this.plot = new uPlot({ width, height: this.height, ...options, axes, series }, this.data, this.place);
  }

  // The legend shows what is below the pointer, and the newest values where there is none, of some series those after.
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
