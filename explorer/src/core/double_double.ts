// Sums of products in twice the working precision: where cancellation would leave nothing of a margin.

import { productError } from "./problem";

/** The low part of the last sum. */
export let rest = 0;

/** sum_k (a + al)_{i + k} (x + xl)_k over `n` entries; the high part is returned, the low one left in `rest`. */
export function innerProduct(
  a: Float64Array, al: Float64Array, i: number, x: Float64Array, xl: Float64Array, n: number,
): number {
  let high = 0;
  let low = 0;
  for (let k = 0; k < n; k++) {
    const p = a[i + k] * x[k];
    low += productError(a[i + k], x[k], p) + a[i + k] * xl[k] + al[i + k] * x[k];
    const sum = high + p;
    const part = sum - high;
    low += high - (sum - part) + (p - part);
    high = sum;
  }
  const sum = high + low;
  rest = low - (sum - high);
  return sum;
}

/** (x, xl) += y, entry by entry. */
export function accumulate(x: Float64Array, xl: Float64Array, y: ArrayLike<number>): void {
  for (let k = 0; k < x.length; k++) {
    const sum = x[k] + y[k];
    const part = sum - x[k];
    const low = xl[k] + (x[k] - (sum - part) + (y[k] - part));
    x[k] = sum + low;
    xl[k] = low - (x[k] - sum);
  }
}
