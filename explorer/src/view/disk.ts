// The plane of parameters on a disk: p is drawn at p / (|p| + r), so that its rim is infinity.

import type { Attractor } from "../core/analysis";
import type { Answers, Moment } from "../answers";
import type { Painted } from "../mathematics/painting";
import { subscript } from "../words";
import { draggable } from "./drag";
import { rounded } from "./plane";
import { BASIN, RUN, SEQUENCE } from "./style";
import { fixed, line, Pool, set, shape, svg } from "./svg";

export const SIZE = 440;
const HALF = SIZE / 2;
const SHADE = 150; // of 255
export const RADIUS = 184;
/** How far from the middle one unit of p is: 1 / 3 of the radius. */
export const UNIT = 2;

export class Disk {
  readonly element = document.createElement("div");
  readonly canvas = document.createElement("canvas");
  readonly svg = svg("svg", { viewBox: `0 0 ${SIZE} ${SIZE}`, role: "group", "aria-label": "where training goes" });
  private readonly rim = svg("g");
  private readonly paths = svg("g", { fill: "none", "stroke-linejoin": "round", "stroke-linecap": "round" });
  private readonly ends = svg("g");
  private readonly ticks = new Pool(this.rim, "path", { "stroke-width": 6, "stroke-linecap": "round" });
  private readonly labels = new Pool(this.rim, "text", { "text-anchor": "middle", class: "name" });
  private readonly halos = new Pool(this.paths, "path", { stroke: "var(--paper)", "stroke-width": 5, opacity: 0.7 });
  private readonly lines = new Pool(this.paths, "path", { "stroke-width": 2.2 });
  private readonly now = new Pool(this.ends, "path", { stroke: "var(--paper)", "stroke-width": 1.5 });
  private readonly start = svg("g", { class: "token", tabindex: 0, role: "button", "aria-roledescription": "draggable start", "data-start": 1 },
    svg("circle", { class: "halo", r: 18 }),
    svg("circle", { r: 6, fill: "var(--paper)", stroke: "var(--ink)", "stroke-width": 2 }));
  private answers!: Answers;
  private drawn: Answers | null = null;
  private last: Painted | null = null;

  constructor(private readonly onStart: (to: [number, number]) => void, onDone: () => void) {
    this.element.className = "stage";
    this.canvas.width = this.canvas.height = 1;
    this.element.append(this.canvas, this.svg);
    this.svg.append(
      svg("circle", { cx: HALF, cy: HALF, r: RADIUS, class: "rim" }), this.rim, this.paths, this.ends, this.start);
    draggable(this.svg, this.start, SIZE, {
      at: () => this.answers.state.start as [number, number],
      world: (x, y) => this.world(x, y),
      step: () => 0.05 * (1 + Math.hypot(...this.answers.state.start)),
      go: ([x, y]) => this.onStart([rounded(x), rounded(y)]),
      done: onDone,
    });
  }

  draw(answers: Answers, moments: Moment[], colors: Map<string, number>): void {
    this.answers = answers;
    const { problem, runs, state } = answers;
    const single = problem.parameterization === "p";
    const count = single ? 1 : problem.keys.length;
    if (this.drawn !== answers) {
      this.drawn = answers;
      runs.forEach((run, k) => {
        for (let i = 0; i < count; i++) {
          const d = line(run.steps.length, (r) =>
            this.pixel(answers.direction(run.points, i, r * run.size)), 0.8);
          this.halos.take({ d });
          this.lines.take({ d, stroke: single || k ? RUN[k] : SEQUENCE[i % SEQUENCE.length], "stroke-dasharray": k ? "7 5" : undefined });
        }
        if (!run.heads) return;
        const d = line(run.steps.length, (r) => this.pixel(answers.head(run, r)), 0.8);
        this.halos.take({ d });
        this.lines.take({ d, stroke: "var(--head)", "stroke-dasharray": k ? "7 5" : undefined });
      });
      this.halos.done();
      this.lines.done();
      this.drawRim(colors);
      const drags = state.parameterization === "p" && !state.projection;
      set(this.start, { display: single ? undefined : "none", class: drags ? "token" : "token still", tabindex: drags ? 0 : -1 });
      const begin = answers.direction(runs[0].points, 0);
      set(this.start, { transform: `translate(${this.at(this.pixel(begin))})`,
        "aria-label": `start of training at ${begin.map((x) => fixed(x, 2)).join(", ")}` });
    }
    moments.forEach((moment, k) => {
      for (let i = 0; i < count; i++) {
        const color = single || k ? RUN[k] : SEQUENCE[i % SEQUENCE.length];
        this.now.take({ d: shape(single ? 0 : i, 5), fill: color,
          transform: `translate(${this.at(this.pixel(answers.direction(moment.point, i)))})` });
      }
    });
    this.now.done();
  }

