// The gradient of mean_i loss(o_i), o_i = sum_t softmax(s_i)_t score_it, as mantissas and the
// logarithms of their scales: exact however saturated the softmax is (see attention/softmax.py).

import { vector } from "./linear";
import { lpNorm } from "./norms";
import { arraysOf, shapeOf, type Problem } from "./problem";

const TIE = 4 * Number.EPSILON;
/** Below this logarithm weights are found anew rather than as ratios of weights. */
const FAINT = -300;
/** Weights that are smaller by this logarithm add nothing, unless those that are larger cancel. */
const NEGLIGIBLE = 75;
/** Entries smaller than this, beside the largest, are added up from terms of their own scale where signs are read. */
const SMALL = 1e-28;

export class Gradient {
  /** Number of parameters. */
  readonly size: number;
  /** Mantissas after `at`. */
  readonly mantissa: Float64Array;
  /** Logarithm of the scale of each trained array; -Infinity where it is exactly zero. */
  readonly logScales: Float64Array;
  /** Shapes of the trained arrays. */
  readonly arrays: [number, number][];
  /** Logarithms of scales entry by entry, after `signed`. */
  readonly entryScales: Float64Array;

  private readonly n: number;
  private readonly reach: number;
  private readonly flat: boolean[]; // n x d, coordinates that all keys of a sequence share
  private readonly d: number;
  private readonly e: number;
  private readonly kind: Problem["parameterization"];
  private readonly loss: Problem["loss"];
  private readonly plain: boolean;
  private readonly start: Int32Array;
  private readonly keys: Float64Array;
  private readonly gain: Float64Array;
  private readonly tie: Float64Array;
  private readonly slopes: Float64Array; // log |loss'| where attention is on one token; with a head, lengths of keys
  private readonly queries: Float64Array;
  private readonly labels: Float64Array;
  private readonly pull: Float64Array; // n x d, mantissa of sum_t m_t x_t
  private readonly logRow: Float64Array;
  private readonly logLoss: Float64Array;
  private readonly score: Float64Array;
  private readonly weight: Float64Array;
  private readonly along: Float64Array; // W z of one sequence
  private readonly turned: Float64Array; // Q^T z of each
  private readonly leader: Int32Array;

  constructor(problem: Problem, plain = false) {
    const { keys, queries, parameterization } = problem;
    this.kind = parameterization;
    this.loss = problem.loss;
    this.plain = plain;
    this.arrays = arraysOf(problem);
    this.size = this.arrays.reduce((sum, [a, b]) => sum + a * b, 0);
    this.mantissa = vector(this.size);
    this.entryScales = vector(this.size);
    this.logScales = vector(this.arrays.length).fill(-Infinity);
    [this.d, this.e] = shapeOf(problem);
    this.n = keys.length;
    this.start = new Int32Array(this.n + 1);
    keys.forEach((row, i) => (this.start[i + 1] = this.start[i] + row.length));
    const count = this.start[this.n];
    this.keys = Float64Array.from(keys.flat(2));
    // Tokens with the same key exchange attention at no effect.
    const copies = keys.some((row) => new Set(row.map((key) => key.join())).size < row.length);
    this.reach = copies ? Infinity : NEGLIGIBLE;
    this.flat = keys.flatMap((row) => row[0].map((x, a) => row.every((key) => key[a] === x)));
    this.gain = vector(count);
    this.tie = vector(count);
    this.slopes = vector(count);
    if (parameterization === "pv") keys.flat().forEach((key, t) => (this.slopes[t] = Math.hypot(...key)));
    else {
      this.gain.set(problem.scores.flat());
      for (let t = 0; t < count; t++) {
        this.tie[t] = TIE * Math.abs(this.gain[t]);
        this.slopes[t] = this.logSlope(this.gain[t]);
      }
    }
    this.queries = Float64Array.from(queries.flat());
    this.labels = Float64Array.from(problem.labels ?? []);
    this.pull = vector(this.d * this.n);
    this.logRow = vector(this.n);
    this.logLoss = vector(this.n);
    this.score = vector(count);
    this.weight = vector(count);
    this.along = vector(this.d);
    this.turned = vector(this.d * this.n);
    this.leader = new Int32Array(this.n);
  }

  /** Logarithm of the scale of what attention is made of. */
  get logScale(): number {
    return this.logScales[0];
  }

