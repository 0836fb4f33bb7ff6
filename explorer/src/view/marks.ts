// What the pictures have in common: paths, marks and colors, Okabe and Ito's; all else is in style.css.

import type { Point } from "../answers";
import type { Attributes, Shape } from "./elements";

/** Pictures of planes are squares of this size. */
export const SIZE = 440;
export const HALF = SIZE / 2;

export const fixed = (x: number, digits = 1): string => x.toFixed(digits);
export const pair = ([x, y]: Point): string => `${fixed(x)} ${fixed(y)}`;
/** Addresses stay short, and what is dragged lies where a hand puts it. */
export const rounded = ([x, y]: Point): Point => [Math.round(x * 1000) / 1000, Math.round(y * 1000) / 1000];

const SEQUENCES = ["#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#999999"];
/** Tokens of a sequence have a color, and a shape of their own. */
export const colorOf = (i: number): string => SEQUENCES[i % SEQUENCES.length];
/** The first training is drawn through, the second in dashes. */
export const RUN = ["var(--ink)", "var(--second)"];
export const dashes = (k: number, dash = "6 4"): Attributes => ({ "stroke-dasharray": k ? dash : undefined });

export const path = (d: string, more: Attributes): Shape => ["path", { d, ...more }];
export const words = (text: string, x: number, y: number, more: Attributes): Shape => ["text", { x: fixed(x), y: fixed(y), text, ...more }];

/** A path through points, those less than a pixel apart left out. */
export function line(count: number, at: (k: number) => Point, least = 0.8): string {
  let d = "";
  let [x, y] = [NaN, NaN];
  for (let k = 0; k < count; k++) {
    const to = at(k);
    const [u, v] = to;
    if (!Number.isFinite(u + v) || (d && k < count - 1 && Math.abs(u - x) < least && Math.abs(v - y) < least)) continue;
    d += `${d ? "L" : "M"}${pair(to)}`;
    [x, y] = to;
  }
  return d;
}

/** Corners of marks of radius one; the first is round. */
const CORNERS = [
  [], [-0.9, -0.9, 0.9, -0.9, 0.9, 0.9, -0.9, 0.9], [0, -1.25, 1.19, 0.88, -1.19, 0.88], [0, 1.25, 1.19, -0.88, -1.19, -0.88],
  [-0.42, -1.25, 0.42, -1.25, 0.42, -0.42, 1.25, -0.42, 1.25, 0.42, 0.42, 0.42, 0.42, 1.25, -0.42, 1.25, -0.42, 0.42, -1.25, 0.42, -1.25, -0.42, -0.42, -0.42],
  [-0.55, -1.05, 0.55, -1.05, 1.1, 0, 0.55, 1.05, -0.55, 1.05, -1.1, 0],
];
/** The mark of a sequence, told from others without color. */
export const shape = (i: number, r: number): string => {
  const corners = CORNERS[i % CORNERS.length];
  return corners.length ? `M${corners.map((x) => fixed(x * r, 2)).join(" ")}Z` : `M${-r} 0A${r} ${r} 0 1 1 ${r} 0A${r} ${r} 0 1 1 ${-r} 0Z`;
};

/** The order and the look of trainings, as a line before their names. */
export const sample = (k: number): Shape => ["svg", { class: "sample", viewBox: "0 0 30 10", "aria-hidden": "true" },
  [path("M1 5H29", { stroke: RUN[k], "stroke-width": 2.6, ...dashes(k, "7 5") })]];
