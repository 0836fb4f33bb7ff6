// Basins on the disk, cell by cell, beside everything else: in a worker, or in slices on the page.

import { Basins } from "../core/basins";
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
  let go: () => void = () => undefined;
  breath.port1.onmessage = () => go();
  const pause = (): Promise<void> => new Promise((resolve) => { go = resolve; breath.port2.postMessage(0); });
  const work = async (): Promise<void> => {
    busy = true;
    while (waiting) {
      const job: Job = waiting;
      waiting = null;
      const picture = paint(job);
      const begun = performance.now();
      let shown = begun;
      for (;;) {
        const slice = performance.now();
        let step = picture.next();
        while (!step.done && performance.now() - slice < SLICE) step = picture.next();
        const now = performance.now();
        const late = job.preview && now - begun > PREVIEW;
        if (step.done || late || now - shown > SHOWN) {
          port.postMessage({ ...step.value, done: !!step.done || late });
          shown = now;
        }
        if (step.done || late) break;
        await pause();
        if (waiting && !job.preview) break;
      }
    }
    busy = false;
  };
  port.onmessage = ({ data }) => {
    waiting = data as Job;
    if (!busy) void work();
  };
}

function* paint({ id, problem, training, cells, steps, unit, preview }: Job): Generator<Painted, Painted> {
  const basins = new Basins(problem, training);
  const numbers = new Int16Array(cells * cells).fill(OUTSIDE);
  const selections: number[][] = [];
  const names = new Map<string, number>();
  const picture = { id, cells, numbers, selections, done: false, preview };
  let lost = 0; // where hardly anything settles, starts are not followed for long
  let done = 0;
  for (const [row, rows] of interleaved(cells)) {
    for (let column = 0; column < cells; column++) {
      const x = (2 * (column + 0.5)) / cells - 1;
      const y = 1 - (2 * (row + 0.5)) / cells;
      const r = Math.hypot(x, y);
      if (r > 1 + 2 / cells) continue;
      const within = Math.min(r, 0.97);
      const far = r ? (unit * within) / (1 - within) / r : 0;
      const most = lost > 20 && lost > 0.9 * done ? steps >> 3 : steps;
      const held = basins.follow([x * far, y * far], most);
      done++;
      let number = NOT_SETTLED;
      if (held) {
        const name = held.selection.join();
        if (!names.has(name)) { names.set(name, selections.length); selections.push(held.selection); }
        number = names.get(name)!;
      } else lost++;
      for (let k = 0; k < rows; k++) numbers[(row + k) * cells + column] = number;
      if (done % 4 === 0) yield picture;
    }
  }
  return picture;
}

/** Rows to compute, and how many each stands for until the rows below it are computed too. */
function* interleaved(count: number): Generator<[number, number]> {
  for (const [first, rows] of [[0, 4], [2, 2], [1, 1], [3, 1]]) {
    for (let row = first; row < count; row += 4) yield [row, Math.min(rows, count - row)];
  }
}
