// Contradictions of constraints, decided without rounding: floating-point numbers are integers
// times a power of two.

import type { Row } from "./active_set";
import { vector, type Vector } from "./linear";

/** x = mantissa * 2^exponent. */
function parts(x: number): [bigint, number] {
  if (x === 0) return [0n, 0];
  const exponent = Math.max(-1074, Math.floor(Math.log2(Math.abs(x))) - 54);
  return [BigInt(x / 2 ** exponent), exponent];
}

/** Rows as integers, each multiplied by a power of two of its own: it does not matter here. */
function integers({ row, low }: Row): { entries: bigint[]; exponent: number } {
  const terms = Array.from(row, (x, k) => [parts(x), parts(low[k])]);
  const used = terms.flat().filter(([m]) => m !== 0n).map(([, e]) => e);
  const exponent = used.length ? Math.min(...used) : 0;
  return { exponent, entries: terms.map((pair) => pair.reduce((sum, [m, e]) => (m ? sum + (m << BigInt(e - exponent)) : sum), 0n)) };
}

/**
 * Multipliers, none negative, that combine some of the constraints into exactly 0 >= 1; null where
 * there are none, so that the constraints of the set are feasible. It is the first phase of the
 * simplex method in integers, with Bland's rule.
 */
export function contradiction(problem: readonly Row[], set: readonly number[]): Vector | null {
  const d = problem[0].row.length;
  const rows = set.map((j) => integers(problem[j]));
  const n = set.length;
  const t = Array.from({ length: d + 1 }, (_, k) =>
    [...rows.map(({ entries }, c) => (k < d ? entries[k] : BigInt(problem[set[c]].bound))), BigInt(k === d)]);
  const basis = new Array<number>(d + 1).fill(-1); // -1: an artificial variable
  let scale = 1n;
  for (;;) {
    const open = t.filter((_, r) => basis[r] < 0);
    if (open.every((row) => row[n] === 0n)) break;
    const column = rows.findIndex((_, c) => !basis.includes(c) && open.reduce((sum, row) => sum + row[c], 0n) > 0n);
    if (column < 0) return null;
    let pivot = -1;
    for (let r = 0; r <= d; r++) {
      if (t[r][column] <= 0n) continue;
      const less = pivot < 0 ? -1n : t[r][n] * t[pivot][column] - t[pivot][n] * t[r][column];
      if (less < 0n || (less === 0n && basis[r] < basis[pivot])) pivot = r;
    }
    const row = t[pivot];
    for (let r = 0; r <= d; r++) {
      if (r === pivot) continue;
      const factor = t[r][column];
      t[r] = t[r].map((x, c) => (row[column] * x - factor * row[c]) / scale);
    }
    scale = row[column];
    basis[pivot] = column;
  }
  // As numbers, the largest of them one: each has a power of two of its own.
  const found = basis.flatMap((c, r) => (c >= 0 && t[r][n] > 0n ? [{ c, x: t[r][n], log: bits(t[r][n]) - rows[c].exponent }] : []));
  const top = Math.max(...found.map(({ log }) => log));
  const out = vector(problem.length);
  for (const { c, x } of found) {
    const shift = Math.max(0, bits(x) - 60);
    out[set[c]] = Number(x >> BigInt(shift)) * 2 ** (shift - rows[c].exponent - top);
  }
  return out;
}

const bits = (x: bigint): number => x.toString(2).length;
