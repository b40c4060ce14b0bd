// Draws the overview's charts from the numbers that come with the page. The same numbers stand in a table
// below each, which is what a keyboard and a screen reader are given.

const HEIGHT = 190;
const DASHES = [[], [6, 4], [2, 3], [10, 3, 2, 3], [1, 4], [12, 4]];
const drawn = new Map(); // by the element: uPlot

// MiB, and their doubles.
const POWERS = Array.from({ length: 24 }, (_, n) => 2 ** (18 + n));

/** Of a log scale: the powers of ten that it shows. */
function decades(_plot, _axis, low, high) {
  const found = [];
  for (let power = Math.ceil(Math.log10(low)); 10 ** power <= high; power++) found.push(10 ** power);
  return found;
}

function colour(name) {
  const probe = document.createElement("i");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

function short(value) {
  return new Intl.NumberFormat(document.documentElement.lang, { notation: "compact", maximumFractionDigits: 1 })
    .format(value);
}

function written(value, unit, currency) {
  if (value === null || value === undefined) return "–";
  if (unit === "share") return `${(value * 100).toFixed(value < 0.1 ? 1 : 0)}%`;
  if (unit === "ms") return value >= 1000 ? `${short(value / 1000)} s` : `${short(value)} ms`;
  if (unit === "bytes") return value >= 2 ** 30 ? `${short(value / 2 ** 30)} GiB` : `${short(value / 2 ** 20)} MiB`;
  if (unit === "money") return `${short(value)} ${currency}`;
  return short(value);
}

/** Bars that stand on each other are drawn from the top down, each over what is below it. */
function stacked(series) {
  const sums = [];
  let below = null;
  for (const { values } of series) {
    below = values.map((value, at) => (value ?? 0) + (below ? below[at] : 0));
    sums.push(below);
  }
  return sums.reverse();
}

/** Of a linear scale: shares are of 1 unless they are small; of what is counted there is never half a one. */
function highest(chart, high) {
  if (chart.unit === "share") return chart.small ? Math.min(1, Math.max(high * 1.08, 0.05)) : 1;
  return Math.max(high * 1.08, chart.unit === "money" ? 0.01 : 1);
}

function marksOn(marks, ink, font) {
  return (plot) => {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = ink;
    ctx.font = font;
    ctx.textAlign = "center";
    ctx.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
    let free = -Infinity;
    marks.forEach(({ at }, number) => {
      const x = Math.round(plot.valToPos(at, "x", true));
      if (x < bbox.left || x > bbox.left + bbox.width) return;
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      if (x < free) return; // there is no room for another number beside the last
      ctx.fillText(number + 1, x, bbox.top - 7 * devicePixelRatio);
      free = x + 14 * devicePixelRatio;
    });
    ctx.restore();
  };
}

function options(chart, data, width) {
  const style = getComputedStyle(document.body);
  const ink = colour("--ink-soft");
  const line = colour("--line");
  const font = `12px ${style.fontFamily}`;
  const bars = window.uPlot.paths.bars({ size: [0.7, 40] });
  const step = data.at.length > 1 ? data.at[1] - data.at[0] : 60;
  const order = chart.bars ? [...chart.series.keys()].reverse() : [...chart.series.keys()];
  const axis = { stroke: ink, font, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
  const date = new Intl.DateTimeFormat(document.documentElement.lang, {
    month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", timeZone: "UTC",
  });
  return {
    width,
    height: HEIGHT,
    padding: [20, 20, 0, 0],
    // Times are the server's, as in the tables.
    tzDate: (seconds) => window.uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
    cursor: { drag: { x: false, y: false } },
    scales: {
      // Half a step more on both sides, where the first and the last bar stand.
      x: { time: true, range: (_plot, low, high) => [low - step / 2, high + step / 2] },
      y: {
        distr: chart.log ? 3 : 1,
        range: chart.log
          ? undefined
          : (_plot, _low, high) => [0, highest(chart, high)],
      },
    },
    axes: [
      { ...axis, values: (_plot, ticks) => ticks.map(ticked), space: 56 },
      {
        ...axis,
        size: 68,
        incrs: chart.unit === "bytes" ? POWERS : undefined,
        splits: chart.log ? decades : undefined,
        values: (_plot, ticks) => ticks.map((tick) => written(tick, chart.unit, data.currency)),
      },
    ],
    series: [
      { label: " ", value: (_plot, at) => (at === null ? " " : date.format(at * 1000)) },
      ...order.map((place) => {
        const own = colour(`--series-${(place % 6) + 1}`);
        const of = chart.series[place];
        return {
          label: of.label,
          stroke: own,
          fill: chart.bars ? own : undefined,
          width: chart.bars ? 0 : 2,
          dash: chart.bars ? undefined : DASHES[place % DASHES.length],
          paths: chart.bars ? bars : undefined,
          points: { show: !chart.bars && lone(of.values), size: 6, fill: own },
          spanGaps: false,
          value: (_plot, _value, _series, at) => at === null ? "" : written(of.values[at], chart.unit, data.currency),
        };
      }),
    ],
    hooks: { draw: [marksOn(data.marks, ink, `${12 * devicePixelRatio}px ${style.fontFamily}`)] },
  };
}

/** A value between two gaps is no line: it is shown as a point. */
function lone(values) {
  return values.some((value, at) => value !== null && (values[at - 1] ?? null) === null && (values[at + 1] ?? null) === null);
}

function ticked(tick) {
  const at = new Date(tick * 1000);
  const lang = document.documentElement.lang;
  if (at.getUTCHours() || at.getUTCMinutes()) {
    return at.toLocaleTimeString(lang, { hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZone: "UTC" });
  }
  return at.toLocaleDateString(lang, { month: "short", day: "numeric", timeZone: "UTC" });
}

function draw() {
  const source = document.getElementById("chart-data");
  for (const [element, plot] of drawn) {
    plot.destroy();
    drawn.delete(element);
  }
  if (!source || !window.uPlot) return;
  const data = JSON.parse(source.textContent);
  for (const element of document.querySelectorAll("[data-chart]")) {
    const chart = data.charts[element.dataset.chart];
    const values = chart.bars ? stacked(chart.series) : chart.series.map((one) => one.values);
    const width = Math.floor(element.clientWidth);
    drawn.set(element, new window.uPlot(options(chart, data, width), [data.at, ...values], element));
  }
}

let waiting = 0;
function soon() {
  cancelAnimationFrame(waiting);
  waiting = requestAnimationFrame(draw);
}

document.addEventListener("htmx:afterSwap", soon);
window.addEventListener("resize", soon);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", soon);
document.addEventListener("click", (event) => event.target.closest?.("[data-theme-choice]") && soon());
window.addEventListener("load", soon);
