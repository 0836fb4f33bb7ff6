// Sums of products in twice the working precision: where cancellation would leave nothing of a margin.

import type { Vector } from "./linear";

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

/** x + y - sum, exactly, by Knuth's way. */
export function sumError(x: number, y: number, sum: number): number {
  const part = sum - x;
  return x - (sum - part) + (y - part);
}

/** The low part of the last inner product. */
export let rest = 0;

/** <a + al, x + xl>: the high part is returned, the low one left in `rest`. */
export function innerProduct(a: ArrayLike<number>, al: ArrayLike<number>, x: ArrayLike<number>, xl: ArrayLike<number>): number {
  let high = 0;
  let low = 0;
  for (let k = 0; k < a.length; k++) {
    const p = a[k] * x[k];
    const sum = high + p;
    low += productError(a[k], x[k], p) + a[k] * xl[k] + al[k] * x[k] + sumError(high, p, sum);
    high = sum;
  }
  const sum = high + low;
  rest = low - (sum - high);
  return sum;
}

/** (x, xl) += y, entry by entry. */
export function accumulate(x: Vector, xl: Vector, y: ArrayLike<number>): void {
  for (let k = 0; k < x.length; k++) {
    const sum = x[k] + y[k];
    const low = xl[k] + sumError(x[k], y[k], sum);
    x[k] = sum + low;
    xl[k] = low - (x[k] - sum);
  }
}
