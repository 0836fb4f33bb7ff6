// The plane of tokens: drag one.

import type { Attractor } from "../core/analysis";
import { direction, type Problem } from "../core/problem";
import { SEQUENCE } from "./style";
import { fixed, set, svg } from "./svg";

const SIZE = 440;
const MARGIN = 18;

export interface PlaneEvents {
  move(i: number, t: number, to: [number, number]): void;
  moveQuery(i: number, to: [number, number]): void;
  score(i: number, t: number, by: number): void;
  done(): void;
}

export class Plane {
  readonly element = svg("svg", { viewBox: `0 0 ${SIZE} ${SIZE}`, role: "group", "aria-label": "plane of tokens" });
  private readonly under = svg("g");
  private readonly over = svg("g");
  private readonly tokens = svg("g");
  private reach = 2;
  private marks: SVGGElement[][] = [];
  private queries: SVGGElement[] = [];
  private dragging: { pointer: number; go: (to: [number, number]) => void } | null = null;

  constructor(private readonly events: PlaneEvents) {
    const clip = `clip-${Math.random().toString(36).slice(2)}`;
    const box = { x: MARGIN, y: MARGIN, width: SIZE - 2 * MARGIN, height: SIZE - 2 * MARGIN, rx: 10 };
    const inside = svg("g", { "clip-path": `url(#${clip})` }, this.under, this.over);
    this.element.append(
      svg("defs", {}, svg("clipPath", { id: clip }, svg("rect", box))),
      svg("rect", { ...box, class: "frame" }),
      inside,
      this.tokens,
    );
    this.element.addEventListener("pointermove", (event) => this.drag(event));
    for (const name of ["pointerup", "pointercancel"] as const) {
      this.element.addEventListener(name, (event) => {
        if (this.dragging?.pointer !== event.pointerId) return;
        this.dragging = null;
        this.events.done();
      });
    }
  }

  /** Chooses the part of the plane shown, and makes one mark a token. */
  reset(problem: Problem): void {
    const all = problem.keys.flat();
    const far = all.reduce((a, [x, y]) => Math.max(a, Math.abs(x), Math.abs(y)), 0.5);
    this.reach = Math.max(1.35 * far, 1);
    this.marks = problem.keys.map((keys, i) => keys.map((_, t) => this.mark(i, t)));
    this.queries = problem.parameterization === "W" ? problem.keys.map((_, i) => this.query(i)) : [];
    this.tokens.replaceChildren(...this.queries, ...this.marks.flat());
  }

  draw(
    problem: Problem, attractor: Attractor | null, attention: ArrayLike<number>, w: ArrayLike<number>,
    others: Attractor[],
  ): void {
    this.drawUnder(problem, attractor, others);
    const arrows: SVGElement[] = [];
    const count = problem.parameterization === "p" ? 1 : problem.keys.length;
    for (let i = 0; i < count; i++) {
      arrows.push(...this.arrow(direction(problem, w, i), problem.parameterization === "p" ? "var(--ink)" : SEQUENCE[i]));
    }
    this.over.replaceChildren(...arrows);
    let place = 0;
    problem.keys.forEach((keys, i) => keys.forEach((key, t) => {
      this.place(this.marks[i][t], key, attention[place++], problem.scores[i][t],
        attractor?.selection[i] === t);
    }));
    this.queries.forEach((mark, i) => {
      const [x, y] = this.pixel(problem.queries[i]);
      set(mark, { transform: `translate(${fixed(x)} ${fixed(y)})` });
    });
  }

  private drawUnder(problem: Problem, attractor: Attractor | null, others: Attractor[]): void {
    const parts: SVGElement[] = [];
    const [ox, oy] = this.pixel([0, 0]);
    parts.push(svg("path", { class: "grid", d: `M0 ${oy}H${SIZE}M${ox} 0V${SIZE}` }));
    const single = problem.parameterization === "p";
    for (const other of others) {
      if (other === attractor || !single) continue;
      parts.push(this.ray([other.solution.w[0], other.solution.w[1]], "#56B4E9", "7 5"));
    }
    if (attractor?.solution.status === "solved") {
      problem.keys.forEach((keys, i) => {
        const p = direction(problem, attractor.solution.w, i);
        parts.push(...this.band(p, keys[attractor.selection[i]], SEQUENCE[i]));
        if (!single) parts.push(this.ray(p, SEQUENCE[i]));
      });
      if (single) parts.push(this.ray([attractor.solution.w[0], attractor.solution.w[1]], "#0072B2"));
    }
    this.under.replaceChildren(...parts);
  }

  /** Where <x, p> lies between that of the token kept and one less: no other token comes in. */
  private band(p: [number, number], kept: number[], color: string): SVGElement[] {
    const length = Math.hypot(...p);
    if (!(length > 0)) return [];
    const [nx, ny] = [p[0] / length, p[1] / length];
    const far = 4 * this.reach;
    const line = (back: number): [number, number][] => [-1, 1].map((side) => this.pixel([
      kept[0] - nx * back - side * ny * far, kept[1] - ny * back + side * nx * far,
    ]));
    const [a, b] = [line(0), line(1 / length)];
    const d = (l: [number, number][]): string => `M${l.map((q) => q.map((v) => fixed(v)).join(" ")).join("L")}`;
    return [
      svg("path", { d: `${d(a)}L${[...b].reverse().map((q) => q.map((v) => fixed(v)).join(" ")).join("L")}Z`,
        fill: color, style: "opacity: var(--band)" }),
      svg("path", { d: d(a), stroke: color, "stroke-width": 1.2, opacity: 0.8 }),
      svg("path", { d: d(b), stroke: color, "stroke-width": 1.2, "stroke-dasharray": "4 4", opacity: 0.8 }),
    ];
  }