  /** Scores of all tokens, one sequence after another. */
  scores(w: ArrayLike<number>): Float64Array {
    const { keys, score, start, d, along } = this;
    if (d === 2) {
      let p0 = w[0];
      let p1 = w[1];
      for (let i = 0; i < this.n; i++) {
        if (this.kind === "W" || this.kind === "KQ") {
          this.turn(w, i);
          p0 = along[0];
          p1 = along[1];
        }
        for (let t = start[i]; t < start[i + 1]; t++) {
          score[t] = keys[2 * t] * p0 + keys[2 * t + 1] * p1;
        }
      }
      return score;
    }
    for (let i = 0; i < this.n; i++) {
      this.turn(w, i);
      for (let t = start[i]; t < start[i + 1]; t++) {
        let sum = 0;
        for (let a = 0; a < d; a++) sum += keys[d * t + a] * along[a];
        score[t] = sum;
      }
    }
    return score;
  }

  /** What scores the tokens of a sequence: p, or W z, or K (Q^T z). */
  private turn(w: ArrayLike<number>, i: number): void {
    const { d, e, along, turned, queries, kind } = this;
    if (kind === "p" || kind === "pv") {
      for (let a = 0; a < d; a++) along[a] = w[a];
      return;
    }
    const factors = kind === "KQ";
    for (let m = 0; m < d && factors; m++) {
      let sum = 0;
      for (let b = 0; b < e; b++) sum += queries[e * i + b] * w[d * d + b * d + m];
      turned[d * i + m] = sum;
    }
    const [z, width] = factors ? [turned, d] : [queries, e];
    for (let a = 0; a < d; a++) {
      let sum = 0;
      for (let b = 0; b < width; b++) sum += w[a * width + b] * z[width * i + b];
      along[a] = sum;
    }
  }

  /** Attention weights of all tokens, one sequence after another. */
  attention(w: ArrayLike<number>): Float64Array {
    const { start, weight } = this;
    const score = this.scores(w);
    for (let i = 0; i < this.n; i++) {
      let top = -Infinity;
      for (let t = start[i]; t < start[i + 1]; t++) top = Math.max(top, score[t]);
      let total = 0;
      for (let t = start[i]; t < start[i + 1]; t++) total += weight[t] = Math.exp(score[t] - top);
      for (let t = start[i]; t < start[i + 1]; t++) weight[t] /= total;
    }
    return weight;
  }

  /** With a trained head v, the scores and ties that it gives. */
  private readHead(w: ArrayLike<number>): void {
    const { d, keys, start, gain, tie, labels, slopes } = this;
    let length = 0;
    for (let a = 0; a < d; a++) length += w[d + a] ** 2;
    length = Math.sqrt(length);
    for (let i = 0; i < this.n; i++) {
      for (let t = start[i]; t < start[i + 1]; t++) {
        let sum = 0;
        for (let a = 0; a < d; a++) sum += keys[d * t + a] * w[d + a];
        gain[t] = labels[i] * sum;
        tie[t] = TIE * length * slopes[t];
      }
    }
  }

  /** Computes mantissas and scales at w. */
  at(w: ArrayLike<number>): void {
    const { start, gain, tie, keys, weight, pull, logRow, logLoss, leader, slopes, d, plain } = this;
    const head = this.kind === "pv";
    if (head) this.readHead(w);
    const score = this.scores(w);
    let common = -Infinity;
    for (let i = 0; i < this.n; i++) {
      const first = start[i];
      const end = start[i + 1];
      let lead = first;
      for (let t = first + 1; t < end; t++) if (score[t] > score[lead]) lead = t;
      leader[i] = lead;
      const top = score[lead];
      const best = gain[lead];
      const tieLead = tie[lead];
      let live = -Infinity;
      for (let t = first; t < end; t++) {
        const gap = (score[t] -= top);
        if (gap > live && Math.abs(gain[t] - best) > tie[t] + tieLead) live = gap;
      }
      if (plain) {
        this.addPlain(i);
        common = 0;
        continue;
      }
      logLoss[i] = slopes[lead];
      logRow[i] = -Infinity;
      if (live === -Infinity && !head) {
        this.clear(i);
        continue;
      }
      // Weights, and those in units of the heaviest token that matters; what is far below it does not.
      const least = live - this.reach;
      const ratio = live > FAINT ? Math.exp(-live) : 0;
      let total = 0;
      let sum = 0;
      for (let t = first; t < end; t++) {
        const gap = score[t];
        score[t] = 0;
        if (gap < least) {
          weight[t] = 0;
          continue;
        }
        total += weight[t] = t === lead ? 1 : Math.exp(gap);
        const difference = gain[t] - best;
        if (Math.abs(difference) > tie[t] + tieLead) {
          sum += score[t] = (ratio ? weight[t] * ratio : Math.exp(gap - live)) * difference;
        }
      }
      this.clear(i);
      if (live === -Infinity) {
        if (head) logLoss[i] = this.logSlope(best);
        continue;
      }
      const mean = sum / total;
      if (d === 2) {
        const x = keys[2 * lead];
        const y = keys[2 * lead + 1];
        let px = 0;
        let py = 0;
        for (let t = first; t < end; t++) {
          if (t === lead) continue;
          const m = (score[t] - weight[t] * mean) / total;
          px -= m * (keys[2 * t] - x);
          py -= m * (keys[2 * t + 1] - y);
        }
        pull[2 * i] = px;
        pull[2 * i + 1] = py;
      } else {
        for (let t = first; t < end; t++) {
          if (t === lead) continue;
          const m = (score[t] - weight[t] * mean) / total;
          for (let a = 0; a < d; a++) pull[d * i + a] -= m * (keys[d * t + a] - keys[d * lead + a]);
        }
      }
      const margin = ratio ? best + mean / ratio : best + mean * Math.exp(live);
      if (margin !== best || head) logLoss[i] = this.logSlope(margin);
      logRow[i] = live + logLoss[i];
      if (logRow[i] > common) common = logRow[i];
    }
    this.add(w, common);
  }

