// Spectral and nuclear norms of 2 x 2 matrices. W is a rotation times |turn| and a reflection times
// |flip|; the spectral norm is |turn| + |flip|, the nuclear one twice the larger of the two. Both are
// Euclidean norms with weights, the best ones: one number, found as the root of a monotone function.

import { activeSet, type Rows } from "./active_set";
import { accumulate } from "./double_double";
import { vector } from "./linear";
import type { Norm } from "./norms";
import type { Vertex } from "./simplex";

/** Logit of the share beyond which one part counts for nothing. */
const FARTHEST = 26;
const STEPS = 80;
/** A gap that is rounding. */
const TIGHT = 1e-15;

export function solveConformal(problem: Rows, norm: Norm): Vertex | null {
  const { count: m, rows, low } = problem;
  const spectral = norm.kind === "spectral";
  // <A, W> in the coordinates turn, flip.
  const turned = vector(4 * m);
  const turnedLow = vector(4 * m);
  for (let j = 0; j < 4 * m; j += 4) {
    for (const [k, a, b, sign] of [[0, 0, 3, 1], [1, 2, 1, -1], [2, 0, 3, -1], [3, 1, 2, 1]]) {
      const [x, y] = [rows[j + a], sign * rows[j + b]];
      const sum = x + y;
      const part = sum - x;
      const rest = x - (sum - part) + (y - part) + (low[j + a] + sign * low[j + b]);
      turned[j + k] = sum + rest;
      turnedLow[j + k] = rest - (turned[j + k] - sum);
    }
  }
  const search = activeSet({ ...problem, rows: turned, low: turnedLow });
  let best: Vertex | null = null;
  let least = Infinity;
  /** Solves with the share of `turn` at a logit; positive where it should be larger. */
  const at = (logit: number): number => {
    const small = 1 / (1 + Math.exp(Math.abs(logit)));
    const [a, b] = logit > 0 ? [1 - small, small] : [small, 1 - small];
    const weights = [a, b].map((share) => Math.sqrt(spectral ? share : 1 / share));
    search.weigh([weights[0], weights[0], weights[1], weights[1]]);
    if (!search.solve(2) || search.conflict()) return NaN;
    const { w: x, wl: xl } = search;
    const [turn, flip] = [Math.hypot(x[0], x[1]), Math.hypot(x[2], x[3])];
    // The slope of the weighted norm in w is what multipliers combine to.
    const [up, right] = spectral ? [turn / a, flip / b] : [turn * a, flip * b];
    const upper = spectral ? turn + flip : Math.max(turn, flip);
    const lower = (turn * up + flip * right) / (spectral ? Math.max(up, right) : up + right);
    const gap = 1 - lower / upper;
    if (gap < least) {
      least = gap;
      const w = vector(4);
      const wl = vector(4);
      for (const part of [x, xl]) {
        accumulate(w, wl, [part[0], -part[1], part[1], part[0]]);
        accumulate(w, wl, [part[2], part[3], part[3], -part[2]]);
      }
      best = { w, wl, multipliers: search.multipliers.slice() };
    }
    return spectral ? (up - right) / (up + right) : (turn - flip) / (turn + flip);
  };
  let [low0, f0] = [0, at(0)];
  if (Number.isNaN(f0)) return best;
  const sign = Math.sign(f0);
  let [low1, f1] = [low0, f0];
  for (const reach of [1.5, 5, 12, FARTHEST]) {
    if (least <= TIGHT || f1 * sign <= 0) break;
    [low0, f0] = [low1, f1];
    low1 = sign * reach;
    f1 = at(low1);
  }
  // False position, with the weight of an end that stays halved (Illinois).
  for (let step = 0; step < STEPS && least > TIGHT && f0 * f1 < 0; step++) {
    const next = low1 - (f1 * (low1 - low0)) / (f1 - f0);
    if (next === low0 || next === low1) break;
    const f = at(next);
    if (f * f1 < 0) [low0, f0] = [low1, f1];
    else f0 /= 2;
    [low1, f1] = [next, f];
  }
  return best;
}
