// How it is trained, and against which norm it is measured: one bar, folded on narrow screens.

import { isPrompt } from "../mathematics";
import type { LossName, OptimizerName, Parameterization, State, Training } from "../state";
import { LOSSES, NORMS, normWords, number, OPTIMIZERS, optimizerWords, steps, TRAINED } from "../words";
import { button, select, type Attributes, type Shape } from "./elements";
import { sample } from "./marks";

const HORIZONS = [50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000];
const EXPONENTS = [1.1, 1.25, 1.5, 1.75, 2, 2.5, 3, 4];
const MATRIX_NORMS = ["spectral", "nuclear"];
const QUERIES = [[1, 0], [0, 1], [0.7, -0.7], [-0.7, 0.7]];

const within = <T>(choices: T[], one: T): T[] => (choices.includes(one) ? choices : [...choices, one].sort((a, b) => Number(a) - Number(b)));
const labeled = (words: string, control: Shape, more?: Attributes): Shape => ["label", more, [["span", { text: words }], control]];

/** Another thing is trained on the same tokens, from the middle; factors cannot leave zero. */
function retrain(state: State, kind: Parameterization): void {
  const prompt = kind === "p";
  state.parameterization = kind;
  state.start = prompt ? [0, 0] : kind === "W" ? [0, 0, 0, 0] : [0.1, 0.05, -0.05, 0.1, 0.1, -0.05, 0.05, 0.1];
  if (!prompt && state.queries.length < state.keys.length) state.queries = state.keys.map((_, i) => QUERIES[i % QUERIES.length]);
  if (prompt && MATRIX_NORMS.includes(state.norm!)) delete state.norm;
  for (const training of state.trainings) {
    delete training.parameterization;
    if (prompt && training.optimizer === "spectral_descent") training.optimizer = "normalized_gradient_descent";
  }
}

/** `change` edits the state; what is worked out in Python is not changed. */
export function controls(state: State, wide: boolean, change: (edit: (state: State) => void) => void): Shape {
  const { trainings, parameterization: kind, norm, loss } = state;
  const prompt = isPrompt(kind);
  const disabled = !!state.paths;

  const row = (training: Training, k: number): Shape => {
    const { optimizer, learning_rate, p = 1.5, weight_decay = 0, plain } = training;
    const edit = (how: (training: Training) => void): void => change((s) => how(s.trainings[k]));
    const typed = (value: number, min: number, max: number, take: (training: Training, value: number) => void): Shape =>
      ["input", { type: "number", min, max, step: "any", inputmode: "decimal", value: String(value), disabled, onchange: (event: Event) => {
        const typed = (event.target as HTMLInputElement).valueAsNumber;
        edit((t) => { if (Number.isFinite(typed)) take(t, typed); });
      } }];
    return ["div", { class: "training", role: "group", "aria-label": k ? "second training" : "first training" }, [
      sample(k),
      select("optimizer", optimizer, OPTIMIZERS.filter(([name]) => name === optimizer || !(prompt && name === "spectral_descent")), (value) => edit((t) => {
        t.optimizer = value as OptimizerName;
        if (value === "mirror_descent") t.p ??= 1.5;
        else delete t.p;
      }), { disabled }),
      labeled("p", select("exponent p", p, within(EXPONENTS, p).map((x) => [x, String(x)]), (value) => edit((t) => { t.p = Number(value); }), { disabled }),
        { hidden: optimizer !== "mirror_descent" }),
      labeled("step", typed(learning_rate, 0.0001, 100, (t, value) => { if (value > 0) t.learning_rate = value; })),
      labeled("decay", typed(weight_decay, 0, 1, (t, value) => { if (value > 0) t.weight_decay = value; else delete t.weight_decay; })),
      ["label", { title: "ordinary floating point, whose gradients vanish where attention saturates" }, [
        ["input", { type: "checkbox", checked: !!plain, disabled, onchange: () => edit((t) => { if (plain) delete t.plain; else t.plain = true; }) }],
        ["span", { text: "plain gradient" }],
      ]],
      ...(k ? [button("×", () => change((s) => { s.trainings.length = 1; }), { "aria-label": "remove the second training" })] : []),
    ]];
  };

  const norms = within(NORMS.filter((name) => !prompt || !MATRIX_NORMS.includes(name)), norm ?? NORMS[0]);
  return ["details", { class: "controls", open: wide }, [
    ["summary", {}, [["b", { text: "Training " }], ["span", {
      text: `${trainings.map((t) => `${optimizerWords(t)}, step ${number(t.learning_rate)}`).join("; ")}; ${steps(state.steps)}` }]]],
    ["div", { class: "bar" }, [
      row(trainings[0], 0),
      trainings[1] ? row(trainings[1], 1) : ["div", { hidden: true }],
      ["div", { class: "training" }, [
        labeled("trains", select("what is trained", kind, TRAINED.filter(([name]) => (name === "pv") === (kind === "pv")),
          (value) => change((s) => retrain(s, value as Parameterization)), { disabled: disabled || !!state.projection || kind === "pv" })),
        labeled("norm", select("norm", norm ?? "", [["", "that of the optimizer"], ...norms.map((name): [string, string] => [name, normWords(name, prompt)])],
          (value) => change((s) => { if (value) s.norm = value; else delete s.norm; }), { disabled })),
        labeled("loss", select("loss", loss, LOSSES.map((name) => [name, name]), (value) => change((s) => { s.loss = value as LossName; }), { disabled })),
        labeled("horizon", select("horizon", state.steps, within(HORIZONS, state.steps).map((n) => [n, steps(n)]),
          (value) => change((s) => { s.steps = Number(value); }), { disabled })),
        button("+ compare", () => change((s) => {
          const [{ optimizer, learning_rate }] = s.trainings;
          s.trainings.push({ optimizer: optimizer === "sign_descent" ? "normalized_gradient_descent" : "sign_descent", learning_rate });
        }), { hidden: trainings.length > 1, disabled }),
      ]],
    ]],
  ]];
}