  private clear(i: number): void {
    for (let a = 0; a < this.d; a++) this.pull[this.d * i + a] = 0;
  }

  /** softmax * (g - <softmax, g>), which loses all digits where one token holds all the weight. */
  private addPlain(i: number): void {
    const { start, score, gain, keys, weight, pull, logRow, logLoss, d } = this;
    this.clear(i);
    let total = 0;
    let margin = 0;
    for (let t = start[i]; t < start[i + 1]; t++) total += weight[t] = Math.exp(score[t]);
    for (let t = start[i]; t < start[i + 1]; t++) margin += (weight[t] /= total) * gain[t];
    const slope = Math.exp(this.logSlope(margin));
    let mean = 0;
    for (let t = start[i]; t < start[i + 1]; t++) mean += weight[t] * (slope * gain[t]);
    for (let t = start[i]; t < start[i + 1]; t++) {
      const m = weight[t] * (slope * gain[t] - mean);
      for (let a = 0; a < d; a++) pull[d * i + a] -= m * keys[d * t + a];
    }
    logRow[i] = 0;
    logLoss[i] = Math.log(slope);
  }

  /** log |loss'(margin)|. */
  private logSlope(margin: number): number {
    if (this.loss === "exponential") return -margin;
    if (this.loss === "linear") return 0;
    return margin > 0 ? -margin - Math.log1p(Math.exp(-margin)) : -Math.log1p(Math.exp(margin));
  }

  /** Adds the pulls of the sequences, each brought to the largest scale. */
  private add(w: ArrayLike<number>, common: number): void {
    const { mantissa, pull, logRow, logScales, queries, turned, kind, d, e, n } = this;
    mantissa.fill(0);
    logScales.fill(common);
    for (let i = 0; i < n && common > -Infinity; i++) {
      if (logRow[i] < common - 745) continue;
      const share = (logRow[i] === common ? 1 : Math.exp(logRow[i] - common)) / n;
      if (kind === "p" || kind === "pv") {
        for (let a = 0; a < d; a++) mantissa[a] += share * pull[d * i + a];
      } else if (kind === "W") {
        for (let a = 0; a < d; a++) {
          for (let b = 0; b < e; b++) mantissa[a * e + b] += share * pull[d * i + a] * queries[e * i + b];
        }
      } else {
        for (let a = 0; a < d; a++) {
          for (let m = 0; m < d; m++) mantissa[a * d + m] += share * pull[d * i + a] * turned[d * i + m];
        }
        for (let m = 0; m < d; m++) {
          let along = 0;
          for (let a = 0; a < d; a++) along += pull[d * i + a] * w[a * d + m];
          for (let b = 0; b < e; b++) mantissa[d * d + b * d + m] += share * along * queries[e * i + b];
        }
      }
    }
    if (kind === "pv") this.addHead();
  }

  /** In the head: -mean_i |loss'| y_i o_i. */
  private addHead(): void {
    const { mantissa, logLoss, logScales, labels, keys, weight, start, d, n } = this;
    let common = -Infinity;
    for (let i = 0; i < n; i++) if (logLoss[i] > common) common = logLoss[i];
    if (this.plain) common = 0;
    logScales[1] = common;
    for (let i = 0; i < n; i++) {
      const share = (-labels[i] * Math.exp(logLoss[i] - common)) / n;
      let total = 0;
      for (let t = start[i]; t < start[i + 1]; t++) total += weight[t];
      for (let t = start[i]; t < start[i + 1]; t++) {
        for (let a = 0; a < d; a++) mantissa[d + a] += share * (weight[t] / total) * keys[d * t + a];
      }
    }
  }

