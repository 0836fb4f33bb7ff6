// Contradictions of constraints, decided without rounding: floating-point numbers are integers
// times a power of two.

import type { Rows } from "./active_set";

const BITS = new DataView(new ArrayBuffer(8));

/** x = mantissa * 2^exponent. */
function parts(x: number): [bigint, number] {
  if (x === 0) return [0n, 0];
  BITS.setFloat64(0, x);
  const high = BITS.getUint32(0);
  const power = (high >>> 20) & 2047;
  const fraction = (BigInt(high & 0xfffff) << 32n) | BigInt(BITS.getUint32(4));
  const size = power ? fraction | (1n << 52n) : fraction;
  return [x < 0 ? -size : size, (power || 1) - 1075];
}

/** Rows as integers, each multiplied by a power of two of its own: it does not matter here. */
function integers({ rows, low, size }: Rows, j: number): { entries: bigint[]; exponent: number } {
  const terms = Array.from({ length: size }, (_, k) => [parts(rows[j * size + k]), parts(low[j * size + k])]);
  const used = terms.flat().filter(([m]) => m !== 0n).map(([, e]) => e);
  const exponent = used.length ? Math.min(...used) : 0;
  const entries = terms.map((pair) => pair.reduce((sum, [m, e]) => (m === 0n ? sum : sum + (m << BigInt(e - exponent))), 0n));
  return { entries, exponent };
}

/**
 * Multipliers, none negative and some positive on a bound of one, that combine constraints of a set
 * into exactly nothing; null unless the set has just one such combination.
 */
export function contradiction(problem: Rows, set: readonly number[]): Float64Array | null {
  const { size: d, bounds, count } = problem;
  const rows = set.map((j) => integers(problem, j));
  const n = set.length;
  // Elimination without fractions on the columns: the combination is the null vector.
  const a = Array.from({ length: d }, (_, k) => rows.map((row) => row.entries[k]));
  const pivots: number[] = [];
  let previous = 1n;
  for (let column = 0, row = 0; column < n && row < d; column++) {
    const found = a.findIndex((values, r) => r >= row && values[column] !== 0n);
    if (found < 0) continue;
    [a[row], a[found]] = [a[found], a[row]];
    for (let r = 0; r < d; r++) {
      if (r === row) continue;
      const factor = a[r][column];
      for (let k = 0; k < n; k++) a[r][k] = (a[row][column] * a[r][k] - factor * a[row][k]) / previous;
    }
    previous = a[row][column];
    pivots.push(column);
    row++;
  }
  if (pivots.length !== n - 1) return null;
  const free = Array.from({ length: n }, (_, k) => k).find((k) => !pivots.includes(k))!;
  const scale = pivots.length ? a[0][pivots[0]] : 1n;
  const weight = Array.from({ length: n }, (_, k) => (k === free ? scale : -a[pivots.indexOf(k)][free]));
  const sign = scale < 0n ? -1n : 1n;
  if (weight.some((x) => x * sign < 0n)) return null;
  if (!set.some((j, k) => weight[k] !== 0n && bounds[j] > 0)) return null;
  // As numbers: the largest is brought to one, each row's own power of two put back.
  const logs = weight.map((x, k) => (x === 0n ? -Infinity : bits(x) - rows[k].exponent));
  const top = Math.max(...logs);
  const out = new Float64Array(count);
  weight.forEach((x, k) => {
    if (x === 0n) return;
    const shift = BigInt(Math.max(0, bits(x) - 60));
    out[set[k]] = Number((x * sign) >> shift) * 2 ** (Number(shift) - rows[k].exponent - top);
  });
  return out;
}

const bits = (x: bigint): number => (x < 0n ? -x : x).toString(2).length;
