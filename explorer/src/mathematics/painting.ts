// Basins on the disk, cell by cell, beside everything else: in a worker, or in slices on the page.

import { basinsOf } from "../core/basins";
import type { Problem } from "../core/problem";
import type { Training } from "../state";

/** One picture to paint. A preview has few cells and long steps, and is finished before the next job. */
export interface Job {
  id: number;
  problem: Problem;
  training: Training;
  cells: number;
  steps: number;
  /** p is drawn at p / (|p| + unit). */
  unit: number;
  preview: boolean;
}

/** What is known so far: the number of the selection in every cell, or -1 where it does not settle, -2 outside. */
export interface Painted {
  id: number;
  cells: number;
  numbers: Int16Array;
  selections: number[][];
  done: boolean;
  preview: boolean;
}

const [OUTSIDE, NOT_SETTLED] = [-2, -1];
const SLICE = 6; // milliseconds before messages are looked for
const SHOWN = 120; // milliseconds between pictures
const PREVIEW = 40; // milliseconds that a preview may take

interface Port {
  postMessage(message: Painted): void;
  onmessage: ((event: MessageEvent) => void) | null;
}

/** Paints what is asked for at a port; a later job replaces the one at work. */
export function serve(port: Port): void {
  let waiting: Job | null = null;
  let busy = false;
  const breath = new MessageChannel();
  const pause = (): Promise<void> => new Promise((resolve) => {
    breath.port1.onmessage = () => resolve();
    breath.port2.postMessage(0);
  });
  port.onmessage = async ({ data }) => {
    waiting = data as Job;
    if (busy) return;
    busy = true;
    for (let job: Job | null; (job = waiting); ) {
      waiting = null;
      const picture = paint(job);
      const begun = performance.now();
      let shown = begun;
      for (let ready = false; !ready && (!waiting || job.preview); ) {
        const slice = performance.now();
        let step = picture.next();
        while (!step.done && performance.now() - slice < SLICE) step = picture.next();
        const now = performance.now();
        ready = step.done || (job.preview && now - begun > PREVIEW);
        if (ready || now - shown > SHOWN) {
          port.postMessage({ ...step.value, done: ready });
          shown = now;
        }
        if (!ready) await pause();
      }
    }
    busy = false;
  };
}

function* paint({ id, problem, training, cells, steps, unit, preview }: Job): Generator<Painted, Painted> {
  const basins = basinsOf(problem, training);
  const numbers = new Int16Array(cells * cells).fill(OUTSIDE);
  const selections: number[][] = [];
  const names = new Map<string, number>();
  const picture = { id, cells, numbers, selections, done: false, preview };
  let lost = 0; // where hardly anything settles, starts are not followed for long
  let done = 0;
  // Every fourth row first, which stands for those below it until they are computed too.
  for (const [first, rows] of [[0, 4], [2, 2], [1, 1], [3, 1]]) {
    for (let row = first; row < cells; row += 4) {
      for (let column = 0; column < cells; column++) {
        const [x, y] = [(2 * column + 1) / cells - 1, 1 - (2 * row + 1) / cells];
        const r = Math.hypot(x, y);
        if (r > 1 + 2 / cells) continue;
        const within = Math.min(r, 0.97);
        const far = r ? (unit * within) / (1 - within) / r : 0;
        const held = basins.follow([x * far, y * far], lost > 20 && lost > 0.9 * done ? steps >> 3 : steps);
        let number = NOT_SETTLED;
        if (held) {
          const name = held.selection.join();
          if (!names.has(name)) names.set(name, selections.push(held.selection) - 1);
          number = names.get(name)!;
        } else lost++;
        for (let k = row; k < Math.min(row + rows, cells); k++) numbers[k * cells + column] = number;
        if (++done % 4 === 0) yield picture;
      }
    }
  }
  return picture;
}
