// What is measured against steps: four small charts over one time.

import type { Answers, Moment } from "../answers";
import { RUN } from "./style";
import { fixed, html, line, Pool, set, svg, write } from "./svg";
import { number } from "../words";

const WIDTH = 220;
const HEIGHT = 92;
const [LEFT, RIGHT, TOP, BOTTOM] = [34, WIDTH - 5, 6, 72];

interface Measure {
  name: string;
  words: string;
  of(moment: Moment): number;
  /** Powers of ten on the axis, else round numbers. */
  logarithmic: boolean;
  least?: number;
  most?: number;
}

const MEASURES: Measure[] = [
  { name: "ratio", words: "1 − margin ratio", of: (m) => 1 - m.marginRatio, logarithmic: true, least: 1e-8, most: 1 },
  { name: "correlation", words: "1 − correlation", of: (m) => 1 - m.correlation, logarithmic: true, least: 1e-8, most: 1 },
  { name: "loss", words: "loss", of: (m) => m.loss, logarithmic: false },
  { name: "norm", words: "norm", of: (m) => m.norm, logarithmic: true },
];

const POINTS = 100; // of a curve, evenly over its width

export class Charts {
  readonly element = html("div", { class: "charts" });
  private readonly charts = MEASURES.map((measure) => new Chart(measure));
  private drawn: Answers | null = null;

  constructor() {
    this.element.append(...this.charts.map((chart) => chart.element));
  }

  draw(answers: Answers, moments: Moment[]): void {
    if (this.drawn !== answers) {
      this.drawn = answers;
      const curves = answers.runs.map((run) => {
        const end = run.steps.length - 1;
        const whole = Math.log1p(run.steps[end]);
        let last = -1;
        const rows = Array.from(run.steps, (_, r) => r).filter((r) => {
          const place = Math.log1p(run.steps[r]) / whole;
          if (r < end && place - last < 1 / POINTS) return false;
          last = place;
          return true;
        });
        return rows.map((r) => answers.moment(run, r));
      });
      this.charts.forEach((chart) => chart.drawCurves(curves));
    }
    this.charts.forEach((chart) => chart.drawNow(moments));
  }

  pictures(): { name: string; svg: SVGSVGElement }[] {
    return this.charts.map(({ measure, svg }) => ({ name: measure.words, svg }));
  }
}

class Chart {
  readonly element: HTMLElement;
  private readonly value = html("span", { class: "value" });
  readonly svg = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img" });
  private readonly marks = svg("g", { class: "axis" });
  private readonly grid = new Pool(this.marks, "path", { class: "grid" });
  private readonly labels = new Pool(this.marks, "text", { class: "soft" });
  private readonly curves = [0, 1].map((k) => svg("path", { fill: "none", stroke: RUN[k], "stroke-width": 2, "stroke-linejoin": "round", "stroke-dasharray": k ? "6 4" : undefined }));
  private readonly now = svg("path", { class: "now" });
  private readonly nothing = svg("text", { class: "soft", x: (LEFT + RIGHT) / 2, y: (TOP + BOTTOM) / 2 + 4, "text-anchor": "middle" }, "no solution");
  private readonly dots = [0, 1].map((k) => svg("circle", { r: 3.5, fill: RUN[k], stroke: "var(--paper)", "stroke-width": 1.5 }));
  private x: (step: number) => number = () => LEFT;
  private y: (value: number) => number = () => BOTTOM;

  constructor(readonly measure: Measure) {
    this.svg.append(this.marks, this.nothing, this.now, ...[...this.curves].reverse(), ...[...this.dots].reverse());
    this.element = html("div", { class: "chart", "data-chart": measure.name },
      html("div", { class: "caption" }, html("span", {}, measure.words), this.value), this.svg);
  }

