// Spectral and nuclear norms of 2 x 2 matrices. W is a rotation times |turn| and a reflection times
// |flip|; the spectral norm is |turn| + |flip|, the nuclear one twice the larger of the two. Both are
// Euclidean norms with weights, the best ones: one number, found as the root of a monotone function.

import { activeSet, type Row } from "./active_set";
import { accumulate, sumError } from "./double_double";
import { vector } from "./linear";
import type { Answer } from "./margin";

/** Logit of the share beyond which one part counts for nothing. */
const FARTHEST = 26;
const STEPS = 80;
/** A gap that is rounding. */
const TIGHT = 1e-15;

export function solveConformal(problem: readonly Row[], spectral: boolean): Answer | null {
  // <A, W> in the coordinates turn, flip.
  const turned = problem.map(({ row, low, bound }) => {
    const own = { row: [0, 0, 0, 0], low: [0, 0, 0, 0], bound };
    [[0, 3, 1], [2, 1, -1], [0, 3, -1], [1, 2, 1]].forEach(([a, b, sign], k) => {
      const [x, y] = [row[a], sign * row[b]];
      const rest = sumError(x, y, x + y) + (low[a] + sign * low[b]);
      own.row[k] = x + y + rest;
      own.low[k] = rest - (own.row[k] - (x + y));
    });
    return own;
  });
  const search = activeSet(turned, 4);
  let best: Answer | null = null;
  let least = Infinity;
  /** Solves with the share of `turn` at a logit; positive where it should be larger. */
  const at = (logit: number): number => {
    const small = 1 / (1 + Math.exp(Math.abs(logit)));
    const [a, b] = logit > 0 ? [1 - small, small] : [small, 1 - small];
    const [s, t] = [a, b].map((share) => Math.sqrt(spectral ? share : 1 / share));
    search.weigh([s, s, t, t]);
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
      const [w, wl] = [vector(4), vector(4)];
      for (const part of [x, xl]) {
        accumulate(w, wl, [part[0], -part[1], part[1], part[0]]);
        accumulate(w, wl, [part[2], part[3], part[3], -part[2]]);
      }
      best = { w, wl, multipliers: search.multipliers.slice() };
    }
    const [more, less] = spectral ? [up, right] : [turn, flip];
    return (more - less) / (more + less);
  };
  let [low0, f0] = [0, at(0)];
  const sign = Math.sign(f0);
  let [low1, f1] = [low0, f0];
  for (const reach of [1.5, 5, 12, FARTHEST]) {
    if (!(least > TIGHT && f1 * sign > 0)) break;
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
