// The explorer: a state, what follows from it, and the views.

import { attractorOf, locallyOptimal, type Attractor } from "./core/analysis";
import { Gradient } from "./core/gradient";
import { normFor } from "./core/optimizers";
import { optimalTokens, type Problem } from "./core/problem";
import { SCENES } from "./scenes";
import { problemOf, type Model, type OptimizerName, type State } from "./state";
import { recordedSteps, train, type Path } from "./core/train";
import { Disk } from "./view/disk";
import { Plane } from "./view/plane";
import { drawBars, drawCurves, drawNumbers, keptNow } from "./view/readings";
import { CSS } from "./view/style";
import { html, svg } from "./view/svg";

const PREVIEW = { cells: 40, steps: 160, faster: 4, milliseconds: 5 };
const FULL = { cells: 150, steps: 4000 };
const SLICE = 7; // milliseconds of a frame for basins

const OPTIMIZERS: [OptimizerName, string][] = [
  ["normalized_gradient_descent", "normalized gradient descent"],
  ["gradient_descent", "gradient descent"],
  ["mirror_descent", "l_p mirror descent"],
  ["sign_descent", "sign descent"],
  ["greedy_coordinate_descent", "coordinate descent"],
  ["spectral_descent", "spectral descent"],
];

/** Milliseconds of the last update, for the tests of speed. */
export interface Timings { solve: number; train: number; draw: number; basins: number }

export class Explorer {
  readonly timings: Timings = { solve: 0, train: 0, draw: 0, basins: 0 };
  updates = 0;
  private state: State;
  private problem: Problem;
  private attractors: Attractor[] = [];
  private predicted: Attractor | null = null;
  private path!: Path;
  private at = 1; // the part of the path that is shown
  private playing = 0;
  private frame = 0;
  private painting = 0;
  private readonly root: HTMLElement;
  private readonly plane: Plane;
  private readonly disk: Disk;
  private readonly bars = svg("svg");
  private readonly curves = svg("svg");
  private readonly numbers = html("dl", { class: "reading" });
  private readonly controls: Record<string, HTMLElement> = {};
  private colors = new Map<string, number>();
  private readonly listen = (): void => this.receive();
  private readonly hear = (): void => { this.kernel = this.agreement(); this.redraw(); };
  private kernel: string | null = null;

  constructor(private readonly host: HTMLElement, private readonly model: Model) {
    this.state = structuredClone(model.get("state"));
    this.problem = problemOf(this.state);
    this.plane = new Plane({
      move: (i, t, to) => this.change((s) => { s.keys[i][t] = to; }, true),
      moveQuery: (i, to) => this.change((s) => { s.queries[i] = to; }, true),
      score: (i, t, by) => this.change((s) => { s.scores![i][t] = Math.round((s.scores![i][t] + by) * 100) / 100; }, false),
      done: () => this.settle(),
    });
    this.disk = new Disk((to) => this.change((s) => { s.start = to; }, true, true), () => this.settle());
    this.root = html("div", { class: "explorer" });
    this.build();
    model.on("change:state", this.listen);
    model.on("change:kernel", this.hear);
    this.reset();
    this.hear();
  }

  destroy(): void {
    this.model.off?.("change:state", this.listen);
    this.model.off?.("change:kernel", this.hear);
    cancelAnimationFrame(this.frame);
    cancelAnimationFrame(this.painting);
    cancelAnimationFrame(this.playing);
    this.host.replaceChildren();
  }

  private build(): void {
    const shadow = this.host.shadowRoot ?? this.host.attachShadow({ mode: "open" });
    const style = document.createElement("style");
    style.textContent = CSS;
    const dark = this.state.theme === "dark" || (this.state.theme === "auto" && prefersDark(this.host));
    this.root.classList.toggle("dark", dark);
    const play = html("button", { type: "button", title: "Play the training" }, "▶ play");
    play.addEventListener("click", () => this.play());
    const time = html("input", { type: "range", class: "time", min: 0, max: 1, step: 0.001, value: 1, "aria-label": "step of training" });
    time.addEventListener("input", () => { this.at = Number(time.value); this.redraw(); });
    Object.assign(this.controls, { play, time, step: html("span", { style: "min-width:86px;text-align:right" }) });
    const planeStage = html("div", { class: "stage" });
    planeStage.append(this.plane.element);
    const caption = (bold: string, rest: string): HTMLElement => html("figcaption", {}, html("b", {}, bold), ` ${rest}`);
    shadow.replaceChildren(style, this.root);
    this.root.append(
      this.menu(),
      html("div", { class: "row" },
        html("figure", {}, caption("Tokens.", "Drag them; size is attention, numbers are scores."), planeStage),
        html("figure", {}, caption("Where training goes.", "The rim is infinity; drag the start."), this.disk.element)),
      html("div", { class: "bar", style: "margin:10px 2px" }, play, time, this.controls.step),
      html("div", { class: "row" },
        html("div", { class: "lower" }, html("h4", {}, "Attention"), this.bars),
        html("div", { class: "lower" }, html("h4", {}, "1 − margin ratio (line), 1 − correlation (dashes)"), this.curves),
        html("div", { class: "lower" }, html("h4", {}, "Certificate and measures"), this.numbers)));
  }

