// The plane of tokens: drag one.

import type { Attractor } from "../core/analysis";
import type { Answers, Moment } from "../answers";
import { draggable } from "./drag";
import { subscript } from "../words";
import { RUN, SEQUENCE } from "./style";
import { fixed, Pool, set, shape, svg, write } from "./svg";

const SIZE = 440;
const MARGIN = 1;
const HALF = SIZE / 2;

export interface PlaneEvents {
  move(i: number, t: number, to: [number, number]): void;
  moveQuery(i: number, to: [number, number]): void;
  score(i: number, t: number, by: number): void;
  done(): void;
}

interface Mark { group: SVGGElement; path: SVGPathElement; label: SVGTextElement; number: SVGTSpanElement; score: SVGTSpanElement }

export class Plane {
  readonly element = svg("svg", { viewBox: `0 0 ${SIZE} ${SIZE}`, role: "group", "aria-label": "tokens in the plane: arrow keys move one, farther with shift, plus and minus change its score" });
  private readonly slabs = svg("g");
  private readonly arrows = svg("g");
  private readonly tokens = svg("g");
  private readonly fills = new Pool(this.slabs, "path", { style: "opacity:var(--band)" });
  private readonly edges = new Pool(this.slabs, "path", { fill: "none", "stroke-width": 1.3 });
  private readonly rays = new Pool(this.slabs, "path", { fill: "none", "stroke-width": 7, style: "opacity:var(--pale)" });
  private readonly shafts = new Pool(this.arrows, "path", { fill: "none", "stroke-width": 2.2 });
  private readonly heads = new Pool(this.arrows, "path");
  private readonly names = new Pool(this.arrows, "text", { class: "name", "text-anchor": "middle" });
  private reach = 2;
  private marks: Mark[][] = [];
  private queries: SVGGElement[] = [];
  private answers!: Answers;

  constructor(private readonly events: PlaneEvents) {
    const clip = `clip-${Math.random().toString(36).slice(2)}`;
    const box = { x: MARGIN, y: MARGIN, width: SIZE - 2 * MARGIN, height: SIZE - 2 * MARGIN, rx: 10 };
    this.element.append(
      svg("defs", {}, svg("clipPath", { id: clip }, svg("rect", box))),
      svg("rect", { ...box, class: "frame" }),
      svg("g", { "clip-path": `url(#${clip})` },
        svg("path", { class: "grid", d: `M0 ${HALF}H${SIZE}M${HALF} 0V${SIZE}` }), this.slabs, this.arrows),
      this.tokens);
  }

  /** Chooses the part of the plane shown, and makes one mark a token. */
  reset(answers: Answers): void {
    this.answers = answers;
    const { problem, state: { projection } } = answers;
    const seen = [...problem.keys.flat(), ...(problem.parameterization === "W" && !projection ? problem.queries : [])];
    const far = seen.reduce((a, key) => Math.max(a, ...answers.place(key).map(Math.abs)), 0.5);
    this.reach = 1.3 * far;
    this.marks = problem.keys.map((keys, i) => keys.map((_, t) => this.mark(i, t, !projection)));
    this.queries = problem.parameterization === "W" && !projection ? problem.keys.map((_, i) => this.query(i)) : [];
    this.tokens.replaceChildren(...this.queries, ...this.marks.flat().map((mark) => mark.group));
  }

  draw(answers: Answers, moments: Moment[]): void {
    this.answers = answers;
    const { problem, runs: [first], state } = answers;
    this.drawSolutions(first.attractor);
    moments.forEach((moment, k) => {
      const single = problem.parameterization === "p";
      for (let i = 0; i < (single ? 1 : problem.keys.length); i++) {
        const name = single ? "p" : `Wz${subscript(String(i))}`;
        this.arrow(answers.direction(moment.point, i), single || k ? RUN[k] : SEQUENCE[i], k, k ? "" : name);
      }
      const run = answers.runs[k];
      if (run.heads) this.arrow(answers.head(run, moment.row), "var(--head)", k, k ? "" : "v");
    });
    for (const pool of [this.shafts, this.heads, this.names]) pool.done();
    let place = 0;
    const weights = moments[0].attention;
    problem.keys.forEach((keys, i) => keys.forEach((key, t) => {
      this.place(i, t, key, weights[place++], moments[0].scores[i][t], first.attractor.selection[i] === t);
    }));
    this.queries.forEach((mark, i) => {
      set(mark, { transform: this.shift(state.queries[i]),
        "aria-label": `query ${i} at ${state.queries[i].map((x) => fixed(x, 2)).join(", ")}` });
    });
  }

