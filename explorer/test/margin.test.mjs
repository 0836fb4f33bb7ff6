// Margin problems: verdicts, values, bounds and support against the library's.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import test from "node:test";
import * as core from "../build/core.mjs";
import { reference } from "./reference.mjs";

test("margin problems of the reference", () => {
  const table = {};
  const answers = [];
  const differences = [];
  for (const [number, one] of reference("margin").entries()) {
    const norm = core.parseNorm(one.norm);
    const { solution } = core.attractorOf(one.problem, norm, core.optimalTokens(one.problem), one.problem.supports);
    const row = (table[`${one.problem.parameterization} ${one.norm}`] ??= { problems: 0, infeasible: 0, gap: 0, value: 0, theirGap: 0 });
    row.problems++;
    const { value, lower, feasible, evidence = {} } = solution;
    const digits = Object.fromEntries(Object.entries(evidence).map(([name, array]) => [name, [...array]]));
    answers.push({ number, status: solution.status, value, lower, feasible, multipliers: [...solution.multipliers], evidence: digits });
    // A solution of the library whose gap is wide is a solution all the same; "infeasible" it says to
    // working precision, and of these the exact truth is in the reference.
    const status = solution.status === "tied" ? "tied" : { true: "solved", false: "infeasible", null: "not settled" }[solution.feasible];
    const wanted = one.status === "tied" ? "tied" : one.exact ? "solved" : "infeasible";
    if (status !== wanted) differences.push({ number, ...one, problem: undefined, mine: solution.status });
    if (solution.feasible && solution.status === "not settled") row.wide = (row.wide ?? 0) + 1;
    if (status === "infeasible") row.infeasible++;
    if (status !== "solved" || wanted !== "solved" || !(one.value < Infinity) || !(solution.value < Infinity)) continue;
    row.gap = Math.max(row.gap, solution.gap);
    row.theirGap = Math.max(row.theirGap, one.gap);
    // Where the library's own gap is wide, its value is only that far known.
    const off = one.value === 0 ? solution.value : Math.abs(solution.value / one.value - 1);
    if (one.gap < 1e-10) row.value = Math.max(row.value, off);
    if (off > 1e-9 + one.gap) differences.push({ number, off, ...one, problem: undefined, mine: solution.value });
    assert.ok(solution.lower <= one.value * (1 + 1e-15), `${number}: a bound above the library's value`);
    assert.ok(one.lower <= solution.value * (1 + 1e-15), `${number}: a value below the library's bound`);
    const unique = !norm.schatten && norm.p > 1 && norm.p < Infinity;
    if (!unique || one.gap > 1e-12) continue;
    const support = solution.support.flatMap((s, j) => (s ? [j] : []));
    row.supports = (row.supports ?? 0) + 1;
    if (support.join() !== one.support.join()) differences.push({ number, norm: one.norm, support, theirs: one.support });
  }
  if (!process.env.SMALL) writeFileSync(new URL("../build/answers.json", import.meta.url), JSON.stringify(answers));
  const power = (x) => x.toExponential(1);
  console.table(Object.fromEntries(Object.entries(table).sort().map(([k, r]) => [k, { ...r, gap: power(r.gap), value: power(r.value), theirGap: power(r.theirGap) }])));
  if (differences.length) console.dir(differences, { depth: 3 });
  assert.equal(differences.length, 0);
});
