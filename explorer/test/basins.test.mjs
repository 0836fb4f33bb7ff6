// Basins cell by cell, and locally optimal selections, as in the library.

import assert from "node:assert/strict";
import test from "node:test";
import * as core from "../build/core.mjs";
import { reference } from "./reference.mjs";

test("basins, cell by cell", () => {
  const table = [];
  let wrong = 0;
  for (const { problem, training, extent, resolution: n, steps, most, selections, basin } of reference("basins")) {
    const basins = core.basinsOf(problem, training);
    const begun = process.cpuUsage();
    let differ = 0;
    let unsettled = 0;
    const place = (k) => (extent * (2 * k + 1 - n)) / n;
    for (let y = 0; y < n; y++) {
      for (let x = 0; x < n; x++) {
        const held = basins.follow([place(x), place(y)], most, steps);
        const wanted = basin[y][x] < 0 ? "" : selections[basin[y][x]].join();
        if (!held) unsettled++;
        if ((held?.selection.join() ?? "") !== wanted) differ++;
      }
    }
    wrong += differ;
    const { user } = process.cpuUsage(begun);
    table.push({ optimizer: training.optimizer, p: training.p, loss: problem.loss, cells: n * n, selections: selections.length, unsettled, differ, "µs a cell": Math.round(user / n / n) });
  }
  console.table(table);
  assert.equal(wrong, 0);
});

test("locally optimal selections", () => {
  for (const { problem, norm, selections } of reference("local")) {
    const found = core.locallyOptimal(problem, core.parseNorm(norm)).map(({ selection }) => selection.join()).sort();
    assert.deepEqual(found, selections.map((s) => s.join()).sort(), `${norm} ${JSON.stringify(problem)}`);
  }
});