  private drawSolutions(shown: Attractor): void {
    const { answers } = this;
    const { problem, predicted, attractors, runs } = answers;
    const single = problem.parameterization === "p";
    if (single) {
      const drawn = new Set([shown.solution.w.join()]);
      for (const { solution } of [...attractors, ...predicted, ...runs.map((run) => run.attractor)]) {
        if (solution.status !== "solved" || drawn.has(solution.w.join())) continue;
        drawn.add(solution.w.join());
        this.ray(answers.direction(solution.w, 0), "var(--other)", "7 5");
      }
    }
    if (shown.solution.status === "solved") {
      problem.keys.forEach((keys, i) => {
        const p = answers.direction(shown.solution.w, i);
        const { sequence, bounds } = shown.problem;
        const bound = bounds[sequence.indexOf(i)] ?? 0; // zero where a sequence need not be separated
        this.slab(p, shown.solution.w, i, bound, keys[shown.selection[i]], SEQUENCE[i % SEQUENCE.length]);
        if (!single) this.ray(p, SEQUENCE[i % SEQUENCE.length]);
      });
      if (single) this.ray(answers.direction(shown.solution.w, 0), "var(--accent)");
    }
    const [contradicted] = predicted.filter(({ solution }) => solution.status === "infeasible");
    if (contradicted) this.contradiction(contradicted);
    for (const pool of [this.fills, this.edges, this.rays]) pool.done();
  }

  /** Lines from the kept token to those with multipliers: the token lies among them, or pulls against another's. */
  private contradiction({ problem, solution: { multipliers }, selection }: Attractor): void {
    const { keys } = this.answers.problem;
    const most = Math.max(...multipliers);
    multipliers.forEach((m, j) => {
      if (!(m > 1e-9 * most)) return;
      const i = problem.sequence[j];
      const [from, to] = [keys[i][selection[i]], keys[i][problem.token[j]]].map((key) => this.at(...this.answers.place(key)));
      this.edges.take({ d: `M${from}L${to}`, stroke: SEQUENCE[i % SEQUENCE.length], "stroke-dasharray": "1 5", "stroke-linecap": "round" });
    });
  }

  /** Where <x, p> lies between that of the token kept and one less: no other token comes in. */
  private slab(p: [number, number], w: ArrayLike<number>, i: number, bound: number, kept: number[], color: string): void {
    const length = Math.hypot(...p);
    const { answers } = this;
    if (!(length > 0)) return;
    if (answers.state.projection) { // a slab is seen as one only where p lies in the plane
      const whole = Math.hypot(...Array.from(answers.full(w, i)));
      if (length < 0.999 * whole) return;
    }
    const [nx, ny] = [p[0] / length, p[1] / length];
    const [kx, ky] = answers.place(kept);
    const far = 4 * this.reach;
    const edge = (back: number): string[] => [-1, 1].map((side) => this.at(
      kx - nx * back - side * ny * far, ky - ny * back + side * nx * far));
    const [[a, b], [c, d]] = [edge(0), edge(bound / length)];
    if (bound > 0) this.fills.take({ d: `M${a}L${b}L${d}L${c}Z`, fill: color });
    this.edges.take({ d: `M${a}L${b}`, stroke: color, "stroke-dasharray": undefined, "stroke-linecap": undefined });
    if (bound > 0) this.edges.take({ d: `M${c}L${d}`, stroke: color, "stroke-dasharray": "4 4", "stroke-linecap": undefined });
  }

  private ray(p: [number, number], color: string, dash?: string): void {
    const far = (3 * this.reach) / Math.hypot(...p);
    if (!Number.isFinite(far)) return;
    this.rays.take({ d: `M${HALF} ${HALF}L${this.at(p[0] * far, p[1] * far)}`, stroke: color, "stroke-dasharray": dash });
  }

  private arrow(p: [number, number], color: string, k: number, name: string): void {
    const length = Math.hypot(...p);
    if (!(length > 1e-9)) return;
    const [dx, dy] = [p[0] / length, -p[1] / length];
    const tip = 0.3 * SIZE * Math.min(1, 0.35 + length) * (k ? 0.9 : 1);
    const at = (along: number, across: number): string =>
      `${fixed(HALF + dx * along - dy * across)} ${fixed(HALF + dy * along + dx * across)}`;
    this.shafts.take({ d: `M${at(0, 0)}L${at(tip - 8, 0)}`, stroke: color, "stroke-dasharray": k ? "6 4" : undefined });
    this.heads.take({ d: `M${at(tip, 0)}L${at(tip - 12, 5)}L${at(tip - 9, 0)}L${at(tip - 12, -5)}Z`, fill: color });
    if (!name) return;
    const [x, y] = at(tip + 11, 0).split(" ");
    this.names.text(name, { x, y: fixed(Number(y) + 4) });
  }

