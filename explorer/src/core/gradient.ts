// The gradient of mean_i log(1 + exp(-o_i)), o_i = sum_t softmax(s_i)_t score_it, as a mantissa and
// the logarithm of its scale: exact however saturated the softmax is (see attention/softmax.py).

import { sizeOf, type Problem } from "./problem";

const TIE = 4 * Number.EPSILON;

export class Gradient {
  readonly size: number;
  /** Mantissa of the gradient after `at`. */
  readonly mantissa: Float64Array;
  /** Logarithm of its scale; -Infinity where it is exactly zero. */
  logScale = -Infinity;

  private readonly n: number;
  private readonly start: Int32Array;
  private readonly keys: Float64Array;
  private readonly gain: Float64Array;
  private readonly queries: Float64Array;
  private readonly pull: Float64Array; // n x 2, mantissa of sum_t m_t x_t
  private readonly logRow: Float64Array;
  private readonly score: Float64Array;
  private readonly weight: Float64Array;
  private readonly matrix: boolean;

  constructor(problem: Problem) {
    this.matrix = problem.parameterization === "W";
    this.size = sizeOf(problem);
    this.mantissa = new Float64Array(this.size);
    this.n = problem.keys.length;
    this.start = new Int32Array(this.n + 1);
    problem.keys.forEach((keys, i) => (this.start[i + 1] = this.start[i] + keys.length));
    this.keys = Float64Array.from(problem.keys.flat(2));
    this.gain = Float64Array.from(problem.scores.flat());
    this.queries = Float64Array.from(problem.queries.flat());
    this.pull = new Float64Array(2 * this.n);
    this.logRow = new Float64Array(this.n);
    this.score = new Float64Array(this.gain.length);
    this.weight = new Float64Array(this.gain.length);
  }

  /** Scores of all tokens, one sequence after another. */
  scores(w: ArrayLike<number>): Float64Array {
    const { keys, score, start, queries } = this;
    for (let i = 0; i < this.n; i++) {
      let p0 = w[0];
      let p1 = w[1];
      if (this.matrix) {
        const a = queries[2 * i];
        const b = queries[2 * i + 1];
        p0 = w[0] * a + w[1] * b;
        p1 = w[2] * a + w[3] * b;
      }
      for (let t = start[i]; t < start[i + 1]; t++) {
        score[t] = keys[2 * t] * p0 + keys[2 * t + 1] * p1;
      }
    }
    return score;
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

  /** Computes mantissa and scale at w. */
  at(w: ArrayLike<number>): void {
    const { start, gain, keys, weight, pull, logRow } = this;
    const score = this.scores(w);
    let common = -Infinity;
    for (let i = 0; i < this.n; i++) {
      const first = start[i];
      const end = start[i + 1];
      let leader = first;
      for (let t = first + 1; t < end; t++) if (score[t] > score[leader]) leader = t;
      const top = score[leader];
      const best = gain[leader];
      let total = 0;
      let live = -Infinity;
      for (let t = first; t < end; t++) {
        const gap = score[t] - top;
        total += weight[t] = Math.exp(gap);
        const tie = TIE * (Math.abs(gain[t]) + Math.abs(best));
        if (gap > live && Math.abs(gain[t] - best) > tie) live = gap;
      }
      pull[2 * i] = pull[2 * i + 1] = 0;
      logRow[i] = -Infinity;
      if (live === -Infinity) continue;
      let sum = 0;
      for (let t = first; t < end; t++) {
        const difference = gain[t] - best;
        const tie = TIE * (Math.abs(gain[t]) + Math.abs(best));
        score[t] = Math.abs(difference) > tie ? Math.exp(score[t] - top - live) * difference : 0;
        sum += score[t];
      }
      const mean = sum / total;
      for (let t = first; t < end; t++) {
        const m = (score[t] - weight[t] * mean) / total;
        pull[2 * i] -= m * keys[2 * t];
        pull[2 * i + 1] -= m * keys[2 * t + 1];
      }
      const margin = best + mean * Math.exp(live);
      logRow[i] = live + logSigmoid(-margin);
      if (logRow[i] > common) common = logRow[i];
    }
    this.add(common);
  }

  /** Adds the pulls of the sequences, each brought to the largest scale. */
  private add(common: number): void {
    const { mantissa, pull, logRow, queries } = this;
    mantissa.fill(0);
    this.logScale = common;
    if (common === -Infinity) return;
    for (let i = 0; i < this.n; i++) {
      const share = Math.exp(logRow[i] - common) / this.n;
      if (this.matrix) {
        for (let b = 0; b < 2; b++) {
          mantissa[b] += share * pull[2 * i] * queries[2 * i + b];
          mantissa[2 + b] += share * pull[2 * i + 1] * queries[2 * i + b];
        }
      } else {
        mantissa[0] += share * pull[2 * i];
        mantissa[1] += share * pull[2 * i + 1];
      }
    }
  }
}

function logSigmoid(x: number): number {
  return x >= 0 ? -Math.log1p(Math.exp(-x)) : x - Math.log1p(Math.exp(x));
}
