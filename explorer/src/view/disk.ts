// The plane of parameters on a disk: p is drawn at p / (|p| + 2), so that its rim is infinity.

import { isSolved, type Answers, type Moment, type Point } from "../answers";
import type { Attractor } from "../core/analysis";
import type { Painted } from "../mathematics/painting";
import type { State } from "../state";
import { subscript } from "../words";
import type { Drag } from "./drag";
import type { Attributes, Shape } from "./elements";
import { colorOf, dashes, fixed, HALF, line, pair, path, rounded, RUN, shape, SIZE, words } from "./marks";

const SHADE = 150; // of 255
export const RADIUS = 184;
/** How far from the middle one unit of p is: 1 / 3 of the radius. */
export const UNIT = 2;

/** Basins: the globally optimal selection first, then the others as they are met. */
const COLORS = ["#0072B2", "#56B4E9", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#999933", "#882255"];

/** Colors of selections, in the order in which they were met. */
export class BasinColors {
  private readonly met: string[] = [];

  of(selection: readonly number[]): string {
    const name = selection.join();
    if (!this.met.includes(name)) this.met.push(name);
    return COLORS[this.met.indexOf(name) % COLORS.length];
  }
}

const pixel = ([x, y]: Point): Point => {
  const r = Math.hypot(x, y) + UNIT;
  return [HALF + (RADIUS * x) / r, HALF - (RADIUS * y) / r];
};

/** What a path is drawn along, once for all moments. */
const drawn = new WeakMap<Answers, Shape[]>();

/** `change` edits the state while something is dragged. */
export function disk(
  answers: Answers, moments: Moment[], colors: BasinColors, drag: (drag: Drag) => Attributes, change: (edit: (state: State) => void) => void,
): Shape {
  const { prompt, sequences, runs, attractors, predicted, state, arrow, seen } = answers;
  const color = (i: number, k: number): string => (prompt || k ? RUN[k] : colorOf(i));

  const paths = (): Shape[] => runs.flatMap(({ steps, points, size, head }, k) => {
    const one = (color: string, at: (row: number) => Point): Shape[] => {
      const d = line(steps.length, (row) => pixel(at(row)));
      return [path(d, { class: "around" }), path(d, { class: "shaft", stroke: color, ...dashes(k, "7 5") })];
    };
    return [
      ...sequences.flatMap((i) => one(color(i, k), (row) => arrow(points, i, row * size))),
      ...(head ? one("var(--head)", (row) => seen(head(row))) : []),
    ];
  });

  /** Ticks on the rim: the directions that training can end in. */
  const rim = (): Shape[] => {
    const ticks: Shape[] = [];
    const labels: Shape[] = [];
    const shown = new Map<string, Attractor>();
    for (const one of [...attractors, ...predicted, ...(prompt ? runs.map((run) => run.attractor) : [])]) {
      if (isSolved(one)) shown.set(arrow(one.solution.w, 0).map((x) => fixed(x, 6)).join(), one);
    }
    const taken: Point[] = [];
    for (const one of shown.values()) {
      const second = !prompt && one === predicted[1];
      for (const i of sequences) {
        const [x, y] = arrow(one.solution.w, i);
        const size = Math.hypot(x, y);
        if (!(size > 0)) continue;
        const at = (r: number): Point => [HALF + (x / size) * r, HALF - (y / size) * r];
        ticks.push(path(`M${pair(at(RADIUS - 8))}L${pair(at(RADIUS + 8))}`,
          { class: "tick", stroke: prompt ? colors.of(one.selection) : color(i, Number(second)) }));
        const [u, v] = at(RADIUS + 21);
        if (second || taken.some(([a, b]) => Math.hypot(a - u, b - v) < 16)) continue;
        taken.push([u, v]);
        labels.push(words(prompt ? one.selection.join(" ") : `Wz${subscript(i)}`, u, v + 4, { class: one.globallyOptimal ? "name best" : "name" }));
      }
    }
    for (const { head, steps } of runs) {
      const [x, y] = head ? pixel(seen(head(steps.length - 1))) : [0, 0];
      if (head) labels.push(words("v", x + 12, y + 14, { class: "name" }));
    }
    return [...ticks, ...labels];
  };

  let still = drawn.get(answers);
  if (!still) drawn.set(answers, (still = [["g", {}, rim()], ["g", { class: "paths" }, paths()]]));

  const start = (): Shape => {
    const [x, y] = arrow(runs[0].points, 0);
    const moves = state.parameterization === "p" && !state.projection;
    return ["g", {
      class: moves ? "token" : "token still", tabindex: moves ? 0 : -1, role: "button", "aria-roledescription": "draggable start", "data-start": 1,
      transform: `translate(${pair(pixel([x, y]))})`, "aria-label": `start of training at ${fixed(x, 2)}, ${fixed(y, 2)}`,
      ...(moves && drag({
        at: () => state.start,
        world: (a, b) => {
          const [u, v] = [(a - HALF) / RADIUS, (HALF - b) / RADIUS];
          const r = Math.hypot(u, v);
          const within = Math.min(r, 0.94);
          const far = (UNIT * within) / (1 - within) / (r || 1);
          return [u * far, v * far];
        },
        step: 0.05 * (1 + Math.hypot(...state.start)),
        go: (to) => change((s) => { s.start = rounded(to); }),
      })),
    }, [["circle", { class: "halo", r: 18 }], ["circle", { class: "start", r: 6 }]]];
  };

  return ["svg", { class: "disk", viewBox: `0 0 ${SIZE} ${SIZE}`, role: "group", "aria-label": "where training goes" }, [
    ["circle", { cx: HALF, cy: HALF, r: RADIUS, class: "rim" }],
    ...still,
    ["g", {}, moments.flatMap(({ point }, k) => sequences.map((i) => path(shape(i, 5),
      { class: "here", fill: color(i, k), transform: `translate(${pair(pixel(arrow(point, i)))})` })))],
    ...(prompt ? [start()] : []),
  ]];
}

/** Shows what is painted of the basins; starts that do not settle have a color of their own. */
export function paintBasins(canvas: HTMLCanvasElement, { cells, numbers, selections }: Painted, colors: BasinColors, none: string): void {
  // As words of four bytes: opacity, blue, green, red.
  const word = (color: string): number => parseInt([5, 3, 1].map((k) => color.slice(k, k + 2)).join(""), 16);
  const shades = selections.map((selection) => word(colors.of(selection)));
  const image = new ImageData(cells, cells);
  const pixels = new Uint32Array(image.data.buffer);
  const gray = word(none);
  numbers.forEach((number, k) => {
    if (number < -1) return; // outside
    const differs = (other: number): boolean => other > -2 && other !== number;
    const border = differs(numbers[k + 1]) || differs(numbers[k + cells]); // seen without color, too
    pixels[k] = (shades[number] ?? gray) | ((border ? 255 : SHADE) << 24);
  });
  if (canvas.width !== cells) canvas.width = canvas.height = cells;
  canvas.getContext("2d")!.putImageData(image, 0, 0);
}
