// The gradient of mean_i loss(o_i), o_i = sum_t softmax(s_i)_t score_it, as mantissas and the
// logarithms of their scales: exact however saturated the softmax is (see attention/softmax.py).

import type { LossName } from "../state";
import { largest, vector, type Vector } from "./linear";
import { lpNorm } from "./norms";
import { arraysOf, queriesOf, shapeOf, type Problem, type TrainedArray } from "./problem";

const TIE = 4 * Number.EPSILON;
/** Below this logarithm weights are found anew rather than as ratios of weights. */
const FAINT = -300;
/** Weights that are smaller by this logarithm add nothing, unless those that are larger cancel. */
const NEGLIGIBLE = 75;
/** Entries smaller than this, beside the largest, are added up from terms of their own scale where signs are read. */
const SMALL = 1e-28;

export interface Gradient {
  /** Number of parameters. */
  readonly size: number;
  /** Mantissas after `at`. */
  readonly mantissa: Vector;
  /** Logarithm of the scale of each trained array; -Infinity where it is exactly zero. */
  readonly logScales: Vector;
  /** Logarithms of scales entry by entry, after `signed`. */
  readonly entryScales: Vector;
  readonly arrays: TrainedArray[];
  /** Scores of all tokens, one sequence after another. */
  scores(w: ArrayLike<number>): Vector;
  /** Attention weights of all tokens, one sequence after another. */
  attention(w: ArrayLike<number>): Vector;
  /** Computes mantissas and scales at w. */
  at(w: ArrayLike<number>): void;
  /** Gives every entry a scale of its own, after `at(w)`: far below the largest, signs would be lost. */
  signed(w: ArrayLike<number>): void;
}

const softplus = (x: number): number => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));

/** log |loss'(margin)|. */
export const logSlope = (loss: LossName, margin: number): number =>
  loss === "linear" ? 0 : -(loss === "logistic" ? softplus(margin) : margin);

export function lossOf(loss: LossName, margin: number): number {
  if (loss === "linear") return -margin;
  return loss === "logistic" ? softplus(-margin) : Math.exp(-margin);
}