  private ray(p: [number, number], color: string, dash?: string): SVGElement {
    const length = Math.hypot(...p);
    const [x, y] = this.pixel([(p[0] / length) * 3 * this.reach, (p[1] / length) * 3 * this.reach]);
    const [ox, oy] = this.pixel([0, 0]);
    return svg("path", { d: `M${ox} ${oy}L${fixed(x)} ${fixed(y)}`, stroke: color, "stroke-width": 7,
      "stroke-dasharray": dash, style: "opacity: var(--pale)" });
  }

  private arrow(p: [number, number], color: string): SVGElement[] {
    const length = Math.hypot(...p);
    if (!(length > 1e-9)) return [];
    const [ox, oy] = this.pixel([0, 0]);
    const [dx, dy] = [p[0] / length, -p[1] / length];
    const tip = 0.3 * SIZE * Math.min(1, 0.35 + length);
    const at = (along: number, across: number): string =>
      `${fixed(ox + dx * along - dy * across)} ${fixed(oy + dy * along + dx * across)}`;
    return [
      svg("path", { d: `M${at(0, 0)}L${at(tip - 8, 0)}`, stroke: color, "stroke-width": 2.2 }),
      svg("path", { d: `M${at(tip, 0)}L${at(tip - 12, 5)}L${at(tip - 9, 0)}L${at(tip - 12, -5)}Z`, fill: color }),
    ];
  }

  private mark(i: number, t: number): SVGGElement {
    const mark = svg("g", { class: "token", tabindex: 0, role: "button", "data-token": `${i},${t}` },
      svg("circle", { class: "halo", r: 20 }), svg("path", { class: "mark", fill: SEQUENCE[i] }),
      svg("text", { dy: 4 }));
    this.draggable(mark, (to) => this.events.move(i, t, to));
    mark.addEventListener("keydown", (event) => {
      const by = { "+": 0.1, "=": 0.1, "-": -0.1 }[event.key];
      if (by === undefined) return;
      event.preventDefault();
      this.events.score(i, t, by);
    });
    mark.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.events.score(i, t, event.deltaY < 0 ? 0.05 : -0.05);
    }, { passive: false });
    return mark;
  }

  private query(i: number): SVGGElement {
    const mark = svg("g", { class: "token", tabindex: 0, role: "button", "data-query": i },
      svg("circle", { class: "halo", r: 16 }),
      svg("path", { d: "M0-7L7 0L0 7L-7 0Z", fill: "var(--panel)", stroke: SEQUENCE[i], "stroke-width": 2 }),
      svg("text", { dx: 10, dy: 4 }, `z${i + 1}`));
    this.draggable(mark, (to) => this.events.moveQuery(i, to));
    return mark;
  }

  private draggable(mark: SVGGElement, go: (to: [number, number]) => void): void {
    mark.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      mark.focus({ preventScroll: true });
      this.element.setPointerCapture(event.pointerId);
      this.dragging = { pointer: event.pointerId, go };
    });
    mark.addEventListener("keydown", (event) => {
      const step = (event.shiftKey ? 0.1 : 0.02) * this.reach;
      const by = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] }[event.key];
      if (!by) return;
      event.preventDefault();
      const matrix = mark.transform.baseVal.consolidate()!.matrix;
      const [x, y] = this.world(matrix.e, matrix.f);
      go([x + by[0], y + by[1]]);
      this.events.done();
    });
  }

  private place(mark: SVGGElement, key: number[], weight: number, score: number, kept: boolean): void {
    const [x, y] = this.pixel(key);
    set(mark, { transform: `translate(${fixed(x)} ${fixed(y)})`, class: kept ? "token kept" : "token",
      "aria-label": `token of score ${score.toFixed(2)}, attention ${weight.toFixed(2)}` });
    const r = 5 + 9 * Math.sqrt(weight);
    const shape = Number(mark.dataset.token!.split(",")[0]);
    set(mark.children[1], { d: SHAPES[shape % SHAPES.length](r), "fill-opacity": fixed(0.35 + 0.65 * weight, 2) });
    const text = mark.children[2];
    set(text, { dx: fixed(r + 5) });
    text.textContent = `${Math.round(score * 100) / 100}`;
  }

  private drag(event: PointerEvent): void {
    if (this.dragging?.pointer !== event.pointerId) return;
    const box = this.element.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * SIZE;
    const y = ((event.clientY - box.top) / box.height) * SIZE;
    const inside = (v: number): number => Math.min(SIZE - MARGIN - 4, Math.max(MARGIN + 4, v));
    this.dragging.go(this.world(inside(x), inside(y)));
  }

  private pixel([x, y]: ArrayLike<number> & Iterable<number>): [number, number] {
    const unit = (SIZE / 2 - MARGIN) / this.reach;
    return [SIZE / 2 + unit * x, SIZE / 2 - unit * y];
  }

  private world(x: number, y: number): [number, number] {
    const unit = (SIZE / 2 - MARGIN) / this.reach;
    return [(x - SIZE / 2) / unit, (SIZE / 2 - y) / unit];
  }
}

const SHAPES = [
  (r: number): string => `M${-r} 0A${r} ${r} 0 1 1 ${r} 0A${r} ${r} 0 1 1 ${-r} 0Z`,
  (r: number): string => { const s = 0.9 * r; return `M${-s} ${-s}H${s}V${s}H${-s}Z`; },
  (r: number): string => { const s = 1.25 * r; return `M0 ${-s}L${0.95 * s} ${0.7 * s}H${-0.95 * s}Z`; },
  (r: number): string => { const s = 1.25 * r; return `M0 ${-s}L${s} 0L0 ${s}L${-s} 0Z`; },
];
