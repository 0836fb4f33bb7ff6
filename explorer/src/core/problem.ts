// What is shown: sequences of tokens, a score for each, and what is trained.

import type { LossName, Parameterization } from "../state";
import { vector } from "./linear";

export interface Problem {
  /** keys[i][t] = x_it, of any dimension. */
  keys: number[][][];
  /** scores[i][t] = y_i h(x_it): what attention gains by keeping token t; not read where the head is trained. */
  scores: number[][];
  /** queries[i]; read where W or its factors are trained. */
  queries: number[][];
  /** y_i; read where the head is trained. */
  labels?: number[];
  parameterization: Parameterization;
  loss: LossName;
}

/** Rank-one constraints <a_j, W> >= bound_j as rows; a prompt has d entries, a matrix d e (row-major). */
export interface Constraints {
  size: number;
  rows: Float64Array;
  /** What rounding took from the rows of a matrix, which are products: row + low is exact. */
  low: Float64Array;
  /** One; zero for sequences that need not be separated. */
  bounds: Float64Array;
  count: number;
  sequence: Int32Array;
  token: Int32Array;
  /** A sequence in which several tokens are tied, so that which is kept is undecided. */
  tied: boolean;
}

/** Whether a vector is sought, rather than a matrix. */
export const isPrompt = ({ parameterization }: Pick<Problem, "parameterization">): boolean =>
  parameterization === "p" || parameterization === "pv";

/** Rows and columns of the effective matrix. */
export function shapeOf(problem: Problem): [number, number] {
  const d = problem.keys[0]?.[0]?.length ?? 2;
  return [d, isPrompt(problem) ? 1 : problem.queries[0].length];
}

/** Entries of the effective matrix. */
export function sizeOf(problem: Problem): number {
  const [d, e] = shapeOf(problem);
  return d * e;
}

/** Shapes of the trained arrays, which lie one after another: p; W; K, Q; p, v. */
export function arraysOf(problem: Problem): [number, number][] {
  const [d, e] = shapeOf(problem);
  if (problem.parameterization === "KQ") return [[d, d], [e, d]];
  return problem.parameterization === "pv" ? [[d, 1], [d, 1]] : [[d, e]];
}

/** The scores with which a head v reads the tokens, y_i <v, x_it>. */
export const headScores = (problem: Problem, v: ArrayLike<number>): number[][] =>
  problem.keys.map((keys, i) =>
    keys.map((key) => problem.labels![i] * key.reduce((sum, x, k) => sum + x * v[k], 0)));

const TIE = 8 * Number.EPSILON;

/** Whether scores are equal, to rounding. */
export const ties = (a: number, b: number): boolean => Math.abs(a - b) <= TIE * (Math.abs(a) + Math.abs(b));

/** The tokens of the highest score of a sequence, to rounding. */
export function bestTokens(row: readonly number[]): number[] {
  const top = Math.max(...row);
  const reach = TIE * Math.max(...row.map(Math.abs));
  return row.flatMap((x, t) => (x >= top - reach ? [t] : []));
}

/** The token of highest score in every sequence; -1 where several share it, as in the library. */
export const optimalTokens = ({ scores }: Pick<Problem, "scores">): number[] =>
  scores.map((row) => {
    const best = bestTokens(row);
    return best.length > 1 ? -1 : best[0];
  });

/**
 * (x_selected - x_t) z^T for all other tokens of all sequences.
 *
 * Sequences that are not among the `supports` are only to keep their token, with a bound of zero:
 * attention beside a head that they do not hold. Tokens that are `level` with the selected one
 * put no constraint on it; those that are to stay `equal` to it put two, one against the other.
 */
export function constraints(
  problem: Problem,
  selection: readonly number[],
  supports?: readonly boolean[],
  level?: (i: number, t: number) => boolean,
  equal?: (i: number, t: number) => boolean,
): Constraints {
  const prompt = isPrompt(problem);
  const rows: number[] = [];
  const low: number[] = [];
  const bounds: number[] = [];
  const sequence: number[] = [];
  const token: number[] = [];
  problem.keys.forEach((keys, i) => {
    const kept = keys[selection[i]];
    if (!kept) return;
    keys.forEach((key, t) => {
      if (t === selection[i] || level?.(i, t)) return;
      const both = equal?.(i, t);
      for (const sign of both ? [1, -1] : [1]) {
        for (let a = 0; a < kept.length; a++) {
          const x = sign * (kept[a] - key[a]);
          if (prompt) rows.push(x), low.push(0);
          else for (const z of problem.queries[i]) rows.push(x * z), low.push(productError(x, z, x * z));
        }
        bounds.push(both || (supports && !supports[i]) ? 0 : 1);
        sequence.push(i);
        token.push(t);
      }
    });
  });
  return {
    size: sizeOf(problem),
    rows: Float64Array.from(rows),
    low: Float64Array.from(low),
    bounds: Float64Array.from(bounds),
    count: sequence.length,
    sequence: Int32Array.from(sequence),
    token: Int32Array.from(token),
    tied: selection.some((t) => t < 0),
  };
}

const SPLIT = 2 ** 27 + 1;

/** x y - product, exactly, by Dekker's halves. */
export function productError(x: number, y: number, product: number): number {
  const a = SPLIT * x;
  const b = SPLIT * y;
  const xh = a - (a - x);
  const yh = b - (b - y);
  const xl = x - xh;
  const yl = y - yh;
  return xl * yl - (product - xh * yh - xl * yh - xh * yl);
}

/** The effective matrix W of parameters, row-major; of a prompt p itself. */
export function effective(problem: Problem, w: ArrayLike<number>): Float64Array {
  const [d, e] = shapeOf(problem);
  const out = vector(d * e);
  for (let a = 0; a < d; a++) {
    for (let b = 0; b < e; b++) {
      if (problem.parameterization !== "KQ") out[a * e + b] = w[a * e + b];
      else for (let m = 0; m < d; m++) out[a * e + b] += w[a * d + m] * w[d * d + b * d + m];
    }
  }
  return out;
}

/** The vector W z_i that scores the tokens of sequence i, for an effective matrix; typed as in the plane. */
export function direction(problem: Problem, w: ArrayLike<number>, i: number): [number, number] {
  const [d, e] = shapeOf(problem);
  return Array.from({ length: d }, (_, a) => {
    if (isPrompt(problem)) return w[a];
    let sum = 0;
    for (let b = 0; b < e; b++) sum += w[a * e + b] * problem.queries[i][b];
    return sum;
  }) as [number, number];
}

/** All selections, one token a sequence; the caller bounds their number. */
export function* selections(problem: Problem): Generator<number[]> {
  const lengths = problem.keys.map((keys) => keys.length);
  const current = lengths.map(() => 0);
  for (;;) {
    yield current.slice();
    let i = lengths.length - 1;
    while (i >= 0 && ++current[i] === lengths[i]) current[i--] = 0;
    if (i < 0) return;
  }
}
