// The plane of parameters on a disk: p is drawn at p / (|p| + r), so that its rim is infinity.

import type { Attractor } from "../core/analysis";
import { Basins } from "../core/basins";
import { direction, type Problem } from "../core/problem";
import type { Training } from "../state";
import type { Path } from "../core/train";
import { BASIN, SEQUENCE } from "./style";
import { fixed, set, svg } from "./svg";

const SIZE = 440;
const RADIUS = 180;
const NONE = -1;

export class Disk {
  readonly element = document.createElement("div");
  private readonly canvas = document.createElement("canvas");
  private readonly svg = svg("svg", { viewBox: `0 0 ${SIZE} ${SIZE}`, role: "img", "aria-label": "where training goes" });
  private readonly rim = svg("g");
  private readonly path = svg("g");
  private readonly start = svg("g", { class: "token", tabindex: 0, "data-start": 1, "aria-label": "start of training" },
    svg("circle", { class: "halo", r: 18 }),
    svg("circle", { r: 6, fill: "var(--paper)", stroke: "var(--ink)", "stroke-width": 2 }));
  private readonly now = svg("circle", { r: 4.5, fill: "var(--ink)", stroke: "var(--paper)", "stroke-width": 1.5 });
  private unit = 2;

  constructor(private readonly onStart: (to: [number, number]) => void, private readonly onDone: () => void) {
    this.element.className = "stage";
    this.element.append(this.canvas, this.svg);
    this.svg.append(
      svg("circle", { cx: SIZE / 2, cy: SIZE / 2, r: RADIUS, fill: "none", stroke: "var(--soft)", "stroke-width": 1.2 }),
      this.rim, this.path, this.now, this.start);
    let pointer = -1;
    this.start.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      pointer = event.pointerId;
      this.svg.setPointerCapture(pointer);
    });
    this.svg.addEventListener("pointermove", (event) => {
      if (event.pointerId !== pointer) return;
      const box = this.svg.getBoundingClientRect();
      const x = (((event.clientX - box.left) / box.width) * SIZE - SIZE / 2) / RADIUS;
      const y = -(((event.clientY - box.top) / box.height) * SIZE - SIZE / 2) / RADIUS;
      const r = Math.hypot(x, y);
      const within = Math.min(r, 0.94);
      const far = (this.unit * within) / (1 - within) / (r || 1);
      this.onStart([x * far, y * far]);
    });
    for (const name of ["pointerup", "pointercancel"] as const) {
      this.svg.addEventListener(name, (event) => {
        if (event.pointerId !== pointer) return;
        pointer = -1;
        this.onDone();
      });
    }
  }

  drawPath(problem: Problem, path: Path, current: ArrayLike<number>): void {
    const single = problem.parameterization === "p";
    const parts: SVGElement[] = [];
    const count = single ? 1 : problem.keys.length;
    for (let i = 0; i < count; i++) {
      let d = "";
      for (let k = 0; k < path.points.length; k += path.size) {
        const [x, y] = this.pixel(direction(problem, path.points.subarray(k, k + path.size), i));
        d += `${k ? "L" : "M"}${fixed(x)} ${fixed(y)}`;
      }
      const color = single ? "var(--ink)" : SEQUENCE[i];
      parts.push(
        svg("path", { d, fill: "none", stroke: "var(--paper)", "stroke-width": 5, opacity: 0.75, "stroke-linejoin": "round" }),
        svg("path", { d, fill: "none", stroke: color, "stroke-width": 2.1, "stroke-linejoin": "round" }));
    }
    this.path.replaceChildren(...parts);
    this.start.style.display = single ? "" : "none";
    const [sx, sy] = this.pixel([path.points[0], path.points[1]]);
    set(this.start, { transform: `translate(${fixed(sx)} ${fixed(sy)})` });
    const [x, y] = this.pixel(direction(problem, current, 0));
    set(this.now, { cx: fixed(x), cy: fixed(y) });
    this.now.style.display = single ? "" : "none";
  }

  /** Ticks on the rim: the directions that training can end in. */
  drawRim(problem: Problem, attractors: Attractor[], colors: Map<string, number>): void {
    const parts: SVGElement[] = [];
    const count = problem.parameterization === "p" ? 1 : problem.keys.length;
    attractors.forEach((one) => {
      for (let i = 0; i < count; i++) {
        const [x, y] = direction(problem, one.solution.w, i);
        const size = Math.hypot(x, y);
        if (!(size > 0)) continue;
        const at = (r: number): string => `${fixed(SIZE / 2 + (x / size) * r)} ${fixed(SIZE / 2 - (y / size) * r)}`;
        const color = count > 1 ? SEQUENCE[i] : BASIN[(colors.get(one.selection.join()) ?? 0) % BASIN.length];
        parts.push(svg("path", { d: `M${at(RADIUS - 9)}L${at(RADIUS + 9)}`, stroke: color, "stroke-width": 6, "stroke-linecap": "round" }));
        if (count > 1) continue;
        const [tx, ty] = at(RADIUS + 24).split(" ");
        parts.push(svg("text", { x: tx, y: Number(ty) + 4, "text-anchor": "middle", "font-weight": one.globallyOptimal ? 700 : 400 },
          one.selection.map((t) => t + 1).join(" ")));
      }
    });
    this.rim.replaceChildren(...parts);
  }

  /**
   * Paints basins cell by cell; the caller says when to pause. Few cells with long steps while
   * something is dragged, many with the true ones afterwards.
   */
  *paint(
    problem: Problem, training: Training, cells: number, steps: number, colors: Map<string, number>, none: string,
  ): Generator<void> {
    const basins = new Basins(problem, training);
    const image = new ImageData(cells, cells);
    const shades = BASIN.map((color) => rgb(color));
    const gray = rgb(none);
    let lost = 0; // where hardly anything settles, starts are not followed for long
    let done = 0;
    try {
    for (const [row, rows] of interleaved(cells)) {
      for (let column = 0; column < cells; column++) {
        const x = (2 * (column + 0.5)) / cells - 1;
        const y = 1 - (2 * (row + 0.5)) / cells;
        const r = Math.hypot(x, y);
        if (r > 1 + 2 / cells) continue;
        const within = Math.min(r, 0.97);
        const far = r ? (this.unit * within) / (1 - within) / r : 0;
        const most = lost > 20 && lost > 0.9 * done ? steps >> 3 : steps;
        const held = basins.follow([x * far, y * far], most);
        done++;
        let number = NONE;
        if (held) {
          const name = held.selection.join();
          if (!colors.has(name)) colors.set(name, colors.size);
          number = colors.get(name)!;
        } else lost++;
        const [red, green, blue] = number === NONE ? gray : shades[number % shades.length];
        for (let k = 0; k < rows; k++) image.data.set([red, green, blue, 255], 4 * ((row + k) * cells + column));
        if (done % 4 === 0) yield;
      }
    }
    } finally { // also where a preview runs out of time
      this.canvas.width = this.canvas.height = cells;
      this.canvas.getContext("2d")!.putImageData(image, 0, 0);
      this.canvas.style.opacity = "var(--pale)";
    }
  }

  clear(): void {
    this.canvas.width = this.canvas.height = 1;
  }

  private pixel([x, y]: [number, number]): [number, number] {
    const r = Math.hypot(x, y) + this.unit;
    return [SIZE / 2 + (RADIUS * x) / r, SIZE / 2 - (RADIUS * y) / r];
  }
}

/** Rows to compute, and how many each stands for until the rows below it are computed too. */
function* interleaved(count: number): Generator<[number, number]> {
  for (const [first, rows] of [[0, 4], [2, 2], [1, 1], [3, 1]]) {
    for (let row = first; row < count; row += 4) yield [row, Math.min(rows, count - row)];
  }
}

function rgb(color: string): [number, number, number] {
  const value = parseInt(color.trim().slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}
