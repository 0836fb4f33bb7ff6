// How it is trained, and against which norm it is measured: one bar, folded on narrow screens.

import type { LossName, OptimizerName, Parameterization, State, Training } from "../state";
import { LOSSES, NORMS, normWords, number, OPTIMIZERS, steps, TRAINED } from "../words";
import { sample } from "./bars";
import { html, write } from "./svg";

type Edit = (state: State) => void;

const HORIZONS = [50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000];
const EXPONENTS = [1.1, 1.25, 1.5, 1.75, 2, 2.5, 3, 4];

export class Controls {
  readonly element = html("details", { class: "controls" });
  private readonly summary = html("span");
  private readonly rows: TrainingRow[];
  private readonly trained: HTMLSelectElement;
  private readonly norm: HTMLSelectElement;
  private readonly loss: HTMLSelectElement;
  private readonly horizon: HTMLSelectElement;
  private readonly more = html("button", { type: "button" }, "+ compare");

  constructor(change: (edit: Edit) => void) {
    this.rows = [0, 1].map((k) => new TrainingRow(k, change));
    this.trained = choice("what is trained", (value) => change((s) => retrain(s, value as Parameterization)));
    this.norm = choice("norm", (value) => change((s) => { if (value) s.norm = value; else delete s.norm; }));
    this.loss = choice("loss", (value) => change((s) => { s.loss = value as LossName; }), LOSSES.map((name) => [name, name]));
    this.horizon = choice("horizon", (value) => change((s) => { s.steps = Number(value); }));
    this.more.addEventListener("click", () => change((s) => {
      const other = s.trainings[0].optimizer === "sign_descent" ? "normalized_gradient_descent" : "sign_descent";
      s.trainings.push({ optimizer: other, learning_rate: s.trainings[0].learning_rate });
    }));
    const whole = html("div", { class: "training" }, labeled("trains", this.trained), labeled("norm", this.norm), labeled("loss", this.loss),
      labeled("horizon", this.horizon), this.more);
    this.element.append(html("summary", {}, html("b", {}, "Training "), this.summary),
      html("div", { class: "bar" }, ...this.rows.map((row) => row.element), whole));
    const narrow = matchMedia("(max-width: 640px)");
    this.element.open = !narrow.matches;
  }

  show(state: State): void {
    const { trainings, parameterization } = state;
    const prompt = parameterization === "p" || parameterization === "pv";
    this.rows.forEach((row, k) => row.show(trainings[k], state));
    this.more.hidden = trainings.length > 1;
    const norms = NORMS.filter((name) => !prompt || (name !== "spectral" && name !== "nuclear"));
    if (state.norm && !norms.includes(state.norm)) norms.push(state.norm);
    options(this.norm, [["", "that of the optimizer"], ...norms.map((name): [string, string] => [name, normWords(name, prompt)])]);
    this.norm.value = state.norm ?? "";
    this.loss.value = state.loss;
    options(this.trained, TRAINED.filter(([name]) => (name === "pv") === (parameterization === "pv")));
    this.trained.value = parameterization;
    const horizons = HORIZONS.includes(state.steps) ? HORIZONS : [...HORIZONS, state.steps].sort((a, b) => a - b);
    options(this.horizon, horizons.map((n) => [String(n), steps(n)]));
    this.horizon.value = String(state.steps);
    const fixed = !!state.paths;
    this.trained.disabled = fixed || !!state.projection || parameterization === "pv";
    for (const one of [this.norm, this.loss, this.horizon, this.more]) one.disabled = fixed;
    write(this.summary, `${trainings.map((t) => `${OPTIMIZERS.find(([name]) => name === t.optimizer)![1]}, step ${number(t.learning_rate)}`).join("; ")}; ${steps(state.steps)}`);
  }
}

const QUERIES = [[1, 0], [0, 1], [0.7, -0.7], [-0.7, 0.7]];

