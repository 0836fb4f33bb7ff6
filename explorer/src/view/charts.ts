// What is measured against steps: four small charts over one time.

import type { Answers, Moment } from "../answers";
import { number } from "../words";
import type { Attributes, Shape } from "./elements";
import { dashes, fixed, line, path, RUN, words } from "./marks";

const [WIDTH, HEIGHT] = [220, 92];
const [LEFT, RIGHT, TOP, BOTTOM] = [34, WIDTH - 5, 6, 72];
const POINTS = 100; // of a curve, evenly over its width

/** A name, words, what is measured; powers of ten on the axis, else round numbers; the least and the most of it. */
const MEASURES: [string, string, (moment: Moment) => number, logarithmic: boolean, least: number, most: number][] = [
  ["ratio", "1 − margin ratio", (m) => 1 - m.marginRatio, true, 1e-8, 1],
  ["correlation", "1 − correlation", (m) => 1 - m.correlation, true, 1e-8, 1],
  ["loss", "loss", (m) => m.loss, false, 0, Infinity],
  ["norm", "norm", (m) => m.norm, true, 0, Infinity],
];

/** Places of steps and values of each measure, and what does not move. */
interface Axes { x(step: number): number; y(value: number): number; still: Shape[] }

const drawn = new WeakMap<Answers, Axes[]>();

/** Of the steps on record, those that can be told apart. */
const curve = ({ runs, moment }: Answers, k: number): Moment[] => {
  const { steps } = runs[k];
  const end = steps.length - 1;
  let last = -1;
  return [...steps.keys()].filter((row) => {
    const place = Math.log1p(steps[row]) / Math.log1p(steps[end]);
    if (row < end && place - last < 1 / POINTS) return false;
    last = place;
    return true;
  }).map((row) => moment(runs[k], row));
};

function axes(curves: Moment[][], [, , of, logarithmic, least, most]: (typeof MEASURES)[number]): Axes {
  const last = Math.max(...curves.map((curve) => curve[curve.length - 1].step));
  const values = curves.flat().map(of).filter((v) => Number.isFinite(v) && (!logarithmic || v > 0)).map((v) => Math.min(Math.max(v, least), most));
  const ticks = (logarithmic ? powers : round)(values);
  const scale = (v: number): number => (logarithmic ? Math.log10(Math.max(v, 1e-300)) : v);
  const [from, to] = [Math.min(...ticks), Math.max(...ticks)].map(scale);
  const x = (step: number): number => LEFT + ((RIGHT - LEFT) * Math.log1p(step)) / Math.log1p(last);
  const y = (v: number): number => BOTTOM - (BOTTOM - TOP) * Math.min(1, Math.max(0, (scale(v) - from) / (to - from || 1)));
  const still = (values.length ? ticks : []).flatMap((tick) => [
    path(`M${LEFT} ${fixed(y(tick))}H${RIGHT}`, { class: "grid" }),
    words(logarithmic ? power(tick) : number(tick), LEFT - 5, y(tick) + 4, { class: "soft end" }),
  ]);
  for (let step = 1; step <= last; step *= last > 20000 ? 100 : 10) {
    still.push(words(step >= 1000 ? `${step / 1000}k` : String(step), x(step), HEIGHT - 5, { class: x(step) > RIGHT - 10 ? "soft end" : "soft" }));
  }
  if (!values.length) still.push(words("no solution", (LEFT + RIGHT) / 2, (TOP + BOTTOM) / 2 + 4, { class: "soft" }));
  return { x, y, still: [["g", {}, still], ["g", {}, curves.map((curve, k) => path(
    line(curve.length, (r) => [x(curve[r].step), y(of(curve[r]))], 0.6), { class: "curve", stroke: RUN[k], ...dashes(k) })).reverse()]] };
}

export function charts(answers: Answers, moments: Moment[]): Shape {
  let all = drawn.get(answers);
  if (!all) {
    const curves = answers.runs.map((_, k) => curve(answers, k));
    drawn.set(answers, (all = MEASURES.map((measure) => axes(curves, measure))));
  }
  const [{ step }] = moments;
  return ["div", { class: "charts" }, MEASURES.map(([name, title, of], c) => {
    const { x, y, still } = all[c];
    const values = moments.map(of);
    const said = values.map((v) => (Number.isFinite(v) ? number(v, values.length > 1) : "–"));
    const dot = (v: number, k: number): Attributes => (Number.isFinite(v) ? { cx: fixed(x(moments[k].step)), cy: fixed(y(v)), r: 3.5 } : { r: 0 });
    return ["div", { class: "chart", "data-chart": name }, [
      ["div", { class: "caption" }, [["span", { text: title }], ["span", { class: "value", text: said.join(" | ") }]]],
      ["svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${title} at step ${step}: ${said.join(" and ")}` }, [
        path(`M${fixed(x(step))} ${TOP}V${BOTTOM}`, { class: "now" }),
        ...still,
        ...values.map((v, k): Shape => ["circle", { class: "here", fill: RUN[k], ...dot(v, k) }]).reverse(),
      ]],
    ]];
  })];
}

/** At most four powers of ten around all values. */
function powers(values: number[]): number[] {
  if (!values.length) return [0.1, 1];
  const a = Math.floor(Math.log10(Math.min(...values)) + 1e-9);
  let b = Math.ceil(Math.log10(Math.max(...values)) - 1e-9);
  if (a === b) b++;
  const every = Math.ceil((b - a) / 3);
  return Array.from({ length: Math.ceil((b - a) / every) + 1 }, (_, k) => 10 ** (b - k * every));
}

/** Two to four round numbers around all values. */
function round(values: number[]): number[] {
  if (!values.length) return [0, 1];
  let [a, b] = [Math.min(...values), Math.max(...values)];
  if (!(b - a > 1e-9 * Math.abs(b))) [a, b] = [a - 0.5, b + 0.5];
  const raw = (b - a) / 2;
  const unit = 10 ** Math.floor(Math.log10(raw));
  const every = [1, 2, 2.5, 5, 10].find((m) => m * unit >= raw)! * unit;
  const low = Math.floor(a / every);
  return Array.from({ length: Math.ceil(b / every) - low + 1 }, (_, k) => Number(((low + k) * every).toPrecision(6)));
}

function power(tick: number): string {
  const k = Math.round(Math.log10(tick));
  if (k >= 0 && k <= 4) return k > 2 ? `${10 ** (k - 3)}k` : String(10 ** k);
  return k === -1 ? "0.1" : `1e${k}`;
}
