// Gradients to 1e-12 of the library's and of those of 1,300 digits, at score gaps up to 2,000.

import assert from "node:assert/strict";
import test from "node:test";
import * as core from "../build/core.mjs";
import { reference } from "./reference.mjs";

const cases = reference("gradients");

/** The largest error, relative to the largest entry. */
function error(mantissa, scale, wanted, wantedScale) {
  const top = Math.max(...wanted.map(Math.abs));
  if (wantedScale === null || wantedScale < -1e299 || top === 0) return mantissa.every((x) => x === 0) || scale === -Infinity ? 0 : Infinity;
  return Math.max(...mantissa.map((x, k) => Math.abs(x * Math.exp(scale - wantedScale) - wanted[k]))) / top;
}

const arrays = ({ arrays, mantissa }) => arrays.map(({ from, to }) => [...mantissa.slice(from, to)]);

test("gradients", () => {
  const worst = {};
  const note = (key, e) => (worst[key] = Math.max(worst[key] ?? 0, e));
  for (const one of cases) {
    const gradient = core.gradientOf(one.problem);
    gradient.at(one.w);
    const kind = one.problem.parameterization;
    arrays(gradient).forEach((mantissa, r) => {
      const own = error(mantissa, gradient.logScales[r], one.oracle[r].m, one.oracle[r].s);
      const theirs = error(one.library[r].m, one.library[r].s[0], one.oracle[r].m, one.oracle[r].s);
      note(`${kind}: browser against 1,300 digits`, own);
      note(`${kind}: library against 1,300 digits`, theirs);
      note(`${kind}: browser against library`, error(mantissa, gradient.logScales[r], one.library[r].m, one.library[r].s[0]));
      assert.ok(own < 1e-12, `${kind} ${one.gap}`);
    });
  }
  console.table(Object.fromEntries(Object.entries(worst).map(([k, e]) => [k, e.toExponential(1)])));
});

test("ordinary gradients vanish where the library's do", () => {
  for (const one of cases) {
    const gradient = core.gradientOf(one.problem, true);
    gradient.at(one.w);
    arrays(gradient).forEach((mantissa, r) => {
      // What is left of them is rounding of terms as large as keys and scores.
      mantissa.forEach((x, k) => assert.ok(Math.abs(x * Math.exp(gradient.logScales[r]) - one.plain[r].m[k]) < 1e-14 * (1 + Math.hypot(...one.w)) ));
    });
  }
});

test("entries have scales of their own", () => {
  for (const one of cases) {
    const gradient = core.gradientOf(one.problem);
    gradient.at(one.w);
    gradient.signed(one.w);
    const exact = one.oracle.flatMap(({ m, s }) => m.map((x) => [x, s]));
    one.entries.flatMap(({ m, s }) => m.map((x, k) => [x, s.length > 1 ? s[k] : s[0]])).forEach(([x, s], k) => {
      // Where terms of the largest scale cancel, what is left is rounding in both.
      const rounded = exact[k][1] !== null && Math.abs(exact[k][0]) < 1e-10 && s < exact[k][1] - 50;
      if (x === 0 || rounded) return;
      assert.ok(Math.abs((gradient.mantissa[k] / x) * Math.exp(gradient.entryScales[k] - s) - 1) < 3e-11, `${one.problem.parameterization} ${one.gap} ${k}`);
    });
  }
});
