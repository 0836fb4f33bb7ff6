// What is shown: sequences of tokens in the plane, a score for each, and what is trained.

import type { LossName, Parameterization } from "../state";

export interface Problem {
  /** keys[i][t] = [x, y] */
  keys: number[][][];
  /** scores[i][t] = y_i h(x_it): what attention gains by keeping token t. */
  scores: number[][];
  /** queries[i] = [x, y]; read where W is trained. */
  queries: number[][];
  parameterization: Parameterization;
  loss: LossName;
}

/** Rank-one constraints <A_j, W> >= 1 as rows; a prompt has 2 entries, a matrix 4 (row-major). */
export interface Constraints {
  size: number;
  rows: Float64Array;
  count: number;
  sequence: Int32Array;
  token: Int32Array;
}

export const sizeOf = (problem: Problem): number => (problem.parameterization === "p" ? 2 : 4);

/** The first token of highest score in every sequence. */
export function optimalTokens(problem: Problem): number[] {
  return problem.scores.map((row) => row.indexOf(Math.max(...row)));
}

/** (x_selected - x_t) z^T for all other tokens of all sequences. */
export function constraints(problem: Problem, selection: readonly number[]): Constraints {
  const size = sizeOf(problem);
  const rows: number[] = [];
  const sequence: number[] = [];
  const token: number[] = [];
  problem.keys.forEach((keys, i) => {
    const kept = keys[selection[i]];
    const z = problem.parameterization === "p" ? [1] : problem.queries[i];
    keys.forEach((key, t) => {
      if (t === selection[i]) return;
      for (let a = 0; a < 2; a++) for (const b of z) rows.push((kept[a] - key[a]) * b);
      sequence.push(i);
      token.push(t);
    });
  });
  return {
    size,
    rows: Float64Array.from(rows),
    count: sequence.length,
    sequence: Int32Array.from(sequence),
    token: Int32Array.from(token),
  };
}

/** The vector W z_i that scores the tokens of sequence i. */
export function direction(problem: Problem, w: ArrayLike<number>, i: number): [number, number] {
  if (problem.parameterization === "p") return [w[0], w[1]];
  const [a, b] = problem.queries[i];
  return [w[0] * a + w[1] * b, w[2] * a + w[3] * b];
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