  drawCurves(runs: Moment[][]): void {
    const { of, logarithmic, least = 0, most = Infinity } = this.measure;
    const last = Math.max(...runs.map((run) => run[run.length - 1].step));
    this.x = (step) => LEFT + ((RIGHT - LEFT) * Math.log1p(step)) / Math.log1p(last);
    const values = runs.flat().map(of).filter((v) => Number.isFinite(v) && (!logarithmic || v > 0))
      .map((v) => Math.min(Math.max(v, least), most));
    set(this.nothing, { display: values.length ? "none" : undefined });
    const [ticks, low, high] = logarithmic ? powers(values) : round(values);
    const scale = logarithmic ? (v: number): number => Math.log10(Math.max(v, 1e-300)) : (v: number): number => v;
    const [from, to] = [scale(low), scale(high)];
    this.y = (v) => BOTTOM - ((BOTTOM - TOP) * Math.min(1, Math.max(0, (scale(v) - from) / (to - from || 1))));
    for (const tick of ticks) {
      const y = this.y(tick);
      this.grid.take({ d: `M${LEFT} ${fixed(y)}H${RIGHT}` });
      this.labels.text(logarithmic ? power(tick) : number(tick), { x: LEFT - 5, y: fixed(y + 4), "text-anchor": "end" });
    }
    for (let step = 1; step <= last; step *= last > 20000 ? 100 : 10) {
      const x = this.x(step);
      this.labels.text(step >= 1000 ? `${step / 1000}k` : String(step),
        { x: fixed(x), y: HEIGHT - 5, "text-anchor": x > RIGHT - 10 ? "end" : "middle" });
    }
    this.grid.done();
    this.labels.done();
    this.curves.forEach((curve, k) => {
      const run = runs[k] ?? [];
      set(curve, { d: line(run.length, (r) => [this.x(run[r].step), this.y(of(run[r]))], 0.6) });
    });
  }

  drawNow(moments: Moment[]): void {
    const values = moments.map(this.measure.of);
    set(this.now, { d: `M${fixed(this.x(moments[0].step))} ${TOP}V${BOTTOM}` });
    this.dots.forEach((dot, k) => {
      const shown = Number.isFinite(values[k]);
      set(dot, { display: shown ? undefined : "none", cx: shown ? fixed(this.x(moments[k].step)) : undefined,
        cy: shown ? fixed(this.y(values[k])) : undefined });
    });
    const words = values.map((v) => (Number.isFinite(v) ? number(v, values.length > 1) : "–"));
    write(this.value, words.join(" | "));
    set(this.svg, { "aria-label": `${this.measure.words} at step ${moments[0].step}: ${words.join(" and ")}` });
  }
}

/** At most four powers of ten, and the span of values. */
function powers(values: number[]): [number[], number, number] {
  if (!values.length) return [[], 0.1, 1];
  let [a, b] = [Math.floor(Math.log10(Math.min(...values)) + 1e-9), Math.ceil(Math.log10(Math.max(...values)) - 1e-9)];
  if (a === b) b++;
  const every = Math.ceil((b - a) / 3);
  a = b - every * Math.ceil((b - a) / every);
  const ticks = [];
  for (let k = b; k >= a; k -= every) ticks.push(10 ** k);
  return [ticks, 10 ** a, 10 ** b];
}

/** Two to four round numbers around all values. */
function round(values: number[]): [number[], number, number] {
  if (!values.length) return [[], 0, 1];
  let [a, b] = [Math.min(...values), Math.max(...values)];
  if (!(b - a > 1e-9 * Math.abs(b))) [a, b] = [a - 0.5, b + 0.5];
  const raw = (b - a) / 2;
  const unit = 10 ** Math.floor(Math.log10(raw));
  const every = [1, 2, 2.5, 5, 10].find((m) => m * unit >= raw)! * unit;
  const [low, high] = [Math.floor(a / every) * every, Math.ceil(b / every) * every];
  const ticks = [];
  for (let v = low; v <= high + every / 2; v += every) ticks.push(Number(v.toPrecision(6)));
  return [ticks, low, high];
}

function power(tick: number): string {
  const k = Math.round(Math.log10(tick));
  if (k >= 0 && k <= 4) return k > 2 ? `${10 ** (k - 3)}k` : String(10 ** k);
  if (k === -1) return "0.1";
  return `1e${k}`;
}