  private mark(i: number, t: number, moves: boolean): Mark {
    const path = svg("path", { class: "mark", fill: SEQUENCE[i % SEQUENCE.length] });
    const [number, score] = [svg("tspan", { class: "number" }), svg("tspan", { class: "soft", dx: 4 })];
    const label = svg("text", { dy: 4 }, number, score);
    const group = svg("g", { class: moves ? "token" : "token still", tabindex: 0, role: moves ? "button" : "img",
      "aria-roledescription": moves ? "draggable token" : "token", "data-token": `${i},${t}` },
      svg("circle", { class: "halo", r: 19 }), path, label);
    if (moves) {
      this.moves(group, () => this.answers.state.keys[i][t], (to) => this.events.move(i, t, to));
      if (!this.answers.state.labels) this.scores(group, i, t);
    }
    return { group, path, label, number, score };
  }

  private scores(group: SVGGElement, i: number, t: number): void {
    let turned = 0;
    group.addEventListener("keydown", (event) => {
      const by = { "+": 0.1, "=": 0.1, "-": -0.1 }[event.key];
      if (by === undefined || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      this.events.score(i, t, by);
      this.events.done();
    });
    group.addEventListener("wheel", (event) => {
      if (document.activeElement !== group && !group.matches(":focus")) return; // pages scroll over what is not chosen
      event.preventDefault();
      this.events.score(i, t, event.deltaY < 0 ? 0.05 : -0.05);
      clearTimeout(turned);
      turned = window.setTimeout(() => this.events.done(), 300);
    }, { passive: false });
  }

  private query(i: number): SVGGElement {
    const group = svg("g", { class: "token", tabindex: 0, role: "button", "aria-roledescription": "draggable query", "data-query": i },
      svg("circle", { class: "halo", r: 16 }),
      svg("path", { d: shape(i, 5.5), fill: "var(--panel)", stroke: SEQUENCE[i % SEQUENCE.length], "stroke-width": 2 }),
      svg("text", { dx: 10, dy: 4, class: "soft" }, `z${subscript(String(i))}`));
    this.moves(group, () => this.answers.state.queries[i], (to) => this.events.moveQuery(i, to));
    return group;
  }

  private moves(group: SVGGElement, at: () => number[], go: (to: [number, number]) => void): void {
    const inside = (v: number): number => Math.min(SIZE - MARGIN - 6, Math.max(MARGIN + 6, v));
    draggable(this.element, group, SIZE, {
      at: () => at() as [number, number],
      world: (x, y) => this.world(inside(x), inside(y)),
      step: () => 0.02 * this.reach,
      go: ([x, y]) => go([rounded(x), rounded(y)]),
      done: () => this.events.done(),
    });
  }

  private place(i: number, t: number, key: number[], weight: number, score: number, kept: boolean): void {
    const { group, path, label, number, score: second } = this.marks[i][t];
    const still = this.answers.state.projection ? " still" : "";
    const [x, y] = this.answers.place(key);
    set(group, { transform: this.shift([x, y]), class: `token${kept ? " kept" : ""}${still}`,
      "aria-label": `token ${t} of sequence ${i}, score ${fixed(score, 2)}, attention ${fixed(weight, 2)}, at ${fixed(x, 2)}, ${fixed(y, 2)}` });
    const r = 4.5 + 9 * Math.sqrt(weight);
    set(path, { d: shape(i, Math.round(4 * r) / 4), "fill-opacity": fixed(0.5 + 0.5 * weight, 1) });
    set(label, { dx: fixed(r + 4, 0) });
    write(number, String(t));
    write(second, String(Number(Math.abs(score) < 10 ? score.toFixed(2) : score.toPrecision(3))));
  }

  private shift(key: ArrayLike<number>): string {
    return `translate(${this.at(key[0], key[1])})`;
  }

  private at(x: number, y: number): string {
    const unit = (HALF - MARGIN) / this.reach;
    return `${fixed(HALF + unit * x)} ${fixed(HALF - unit * y)}`;
  }

  private world(x: number, y: number): [number, number] {
    const unit = (HALF - MARGIN) / this.reach;
    return [(x - HALF) / unit, (HALF - y) / unit];
  }
}

/** Addresses stay short, and what is dragged lies where a hand puts it. */
export const rounded = (x: number): number => Math.round(x * 1000) / 1000;
