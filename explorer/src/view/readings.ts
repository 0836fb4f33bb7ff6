// Attention weights as bars, convergence as curves, and the numbers.

import { measure, type Attractor } from "../core/analysis";
import type { Problem } from "../core/problem";
import type { Path } from "../core/train";
import { SEQUENCE } from "./style";
import { fixed, near, svg } from "./svg";

const WIDTH = 300;

/** One bar a sequence, a piece a token. */
export function drawBars(element: SVGSVGElement, problem: Problem, attention: ArrayLike<number>, kept: number[] | null): void {
  const height = 26;
  element.setAttribute("viewBox", `0 0 ${WIDTH} ${problem.keys.length * height + 2}`);
  const parts: SVGElement[] = [];
  let place = 0;
  problem.keys.forEach((keys, i) => {
    let x = 0;
    keys.forEach((_, t) => {
      const width = attention[place++] * WIDTH;
      parts.push(svg("rect", { x: fixed(x, 2), y: i * height + 2, width: fixed(Math.max(width - 1, 0), 2), height: 19, rx: 3,
        fill: SEQUENCE[i], "fill-opacity": kept?.[i] === t ? 0.95 : fixed(0.18 + 0.1 * (t % 3), 2) }));
      if (width > 15) {
        parts.push(svg("text", { x: fixed(x + width / 2), y: i * height + 16, "text-anchor": "middle",
          style: kept?.[i] === t ? "fill:#fff;font-weight:600" : "" }, String(t + 1)));
      }
      x += width;
    });
  });
  element.replaceChildren(...parts);
}

const LOWEST = -7;

/** One minus the margin ratio and one minus the correlation, over steps, both logarithmic. */
export function drawCurves(element: SVGSVGElement, path: Path, attractor: Attractor | null, now: number): void {
  const [left, right, top, bottom] = [34, WIDTH - 4, 6, 112];
  element.setAttribute("viewBox", `0 0 ${WIDTH} 132`);
  const last = path.steps[path.steps.length - 1];
  const x = (step: number): number => left + ((right - left) * Math.log10(1 + step)) / Math.log10(1 + last);
  const y = (value: number): number =>
    top + ((bottom - top) * Math.min(0, Math.max(LOWEST, Math.log10(Math.max(value, 1e-300))))) / LOWEST;
  const parts: SVGElement[] = [];
  for (let power = 0; power >= LOWEST; power -= 2) {
    parts.push(svg("path", { class: "grid", d: `M${left} ${fixed(y(10 ** power))}H${right}` }),
      svg("text", { class: "soft", x: left - 5, y: y(10 ** power) + 4, "text-anchor": "end" },
        power ? `1e${power}` : "1"));
  }
  for (let step = 1; step <= last; step *= 10) {
    parts.push(svg("text", { class: "soft", x: x(step), y: 127, "text-anchor": "middle" }, step >= 1000 ? `${step / 1000}k` : String(step)));
  }
  parts.push(svg("path", { d: `M${fixed(x(now))} ${top}V${bottom}`, stroke: "var(--soft)", "stroke-dasharray": "2 3" }));
  if (attractor?.solution.status === "solved") {
    const lines = ["", ""];
    for (let r = 0; r < path.steps.length; r++) {
      const { marginRatio, correlation } = measure(path.points.subarray(r * path.size, (r + 1) * path.size), attractor);
      if (!Number.isFinite(marginRatio)) continue;
      [1 - marginRatio, 1 - correlation].forEach((value, k) => {
        lines[k] += `${lines[k] ? "L" : "M"}${fixed(x(path.steps[r]))} ${fixed(y(value))}`;
      });
    }
    parts.push(
      svg("path", { d: lines[1], fill: "none", stroke: "#E69F00", "stroke-width": 1.8, "stroke-dasharray": "5 3" }),
      svg("path", { d: lines[0], fill: "none", stroke: "var(--accent)", "stroke-width": 2 }));
  }
  element.replaceChildren(...parts);
}

/** Numbers and what they mean. */
export function drawNumbers(
  element: HTMLElement, problem: Problem, attractor: Attractor | null, w: ArrayLike<number>,
  attention: ArrayLike<number>, kernel: string | null,
): void {
  const name = problem.parameterization === "p" ? "p" : "W";
  const rows: [string, string, string?][] = [];
  const solution = attractor?.solution;
  if (!attractor || !solution || solution.status !== "solved") {
    const why = solution?.status === "infeasible" ? "no direction separates these tokens" : "not found";
    rows.push([`margin problem`, why, "bad"]);
  } else {
    const { marginRatio, correlation, norm } = measure(w, attractor);
    rows.push([`‖${name}*‖, ${normName(attractor)}`, solution.value.toPrecision(8)]);
    rows.push(["certified to a gap of", solution.gap.toExponential(1), "good"]);
    rows.push(["support tokens", `${solution.support.filter(Boolean).length} of ${solution.support.length}`]);
    rows.push(["locally optimal", attractor.locallyOptimal ? "yes" : "no", attractor.locallyOptimal ? "good" : "bad"]);
    rows.push([`‖${name}‖ now`, norm.toPrecision(5)]);
    rows.push(["margin ratio", near(marginRatio)]);
    rows.push(["correlation", near(correlation)]);
  }
  const tops = keptNow(problem, attention);
  const good = problem.scores.every((row, i) => row[tops[i]] >= Math.max(...row));
  rows.push(["attention keeps", `${tops.map((t) => t + 1).join(", ")} ${good ? "(the best)" : "(not the best)"}`, good ? "good" : "bad"]);
  if (kernel) rows.push(["Python agrees", kernel, "good"]);
  element.replaceChildren(...rows.flatMap(([term, value, kind]) => {
    const dt = document.createElement("dt");
    dt.textContent = term;
    const dd = document.createElement("dd");
    if (kind) dd.className = kind;
    dd.textContent = value;
    return [dt, dd];
  }));
}

export function keptNow(problem: Problem, attention: ArrayLike<number>): number[] {
  let place = 0;
  return problem.keys.map((keys) => {
    const first = place;
    place += keys.length;
    let top = first;
    for (let t = first; t < place; t++) if (attention[t] > attention[top]) top = t;
    return top - first;
  });
}

function normName(attractor: Attractor): string {
  const { norm } = attractor.solution;
  if (norm.kind !== "lp") return norm.kind;
  return norm.p === 2 ? "Euclidean" : norm.p === Infinity ? "largest entry" : `l_${norm.p}`;
}