/** Another thing is trained on the same tokens, from the middle; factors cannot leave zero. */
function retrain(state: State, kind: Parameterization): void {
  state.parameterization = kind;
  state.start = { p: [0, 0], W: [0, 0, 0, 0], KQ: [0.1, 0.05, -0.05, 0.1, 0.1, -0.05, 0.05, 0.1], pv: [] }[kind];
  if (kind !== "p" && state.queries.length < state.keys.length) {
    state.queries = state.keys.map((_, i) => QUERIES[i % QUERIES.length]);
  }
  const matrix = kind !== "p";
  if (!matrix && (state.norm === "spectral" || state.norm === "nuclear")) delete state.norm;
  for (const training of state.trainings) {
    delete training.parameterization;
    if (!matrix && training.optimizer === "spectral_descent") training.optimizer = "normalized_gradient_descent";
  }
}

class TrainingRow {
  readonly element: HTMLElement;
  private readonly optimizer: HTMLSelectElement;
  private readonly exponent: HTMLSelectElement;
  private readonly rate = html("input", { type: "number", min: 0.0001, max: 100, step: "any", inputmode: "decimal" });
  private readonly decay = html("input", { type: "number", min: 0, max: 1, step: "any", inputmode: "decimal" });
  private readonly plain = html("input", { type: "checkbox" });
  private readonly less = html("button", { type: "button", "aria-label": "remove the second training" }, "×");
  private readonly power: HTMLElement;

  constructor(private readonly k: number, change: (edit: Edit) => void) {
    const edit = (how: (training: Training) => void): void => change((s) => how(s.trainings[k]));
    this.optimizer = choice("optimizer", (value) => edit((t) => {
      t.optimizer = value as OptimizerName;
      if (value === "mirror_descent") t.p ??= 1.5;
      else delete t.p;
    }));
    this.exponent = choice("exponent p", (value) => edit((t) => { t.p = Number(value); }));
    const typed = (input: HTMLInputElement, set: (t: Training, value: number) => void): void =>
      input.addEventListener("change", () => {
        const value = input.valueAsNumber;
        edit((t) => { if (Number.isFinite(value)) set(t, value); });
      });
    typed(this.rate, (t, value) => { if (value > 0) t.learning_rate = value; });
    typed(this.decay, (t, value) => { if (value > 0) t.weight_decay = value; else delete t.weight_decay; });
    this.plain.addEventListener("change", () => edit((t) => { if (this.plain.checked) t.plain = true; else delete t.plain; }));
    this.less.addEventListener("click", () => change((s) => { s.trainings.length = 1; }));
    this.power = labeled("p", this.exponent);
    this.element = html("div", { class: "training", role: "group", "aria-label": k ? "second training" : "first training" },
      sample(k), this.optimizer, this.power, labeled("step", this.rate), labeled("decay", this.decay),
      html("label", { class: "check", title: "ordinary floating point, whose gradients vanish where attention saturates" }, this.plain, "plain gradient"), this.less);
  }

  show(training: Training | undefined, state: State): void {
    this.element.hidden = !training;
    if (!training) return;
    const prompt = state.parameterization === "p" || state.parameterization === "pv";
    options(this.optimizer, OPTIMIZERS.filter(([name]) => name === training.optimizer || !(prompt && name === "spectral_descent")));
    this.optimizer.value = training.optimizer;
    const p = training.p ?? 1.5;
    options(this.exponent, (EXPONENTS.includes(p) ? EXPONENTS : [...EXPONENTS, p].sort()).map((x) => [String(x), String(x)]));
    this.exponent.value = String(p);
    this.power.hidden = training.optimizer !== "mirror_descent";
    this.rate.value = String(training.learning_rate);
    this.decay.value = String(training.weight_decay ?? 0);
    this.plain.checked = !!training.plain;
    this.less.hidden = this.k === 0;
    for (const one of [this.optimizer, this.exponent, this.rate, this.decay, this.plain]) one.disabled = !!state.paths;
  }
}

function choice(name: string, change: (value: string) => void, offered: [string, string][] = []): HTMLSelectElement {
  const select = html("select", { "aria-label": name });
  options(select, offered);
  select.addEventListener("change", () => change(select.value));
  return select;
}

const shown = new WeakMap<HTMLSelectElement, string>();

export function options(select: HTMLSelectElement, offered: [string, string][]): void {
  const key = JSON.stringify(offered);
  if (shown.get(select) === key) return;
  shown.set(select, key);
  select.replaceChildren(...offered.map(([value, words]) => html("option", { value }, words)));
}

const labeled = (words: string, control: HTMLElement): HTMLElement => html("label", {}, words, control);
