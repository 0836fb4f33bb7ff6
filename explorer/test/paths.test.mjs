// Paths against the library's, as long as they are determined: until gradients that differ by a
// rounding lead elsewhere. Steps of constant length around a minimum are chaos.

import assert from "node:assert/strict";
import test from "node:test";
import * as core from "../build/core.mjs";
import { reference } from "./reference.mjs";

const DETERMINED = 1e-10;
const JITTERS = 4;

let seed = 1;
const random = () => (seed = (seed * 1103515245 + 12345) % 2147483648) / 2147483648;

/** The same training with every gradient off by a rounding. */
function jittered({ problem, training, start, steps }) {
  const gradient = core.gradientOf(problem, training.plain);
  const w = Float64Array.from(start);
  const { begin, step } = core.stepperOf(training, gradient);
  begin(start);
  const points = [];
  let done = 0;
  for (const until of steps) {
    for (; done < until; done++) {
      gradient.at(w);
      for (let k = 0; k < gradient.size; k++) gradient.mantissa[k] *= 1 + (random() - 0.5) * 2 ** -50;
      if (step(w) !== 1) done = Infinity;
    }
    points.push(Array.from(w));
  }
  return points;
}

const apart = (a, b) => Math.hypot(...a.map((x, k) => x - b[k])) / Math.max(1, Math.hypot(...a));

test("paths", () => {
  const table = {};
  let determined = 0;
  const wrong = [];
  for (const [number, one] of reference("paths").entries()) {
    const { problem, training, start, steps, points } = one;
    const path = core.train(problem, training, start, Int32Array.from(steps));
    assert.equal(path.reason !== "", one.status !== "0", `${number}: ${path.reason}, but ${one.status} in the library`);
    const own = steps.map((_, r) => Array.from(path.parameters.subarray(r * start.length, (r + 1) * start.length)));
    const shaken = Array.from({ length: JITTERS }, () => jittered(one));
    const row = (table[`${problem.parameterization} ${training.optimizer}`] ??= { runs: 0, whole: 0, steps: Infinity, worst: 0 });
    row.runs++;
    let until = 0;
    for (let r = 0; r < steps.length; r++) {
      // Of ordinary gradients, rounding decides the direction as soon as attention saturates.
      if (training.plain && steps[r] > 10) break;
      const jitter = Math.max(...shaken.map((other) => apart(own[r], other[r])));
      if (jitter > DETERMINED) break;
      const off = apart(points[r], own[r]);
      row.worst = Math.max(row.worst, off);
      if (off > 1e-9) wrong.push({ number, step: steps[r], off, jitter, ...training, kind: problem.parameterization, loss: problem.loss, end: [points[r], own[r]] });
      until = steps[r];
    }
    row.steps = Math.min(row.steps, until);
    if (until === steps.at(-1)) row.whole++;
    determined += until === steps.at(-1);
  }
  console.table(Object.fromEntries(Object.entries(table).sort().map(([k, r]) => [k, { ...r, worst: r.worst.toExponential(1) }])));
  console.log(`${determined} paths are determined to their end`);
  if (wrong.length) console.dir(wrong, { depth: 3 });
  assert.equal(wrong.length, 0);
  assert.ok(determined >= 0.6 * reference("paths").length);
});