  private menu(): HTMLElement {
    const presets = html("select", { "aria-label": "example" }, html("option", { value: "" }, "examples…"),
      ...Object.keys(SCENES).map((name) => html("option", { value: name }, name)));
    presets.addEventListener("change", () => {
      if (!presets.value) return;
      this.state = { ...structuredClone(SCENES[presets.value]), theme: this.state.theme };
      this.reset();
      this.settle();
    });
    const optimizer = html("select", { "aria-label": "optimizer" });
    optimizer.addEventListener("change", () => this.change((s) => { s.trainings[0].optimizer = optimizer.value as OptimizerName; }, false));
    const p = html("input", { type: "range", min: 1.1, max: 4, step: 0.05, "aria-label": "exponent p" });
    p.addEventListener("input", () => this.change((s) => { s.trainings[0].p = Number(p.value); }, true));
    p.addEventListener("change", () => this.settle());
    const rate = html("input", { type: "number", min: 0.001, max: 10, step: 0.05, style: "width:62px", "aria-label": "learning rate" });
    rate.addEventListener("change", () => this.change((s) => { s.trainings[0].learning_rate = Number(rate.value) || 0.1; }, false));
    const steps = html("select", { "aria-label": "steps" }, ...[100, 500, 2000, 10000].map((n) => html("option", { value: n }, n.toLocaleString("en"))));
    steps.addEventListener("change", () => this.change((s) => { s.steps = Number(steps.value); }, false));
    const exponent = html("label", {}, "p", p, html("span", {}));
    Object.assign(this.controls, { presets, optimizer, p, rate, steps, exponent });
    return html("div", { class: "bar" }, presets, html("label", {}, "optimizer", optimizer), exponent,
      html("label", {}, "step size", rate), html("label", {}, "steps", steps));
  }

  /** The menu says what the state says. */
  private showControls(): void {
    const { trainings: [training], steps, parameterization } = this.state;
    const c = this.controls as unknown as Record<string, HTMLInputElement & HTMLSelectElement>;
    const offered = OPTIMIZERS.filter(([name]) => parameterization !== "p" || name !== "spectral_descent");
    c.optimizer.replaceChildren(...offered.map(([name, label]) => html("option", { value: name }, label)));
    c.optimizer.value = training.optimizer;
    c.p.max = parameterization === "W" ? "2" : "4";
    c.p.value = String(training.p ?? 1.5);
    c.exponent.style.display = training.optimizer === "mirror_descent" ? "" : "none";
    c.exponent.lastElementChild!.textContent = (training.p ?? 1.5).toFixed(2);
    c.rate.value = String(training.learning_rate);
    c.steps.value = String(steps);
  }

  private receive(): void {
    const state = this.model.get("state");
    if (JSON.stringify(state) === JSON.stringify(this.state)) return;
    const shape = (s: State): string => JSON.stringify([s.parameterization, s.keys.map((k) => k.length)]);
    const same = shape(state) === shape(this.state);
    this.state = structuredClone(state);
    if (!same) this.reset();
    else { this.compute(); this.draw(); this.paint(true); }
  }

  private reset(): void {
    this.problem = problemOf(this.state);
    this.colors = new Map();
    this.plane.reset(this.problem);
    this.compute();
    this.draw();
    this.paint(true);
  }

  /** How far the kernel's answers are from those of the browser, as a sentence. */
  private agreement(): string | null {
    const report = this.model.get("kernel");
    const solution = this.predicted?.solution;
    if (report?.message) return report.message;
    const last = report?.ends?.[0];
    if (!report?.value || !last || solution?.status !== "solved") return null;
    const { points, size } = this.path;
    const end = points.subarray(points.length - size);
    const off = Math.hypot(...last.map((x, k) => x - end[k])) / Math.hypot(...last);
    const value = Math.abs(report.value / solution.value - 1);
    const said = (x: number): string => (x < 1e-15 ? "the last bit" : x.toExponential(0));
    return `norm ${said(value)}, path ${said(off)} (${report.milliseconds?.toFixed(0)} ms)`;
  }