  /** Gives every entry a scale of its own, after `at(w)`: far below the largest, signs would be lost. */
  signed(w: ArrayLike<number>): void {
    const { mantissa, entryScales, logScales, arrays } = this;
    let k = 0;
    for (let r = 0; r < arrays.length; r++) {
      for (let c = arrays[r][0] * arrays[r][1]; c > 0; c--, k++) entryScales[k] = mantissa[k] === 0 ? -Infinity : logScales[r];
    }
    const least = SMALL * lpNorm(Infinity, mantissa);
    if (this.plain || mantissa.every((x) => Math.abs(x) > least) || (this.kind === "p" && this.byRows())) return;
    entryScales.fill(-Infinity);
    this.entries(w, (log, entry) => (entryScales[entry] = Math.max(entryScales[entry], log)));
    mantissa.fill(0);
    this.entries(w, (log, entry, value) => (mantissa[entry] += value * Math.exp(log - entryScales[entry])));
    for (let entry = 0; entry < this.size; entry++) if (mantissa[entry] === 0) entryScales[entry] = -Infinity;
  }

  /** Entries of a prompt from sequences, each at its own scale; false where a sequence hides an entry itself. */
  private byRows(): boolean {
    const { mantissa, entryScales, pull, logRow, flat, d, n } = this;
    for (let i = 0; i < n; i++) {
      if (logRow[i] === -Infinity) continue;
      const largest = lpNorm(Infinity, pull.subarray(d * i, d * i + d));
      for (let a = 0; a < d; a++) if (!flat[d * i + a] && !(Math.abs(pull[d * i + a]) > SMALL * largest)) return false;
    }
    for (let a = 0; a < d; a++) {
      let scale = -Infinity;
      for (let i = 0; i < n; i++) if (pull[d * i + a] !== 0 && logRow[i] > scale) scale = logRow[i];
      mantissa[a] = 0;
      entryScales[a] = scale;
      for (let i = 0; i < n; i++) if (pull[d * i + a] !== 0) mantissa[a] += (Math.exp(logRow[i] - scale) * pull[d * i + a]) / n;
    }
    return true;
  }

  /** Goes through all terms of all entries, each value * exp(log). */
  private entries(
    w: ArrayLike<number>,
    take: (log: number, entry: number, value: number) => void,
  ): void {
    const { start, gain, tie, keys, logLoss, leader, queries, turned, labels, kind, d, e, n } = this;
    const gaps = Float64Array.from(this.scores(w));
    const give = (log: number, entry: number, value: number): void => {
      if (value !== 0) take(log, entry, value);
    };
    for (let i = 0; i < n; i++) {
      const lead = leader[i];
      const top = gaps[lead];
      const isLive = (t: number): boolean => Math.abs(gain[t] - gain[lead]) > tie[t] + tie[lead];
      let total = 0;
      let live = -Infinity;
      for (let t = start[i]; t < start[i + 1]; t++) {
        gaps[t] -= top;
        total += Math.exp(gaps[t]);
        if (gaps[t] > live && isLive(t)) live = gaps[t];
      }
      if (kind === "pv") {
        for (let t = start[i]; t < start[i + 1]; t++) {
          for (let a = 0; a < d; a++) {
            give(gaps[t] + logLoss[i], d + a, (-labels[i] * keys[d * t + a]) / total / n);
          }
        }
      }
      if (live === -Infinity) continue;
      let mean = 0;
      for (let t = start[i]; t < start[i + 1]; t++) {
        if (isLive(t)) mean += Math.exp(gaps[t] - live) * (gain[t] - gain[lead]);
      }
      mean /= total;
      for (let t = start[i]; t < start[i + 1]; t++) {
        if (t === lead) continue;
        const own = isLive(t) ? gain[t] - gain[lead] - Math.exp(live) * mean : -mean;
        const log = gaps[t] + logLoss[i] + (isLive(t) ? 0 : live);
        const share = -own / total / n;
        const apart = (a: number): number => keys[d * t + a] - keys[d * lead + a];
        for (let a = 0; a < d; a++) {
          if (kind === "p" || kind === "pv") give(log, a, share * apart(a));
          else if (kind === "W") for (let b = 0; b < e; b++) give(log, a * e + b, share * apart(a) * queries[e * i + b]);
          else for (let m = 0; m < d; m++) give(log, a * d + m, share * apart(a) * turned[d * i + m]);
        }
        if (kind !== "KQ") continue;
        for (let m = 0; m < d; m++) {
          let along = 0;
          for (let a = 0; a < d; a++) along += apart(a) * w[a * d + m];
          for (let b = 0; b < e; b++) give(log, d * d + b * d + m, share * along * queries[e * i + b]);
        }
      }
    }
  }
}