export function gradientOf(problem: Problem, plain = false): Gradient {
  const { loss, parameterization } = problem;
  const [head, factors] = [parameterization === "pv", parameterization === "KQ"];
  const [d, e] = shapeOf(problem);
  const n = problem.keys.length;
  const arrays = arraysOf(problem);
  const size = arrays[arrays.length - 1].to;
  const [mantissa, entryScales] = [vector(size), vector(size)];
  const logScales = vector(arrays.length).fill(-Infinity);

  const start = new Int32Array(n + 1);
  problem.keys.forEach((row, i) => (start[i + 1] = start[i] + row.length));
  const count = start[n];
  const keys = Float64Array.from(problem.keys.flat(2));
  const queries = Float64Array.from(queriesOf(problem).flat());
  const labels = problem.labels ?? [];
  // Tokens with the same key exchange attention at no effect.
  const copies = problem.keys.some((row) => new Set(row.map((key) => key.join())).size < row.length);
  const reach = copies ? Infinity : NEGLIGIBLE;
  // What attention gains by a token, and how much of it is rounding.
  const [gain, tie] = [vector(count), vector(count)];
  const lengths = problem.keys.flat().map((key) => Math.hypot(...key));
  if (!head) {
    gain.set(problem.scores.flat());
    for (let t = 0; t < count; t++) tie[t] = TIE * Math.abs(gain[t]);
  }

  // Factors are a matrix K that reads Q^T z.
  const width = factors ? d : e;
  const inputs = factors ? vector(n * d) : queries;
  const along = vector(d); // what scores the tokens of a sequence
  const [score, weight, lively] = [vector(count), vector(count), vector(count)];
  const pull = vector(n * d); // mantissa of sum_t m_t x_t
  const [margins, slopes, logRow] = [vector(n), vector(n), vector(n)]; // |loss'| is a slope, or in the logarithm
  const [mean, live, total] = [vector(n), vector(n), vector(n)];
  const leader = new Int32Array(n);

  /** |loss'(margin)|. */
  const slope = (margin: number): number => (loss === "linear" ? 1 : 1 / (Math.exp(margin) + Number(loss === "logistic")));

  const isLive = (t: number, lead: number): boolean => Math.abs(gain[t] - gain[lead]) > tie[t] + tie[lead];

  function scores(w: ArrayLike<number>): Vector {
    for (let i = 0; i < n; i++) {
      for (let m = 0; m < d && factors; m++) {
        let sum = 0;
        for (let b = 0; b < e; b++) sum += queries[e * i + b] * w[(d + b) * d + m];
        inputs[d * i + m] = sum;
      }
      for (let a = 0; a < d; a++) {
        let sum = 0;
        for (let b = 0; b < width; b++) sum += w[a * width + b] * inputs[width * i + b];
        along[a] = sum;
      }
      for (let t = start[i]; t < start[i + 1]; t++) {
        let sum = 0;
        for (let a = 0; a < d; a++) sum += keys[d * t + a] * along[a];
        score[t] = sum;
      }
    }
    return score;
  }

  function attention(w: ArrayLike<number>): Vector {
    scores(w);
    for (let i = 0; i < n; i++) {
      const top = largest(score.subarray(start[i], start[i + 1]));
      let sum = 0;
      for (let t = start[i]; t < start[i + 1]; t++) sum += weight[t] = Math.exp(score[t] - top);
      for (let t = start[i]; t < start[i + 1]; t++) weight[t] /= sum;
    }
    return weight;
  }

  /** With a trained head v, the scores and ties that it gives. */
  function readHead(w: ArrayLike<number>): void {
    let square = 0;
    for (let a = d; a < 2 * d; a++) square += w[a] * w[a];
    const length = Math.sqrt(square);
    for (let i = 0; i < n; i++) {
      for (let t = start[i]; t < start[i + 1]; t++) {
        let sum = 0;
        for (let a = 0; a < d; a++) sum += keys[d * t + a] * w[d + a];
        gain[t] = labels[i] * sum;
        tie[t] = TIE * length * lengths[t];
      }
    }
  }

  function at(w: ArrayLike<number>): void {
    if (head) readHead(w);
    scores(w);
    let common = plain ? 0 : -Infinity;
    for (let i = 0; i < n; i++) {
      const first = start[i];
      const end = start[i + 1];
      let lead = first;
      for (let t = first + 1; t < end; t++) if (score[t] > score[lead]) lead = t;
      leader[i] = lead;
      const top = score[lead];
      let far = -Infinity; // the heaviest token that matters beside the leader
      for (let t = first; t < end; t++) {
        const gap = (score[t] -= top);
        if (gap > far && isLive(t, lead)) far = gap;
      }
      live[i] = far;
      if (plain) {
        atPlain(i);
        continue;
      }
      const best = gain[lead];
      for (let a = 0; a < d; a++) pull[d * i + a] = 0;
      margins[i] = best;
      logRow[i] = -Infinity;
      if (far === -Infinity && !head) continue;
      // Weights, and those in units of the heaviest token that matters; what is far below it does not.
      const heaviest = far > FAINT ? Math.exp(far) : 0;
      let whole = 0;
      let sum = 0;
      for (let t = first; t < end; t++) {
        const gap = score[t];
        lively[t] = weight[t] = 0;
        if (gap < far - reach) continue;
        whole += weight[t] = t === lead ? 1 : gap === far ? heaviest : Math.exp(gap);
        if (!isLive(t, lead)) continue;
        sum += lively[t] = (gap === far ? 1 : heaviest ? weight[t] / heaviest : Math.exp(gap - far)) * (gain[t] - best);
      }
      total[i] = whole;
      mean[i] = sum /= whole;
      if (far === -Infinity) continue;
      for (let t = first; t < end; t++) {
        const m = (lively[t] - weight[t] * sum) / whole;
        for (let a = 0; a < d; a++) pull[d * i + a] -= m * (keys[d * t + a] - keys[d * lead + a]);
      }
      const margin = (margins[i] = best + sum * heaviest);
      const tame = Math.abs(margin) < -FAINT;
      slopes[i] = tame ? slope(margin) : 1;
      logRow[i] = tame ? far : far + logSlope(loss, margin);
      if (logRow[i] > common) common = logRow[i];
    }
    for (let k = 0; k < size; k++) mantissa[k] = 0;
    for (let r = 0; r < arrays.length; r++) logScales[r] = common;
    for (let i = 0; i < n && common > -Infinity; i++) {
      spread(w, i, pull, d * i, (slopes[i] * (logRow[i] === common ? 1 : Math.exp(logRow[i] - common))) / n, mantissa);
    }
    if (head) atHead();
  }

  /** softmax * (g - <softmax, g>), which loses all digits where one token holds all the weight. */
  function atPlain(i: number): void {
    let margin = 0;
    slopes[i] = 1;
    total[i] = 0;
    for (let a = 0; a < d; a++) pull[d * i + a] = 0;
    for (let t = start[i]; t < start[i + 1]; t++) total[i] += weight[t] = Math.exp(score[t]);
    for (let t = start[i]; t < start[i + 1]; t++) margin += (weight[t] / total[i]) * gain[t];
    margins[i] = margin;
    const by = Math.exp(logSlope(loss, margin));
    let average = 0;
    for (let t = start[i]; t < start[i + 1]; t++) average += (weight[t] / total[i]) * (by * gain[t]);
    for (let t = start[i]; t < start[i + 1]; t++) {
      const m = (weight[t] / total[i]) * (by * gain[t] - average);
      for (let a = 0; a < d; a++) pull[d * i + a] -= m * keys[d * t + a];
    }
    logRow[i] = 0;
  }

  /** Adds a multiple of the gradient of <x, W z_i> in all parameters but the head's. */
  function spread(w: ArrayLike<number>, i: number, x: Vector, from: number, factor: number, out: Vector): void {
    for (let a = 0; a < d; a++) {
      for (let b = 0; b < width; b++) out[a * width + b] += factor * x[from + a] * inputs[width * i + b];
    }
    for (let m = 0; m < d && factors; m++) {
      let sum = 0;
      for (let a = 0; a < d; a++) sum += x[from + a] * w[a * d + m];
      for (let b = 0; b < e; b++) out[(d + b) * d + m] += factor * sum * queries[e * i + b];
    }
  }

  /** In the head: -mean_i |loss'| y_i o_i. */
  function atHead(): void {
    const logLoss = margins.map((margin) => logSlope(loss, margin));
    const common = plain ? 0 : largest(logLoss);
    logScales[1] = common;
    for (let i = 0; i < n; i++) {
      const share = (-labels[i] * Math.exp(logLoss[i] - common)) / n;
      for (let t = start[i]; t < start[i + 1]; t++) {
        for (let a = 0; a < d; a++) mantissa[d + a] += share * (weight[t] / total[i]) * keys[d * t + a];
      }
    }
  }

  function signed(w: ArrayLike<number>): void {
    arrays.forEach(({ from, to }, r) => {
      for (let k = from; k < to; k++) entryScales[k] = mantissa[k] === 0 ? -Infinity : logScales[r];
    });
    const least = SMALL * lpNorm(Infinity, mantissa);
    if (plain || mantissa.every((x) => Math.abs(x) > least)) return;
    const found = terms(w);
    for (let k = 0; k < size; k++) {
      let scale = -Infinity;
      for (const { log, values } of found) if (values[k] !== 0 && log > scale) scale = log;
      let sum = 0;
      for (const { log, values } of found) if (values[k] !== 0) sum += values[k] * Math.exp(log - scale);
      mantissa[k] = sum;
      entryScales[k] = sum === 0 ? -Infinity : scale;
    }
  }

  /** All terms of the gradient after `at(w)`, one or two a token: values * exp(log). */
  function terms(w: ArrayLike<number>): { log: number; values: Vector }[] {
    const found: { log: number; values: Vector }[] = [];
    const add = (log: number): Vector => {
      const values = vector(size);
      found.push({ log, values });
      return values;
    };
    const apart = vector(d);
    for (let i = 0; i < n; i++) {
      const lead = leader[i];
      const logLoss = logSlope(loss, margins[i]);
      for (let t = start[i]; t < start[i + 1]; t++) {
        const log = score[t] + logLoss;
        if (head) {
          const values = add(log);
          for (let a = 0; a < d; a++) values[d + a] = (-labels[i] * keys[d * t + a]) / total[i] / n;
        }
        if (t === lead || live[i] === -Infinity) continue;
        const matters = isLive(t, lead);
        const own = matters ? gain[t] - gain[lead] - Math.exp(live[i]) * mean[i] : -mean[i];
        for (let a = 0; a < d; a++) apart[a] = keys[d * t + a] - keys[d * lead + a];
        spread(w, i, apart, 0, -own / total[i] / n, add(log + (matters ? 0 : live[i])));
      }
    }
    return found;
  }

  return { size, mantissa, logScales, entryScales, arrays, scores, attention, at, signed };
}