  /** A change by the user: seen in the next frame, saved when the pointer is let go. */
  private change(edit: (state: State) => void, dragging: boolean, startOnly = false): void {
    edit(this.state);
    this.kernel = null;
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => {
      this.problem = problemOf(this.state);
      this.compute();
      this.draw();
      if (!startOnly) this.paint(!dragging);
      this.updates++;
    });
    if (!dragging) this.settle(false);
  }

  private settle(paint = true): void {
    this.model.set("state", structuredClone(this.state));
    this.model.save_changes();
    if (paint) this.paint(true);
    this.host.dispatchEvent(new CustomEvent("explorer-change", { detail: this.state, bubbles: true, composed: true }));
  }

  private compute(): void {
    const { trainings: [training], start, steps, parameterization } = this.state;
    const t = performance.now();
    const norm = normFor(training, parameterization);
    this.predicted = attractorOf(this.problem, norm, optimalTokens(this.problem));
    this.attractors = parameterization === "p" ? locallyOptimal(this.problem, norm) : [];
    const t1 = performance.now();
    this.path = train(this.problem, training, start, recordedSteps(steps));
    this.timings.solve = t1 - t;
    this.timings.train = performance.now() - t1;
    if (this.predicted) this.colors.set(this.predicted.selection.join(), this.colors.get(this.predicted.selection.join()) ?? 0);
    for (const one of this.attractors) {
      const name = one.selection.join();
      if (!this.colors.has(name)) this.colors.set(name, this.colors.size);
    }
  }

  /** The attractor that attention is on, if it is one; else the predicted one. */
  private reached(attention: ArrayLike<number>): Attractor | null {
    const name = keptNow(this.problem, attention).join();
    return this.attractors.find((one) => one.selection.join() === name) ?? this.predicted;
  }

  private draw(): void {
    this.showControls();
    this.redraw();
  }

  private redraw(): void {
    const t = performance.now();
    const { path, problem } = this;
    const row = Math.round(this.at * (path.steps.length - 1));
    const w = path.points.subarray(row * path.size, (row + 1) * path.size);
    const attention = new Gradient(problem).attention(w);
    const end = new Gradient(problem).attention(path.points.subarray(path.points.length - path.size));
    const reached = this.reached(end);
    const shown = problem.parameterization === "p" ? this.attractors : this.predicted?.solution.status === "solved" ? [this.predicted] : [];
    this.plane.draw(problem, reached, attention, w, this.attractors);
    this.disk.drawPath(problem, path, w);
    this.disk.drawRim(problem, shown, this.colors);
    drawBars(this.bars, problem, attention, reached?.selection ?? null);
    drawCurves(this.curves, path, reached, path.steps[row]);
    drawNumbers(this.numbers, problem, reached, w, attention, this.kernel);
    this.controls.step.textContent = `step ${path.steps[row].toLocaleString("en")}`;
    this.timings.draw = performance.now() - t;
  }

  private play(): void {
    if (this.playing) {
      cancelAnimationFrame(this.playing);
      this.playing = 0;
      this.controls.play.textContent = "▶ play";
      return;
    }
    this.controls.play.textContent = "❚❚ pause";
    if (this.at >= 1) this.at = 0;
    const go = (): void => {
      this.at = Math.min(1, this.at + 0.006);
      (this.controls.time as HTMLInputElement).value = String(this.at);
      this.redraw();
      if (this.at < 1) this.playing = requestAnimationFrame(go);
      else { this.playing = 0; this.controls.play.textContent = "▶ play"; }
    };
    this.playing = requestAnimationFrame(go);
  }

  /** Basins: a preview at once, then all cells in slices of frames. */
  private paint(fully: boolean): void {
    cancelAnimationFrame(this.painting);
    this.timings.basins = 0;
    if (this.problem.parameterization !== "p") { this.disk.clear(); return; }
    const [training] = this.state.trainings;
    const none = getComputedStyle(this.root).getPropertyValue("--none");
    const t = performance.now();
    const hurried = training.optimizer === "gradient_descent" ? training : { ...training, learning_rate: PREVIEW.faster * training.learning_rate };
    for (const _ of this.disk.paint(this.problem, hurried, PREVIEW.cells, PREVIEW.steps, this.colors, none)) {
      if (performance.now() - t > PREVIEW.milliseconds) break;
    }
    this.timings.basins = performance.now() - t;
    if (!fully) return;
    const work = this.disk.paint(this.problem, training, FULL.cells, FULL.steps, this.colors, none);
    const slice = (): void => {
      const t = performance.now();
      while (performance.now() - t < SLICE) if (work.next().done) { this.redraw(); this.host.dataset.painted = String(this.updates); return; }
      this.painting = requestAnimationFrame(slice);
    };
    this.painting = requestAnimationFrame(slice);
  }
}

/** Notebooks and documentation say by attributes what the browser's setting does not. */
function prefersDark(host: HTMLElement): boolean {
  const page = document.documentElement;
  const said = page.dataset.theme ?? page.dataset.mdColorScheme ?? document.body.dataset.theme ?? document.body.dataset.jpThemeLight;
  if (said === "dark" || said === "slate" || said === "false") return true;
  if (said === "light" || said === "default" || said === "true") return false;
  if (document.body.classList.contains("dark") || host.closest(".dark")) return true;
  return matchMedia("(prefers-color-scheme: dark)").matches;
}
