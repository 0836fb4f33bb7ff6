// Numbers, names and sentences as a reader wants them.

import schema from "../../src/attractor/explorer/schema.json";
import { isInfeasible, isSolved, sameSelection, type Answers, type Moment } from "./answers";
import type { Attractor } from "./core/analysis";
import { bestTokens } from "./mathematics";
import type { LossName, NormName, OptimizerName, Parameterization, Training } from "./state";

export type Choice = [value: string, words: string];

export const OPTIMIZERS = schema.Training.optimizer.slice(1).map((name) =>
  [name, name.replace("greedy_", "").replaceAll("_", " ")]) as [OptimizerName, string][];

export const optimizerWords = ({ optimizer }: Training): string => OPTIMIZERS.find(([name]) => name === optimizer)![1];

export const LOSSES = schema.State.loss.slice(1) as LossName[];

export const TRAINED: [Parameterization, string][] = [
  ["p", "prompt p"], ["W", "matrix W"], ["KQ", "factors K, Q"], ["pv", "prompt p and head v"],
];

export const NORMS: NormName[] = ["frobenius", "l_1", "l_1.5", "l_3", "l_4", "l_inf", "spectral", "nuclear"];

export function normWords(name: NormName, prompt: boolean): string {
  if (name === "frobenius") return prompt ? "l₂" : "Frobenius";
  if (name === "l_inf") return "l∞";
  return name.startsWith("l_") ? `l${subscript(name.slice(2))}` : name;
}

export const subscript = (text: string | number): string => [...String(text)].map((c) => "₀₁₂₃₄₅₆₇₈₉"[Number(c)] ?? c).join("");

/** A number in few letters. */
export function number(x: number, short = false): string {
  if (!Number.isFinite(x)) return x > 0 ? "∞" : "–";
  const size = Math.abs(x);
  if (size === 0) return "0";
  if (size < (short ? 1e-2 : 1e-3) || size >= 1e5) return x.toExponential(1).replace("e+", "e");
  return String(Number(x.toPrecision(!short ? 4 : size < 1 ? 2 : 3)));
}

export const small = (x: number): string => (x === 0 ? "0" : x.toExponential(1));

const grouped = new Intl.NumberFormat("en");
export const count = (n: number): string => grouped.format(n);
export const steps = (n: number): string => `${count(n)} steps`;

/** "tokens 0 and 2", "token 3": counted from zero, as in Python. */
function tokens(kept: readonly number[]): string {
  if (kept.length === 1) return `token ${kept[0]}`;
  return `tokens ${kept.slice(0, -1).join(", ")} and ${kept[kept.length - 1]}`;
}

/** Whether no token scores more than the ones kept. */
export const isBest = ({ scores, kept }: Moment): boolean => scores.every((row, i) => row[kept[i]] >= Math.max(...row));

/** Whether several tokens of a sequence share the best score. */
export const tied = (scores: number[][]): boolean => scores.some((row) => bestTokens(row).length > 1);

/** What comes out, in a sentence or two. */
export function verdict({ runs, ends, predicted: [predicted], problem, prompt, state }: Answers): string {
  const what = prompt ? "prompt" : "matrix";
  const parts: string[] = [];
  const infeasible = isInfeasible(predicted);
  if (infeasible) {
    parts.push(`No ${what} keeps ${state.selection ? tokens(predicted.selection) : "the best tokens"}: the constraints contradict each other.`);
  } else if (!isSolved(predicted)) parts.push("The margin problem is not settled.");
  const two = ends.length > 1;
  const both = two && ends.every(({ saturated }) => saturated) && sameSelection(ends[0].kept, ends[1].kept);
  const norm = (k: number): string => normWords(runs[k].norm, prompt);
  const margins = ends.map(({ kept, marginRatio }, k) => {
    const { attractor } = runs[k];
    const same = k === 0 && both && norm(0) === norm(1); // said once, with the second
    return isSolved(attractor) && sameSelection(attractor.margin.selection, kept) ? ratio(marginRatio) + (same ? "" : ` in ${norm(k)}`) : "";
  });
  const keep = (who: string, end: Moment, margin: string): void => {
    parts.push(`${who} ${tokens(end.kept)}, ${isBest(end) ? "" : "not "}the best${margin && `; margin ratio ${margin}`}.`);
  };
  if (both) keep("Both keep", ends[0], margins.filter(Boolean).join(" and "));
  else ends.forEach((end, k) => {
    const who = two && ["The first training", "the second"][k];
    if (end.saturated) return keep(`${who || "Training"} keeps`, end, margins[k]);
    const sequence = problem.keys.length > 1 ? " in one of the sequences" : "";
    parts.push(`${who || "Attention"} ${infeasible ? "does not saturate" : "has not saturated"}: after ${steps(end.step)} its largest weight${sequence} is ${(100 * end.share).toFixed(0)} %, at a norm of ${number(end.norm)} in ${norm(k)}.`);
  });
  runs.forEach(({ ended, reason, training }, k) => {
    if (ended < 0) return;
    const gap = training.plain ? `, at a gap of ${number(ends[k].scoreGap, true)} between attention scores` : "";
    const why = reason === "stationary" ? `${gap}: its gradient is zero` : ": no digit changes any more";
    parts.push(`${two ? ["The first", "The second"][k] : "It"} ${
      reason === "diverged" ? `diverged at step ${ended}` : `came to stand at step ${count(ended)}${why}`}.`);
  });
  if (tied(problem.scores)) parts.push("Tokens that share the best score put no constraint on each other.");
  return parts.join(" ").replace(/\. the second/g, "; the second");
}

function ratio(x: number): string {
  if (!Number.isFinite(x)) return "–";
  return x > 0.9995 && x < 1 ? `1 − ${(1 - x).toExponential(1)}` : x.toFixed(4);
}

/** The constraints that multipliers combine into a contradiction, each with its share. */
export function contradicting({ solution: { multipliers }, constraints }: Attractor): { i: number; t: number; share: number }[] {
  const total = multipliers.reduce((a, b) => a + b, 0);
  return constraints.flatMap(({ sequence: i, token: t }, j) =>
    (multipliers[j] > 1e-9 * Math.max(...multipliers) ? [{ i, t, share: multipliers[j] / total }] : []));
}

/** The multipliers that combine constraints into a contradiction: sequence, token kept and token left. */
export const contradiction = (attractor: Attractor): string => `${contradicting(attractor).map(({ i, t, share }) => {
  const x = (token: number): string => `x${subscript(`${i}${i > 9 || token > 9 ? "," : ""}${token}`)}`;
  return `${share.toFixed(2)} (${x(attractor.margin.selection[i])} − ${x(t)})`;
}).join(" + ")} = 0`;