  /** Ticks on the rim: the directions that training can end in. */
  private drawRim(colors: Map<string, number>): void {
    const { problem, attractors, predicted, runs } = this.answers;
    const single = problem.parameterization === "p";
    const shown = new Map<string, Attractor>();
    const add = (one: Attractor): void => {
      if (one.solution.status === "solved") shown.set(this.answers.direction(one.solution.w, 0).map((x) => fixed(x, 6)).join(), one);
    };
    attractors.forEach(add);
    predicted.forEach(add);
    runs.forEach((run) => single && add(run.attractor));
    const taken: [number, number][] = [];
    for (const one of shown.values()) {
      for (let i = 0; i < (single ? 1 : problem.keys.length); i++) {
        const [x, y] = this.answers.direction(one.solution.w, i);
        const size = Math.hypot(x, y);
        if (!(size > 0)) continue;
        const at = (r: number): [number, number] => [HALF + (x / size) * r, HALF - (y / size) * r];
        const color = single ? basinColor(colors, one.selection) : one === predicted[1] ? RUN[1] : SEQUENCE[i % SEQUENCE.length];
        this.ticks.take({ d: `M${this.at(at(RADIUS - 8))}L${this.at(at(RADIUS + 8))}`, stroke: color });
        if (!single && one === predicted[1]) continue;
        const words = single ? one.selection.join(" ") : `Wz${subscript(String(i))}`;
        const [u, v] = at(RADIUS + 21);
        if (taken.some(([a, b]) => Math.hypot(a - u, b - v) < 16)) continue;
        taken.push([u, v]);
        this.labels.text(words, { x: fixed(u), y: fixed(v + 4), class: one.globallyOptimal ? "name best" : "name" });
      }
    }
    for (const run of runs) {
      if (!run.heads) continue;
      const [x, y] = this.pixel(this.answers.head(run, run.steps.length - 1));
      this.labels.text("v", { x: fixed(x + 12), y: fixed(y + 14), class: "name" });
    }
    this.ticks.done();
    this.labels.done();
  }

  /** Shows what is painted of the basins. */
  paint(painted: Painted, colors: Map<string, number>, none: string): void {
    this.last = painted;
    const { cells, numbers, selections } = painted;
    const shades = selections.map((selection) => rgb(basinColor(colors, selection)));
    const gray = rgb(none);
    const image = new ImageData(cells, cells);
    for (let k = 0; k < numbers.length; k++) {
      if (numbers[k] < -1) continue; // outside
      const [red, green, blue] = numbers[k] < 0 ? gray : shades[numbers[k]];
      const border = [numbers[k + 1], numbers[k + cells]].some((other) => other > -2 && other !== numbers[k]);
      image.data.set([red, green, blue, border ? 255 : SHADE], 4 * k); // borders are seen without color, too
    }
    if (this.canvas.width !== cells) this.canvas.width = this.canvas.height = cells;
    this.canvas.getContext("2d")!.putImageData(image, 0, 0);
  }

  repaint(colors: Map<string, number>, none: string): void {
    if (this.last) this.paint(this.last, colors, none);
  }

  clear(): void {
    this.last = null;
    this.canvas.width = this.canvas.height = 1;
  }

  private pixel([x, y]: readonly [number, number]): [number, number] {
    const r = Math.hypot(x, y) + UNIT;
    return [HALF + (RADIUS * x) / r, HALF - (RADIUS * y) / r];
  }

  private at([x, y]: readonly [number, number]): string {
    return `${fixed(x)} ${fixed(y)}`;
  }

  private world(x: number, y: number): [number, number] {
    const [u, v] = [(x - HALF) / RADIUS, (HALF - y) / RADIUS];
    const r = Math.hypot(u, v);
    const within = Math.min(r, 0.94);
    const far = (UNIT * within) / (1 - within) / (r || 1);
    return [u * far, v * far];
  }
}

/** Colors of selections, in the order in which they were met. */
export function basinColor(colors: Map<string, number>, selection: readonly number[]): string {
  const name = selection.join();
  if (!colors.has(name)) colors.set(name, colors.size);
  return BASIN[colors.get(name)! % BASIN.length];
}

function rgb(color: string): [number, number, number] {
  const value = parseInt(color.trim().slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}
