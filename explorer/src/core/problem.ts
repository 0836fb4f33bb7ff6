// What is shown: sequences of tokens, a score for each, and what is trained.

import type { LossName, Parameterization } from "../state";
import { productError } from "./double_double";
import { dot, vector, type Vector } from "./linear";

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

/** A rank-one constraint <row + low, w> >= bound; a prompt has d entries, a matrix d e (row-major). */
export interface Constraint {
  row: number[];
  /** What rounding took from the row of a matrix, which is a product: row + low is exact. */
  low: number[];
  /** One; zero for sequences that need not be separated. */
  bound: number;
  sequence: number;
  token: number;
}

/** Whether a vector is sought, rather than a matrix. */
export const isPrompt = (kind: Parameterization): boolean => kind === "p" || kind === "pv";

/** A prompt is a matrix of one column, with queries of one. */
export const queriesOf = ({ parameterization, keys, queries }: Problem): number[][] =>
  isPrompt(parameterization) ? keys.map(() => [1]) : queries;

/** Rows and columns of the effective matrix. */
export const shapeOf = (problem: Problem): [number, number] => [problem.keys[0][0].length, queriesOf(problem)[0].length];

/** Entries of the effective matrix. */
export function sizeOf(problem: Problem): number {
  const [d, e] = shapeOf(problem);
  return d * e;
}

/** Where a trained array lies among the parameters, and its columns. */
export interface TrainedArray { from: number; to: number; columns: number }

/** The trained arrays, one after another: p; W; K, Q; p, v. */
export function arraysOf(problem: Problem): TrainedArray[] {
  const [d, e] = shapeOf(problem);
  const { parameterization: kind } = problem;
  if (kind === "KQ") return [{ from: 0, to: d * d, columns: d }, { from: d * d, to: d * (d + e), columns: d }];
  const first = { from: 0, to: d * e, columns: e };
  return kind === "pv" ? [first, { from: d, to: 2 * d, columns: 1 }] : [first];
}

/** The scores with which a head v reads the tokens, y_i <v, x_it>. */
export const headScores = ({ keys, labels }: Problem, v: ArrayLike<number>): number[][] =>
  keys.map((row, i) => row.map((key) => labels![i] * dot(key, v)));

const TIE = 8 * Number.EPSILON;

/** Whether scores are equal, to rounding. */
export const ties = (a: number, b: number): boolean => Math.abs(a - b) <= TIE * (Math.abs(a) + Math.abs(b));

/** The tokens of the highest score of a sequence, to rounding. */
export function bestTokens(row: readonly number[]): number[] {
  const least = Math.max(...row) - TIE * Math.max(...row.map(Math.abs));
  return row.flatMap((x, t) => (x >= least ? [t] : []));
}

/** The token of highest score in every sequence; -1 where several share it, as in the library. */
export const optimalTokens = ({ scores }: Pick<Problem, "scores">): number[] =>
  scores.map((row) => {
    const [best, other = -1] = bestTokens(row);
    return other < 0 ? best : -1;
  });

/** What is said of token t of sequence i. */
export type OfToken = (i: number, t: number) => boolean;

/**
 * (x_selected - x_t) z^T for all other tokens of all sequences; none of sequences where none is selected.
 *
 * Sequences that are not among the `supports` are only to keep their token, with a bound of zero:
 * attention beside a head that they do not hold. Tokens that are `level` with the selected one
 * put no constraint on it; those that are to stay `equal` to it put two, one against the other.
 */
export function constraints(
  problem: Problem, selection: readonly number[], supports?: readonly boolean[], level?: OfToken, equal?: OfToken,
): Constraint[] {
  const queries = queriesOf(problem);
  return problem.keys.flatMap((keys, i) => keys.flatMap((key, t) => {
    const kept = keys[selection[i]];
    if (!kept || t === selection[i] || level?.(i, t)) return [];
    const both = equal?.(i, t);
    return (both ? [1, -1] : [1]).map((sign) => {
      const factors = kept.flatMap((x, a) => queries[i].map((z) => [sign * (x - key[a]), z]));
      return {
        row: factors.map(([x, z]) => x * z),
        low: factors.map(([x, z]) => productError(x, z, x * z)),
        bound: both || (supports && !supports[i]) ? 0 : 1,
        sequence: i,
        token: t,
      };
    });
  }));
}

/** The effective matrix W of parameters, row-major; of a prompt p itself. */
export function effective(problem: Problem, w: ArrayLike<number>): Vector {
  const [d, e] = shapeOf(problem);
  const factors = problem.parameterization === "KQ";
  return Float64Array.from({ length: d * e }, (_, k) => {
    if (!factors) return w[k];
    const [a, b] = [Math.floor(k / e), k % e];
    let sum = 0;
    for (let m = 0; m < d; m++) sum += w[a * d + m] * w[(d + b) * d + m];
    return sum;
  });
}

/** The vector W z that scores tokens, for the rows of an effective matrix that begins at an entry of an array. */
export function direction(d: number, z: readonly number[], w: ArrayLike<number>, first = 0): Vector {
  const out = vector(d);
  for (let a = 0; a < d; a++) for (let b = 0; b < z.length; b++) out[a] += w[first + a * z.length + b] * z[b];
  return out;
}

/** Choices of one of each list: all, or as many as are wanted. */
export const product = (lists: number[][], most = Infinity): number[][] =>
  lists.reduce<number[][]>((found, list) => found.flatMap((one) => list.map((x) => [...one, x])).slice(0, most), [[]]);
