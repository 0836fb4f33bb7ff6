// Attention weights: one bar a sequence, a piece a token; a second training below it.

import type { Answers, Moment } from "../answers";
import { RUN, SEQUENCE } from "./style";
import { fixed, Pool, set, shape, svg } from "./svg";

const WIDTH = 240;
const LEFT = 20;

export class Bars {
  readonly element = svg("svg", { role: "img", class: "bars", viewBox: `0 0 ${WIDTH} 100` });
  private readonly group = svg("g");
  private readonly pieces = new Pool(this.group, "rect", { rx: 2.5 });
  private readonly names = new Pool(this.group, "text", { "text-anchor": "middle" });
  private readonly marks = new Pool(this.group, "path");
  private readonly edges = new Pool(this.group, "rect", { rx: 3, fill: "none", "stroke-width": 1.4, stroke: RUN[1], "stroke-dasharray": "5 3" });

  constructor() {
    this.element.append(this.group);
  }

  draw({ problem, runs }: Answers, moments: Moment[]): void {
    const high = 20;
    const [one, gap] = [moments.length > 1 ? 2 * high + 4 : high, problem.keys.length > 6 ? 4 : 8];
    const height = problem.keys.length * (one + gap);
    set(this.element, { viewBox: `0 0 ${WIDTH} ${height}` });
    const words: string[] = [];
    moments.forEach((moment, k) => {
      let place = 0;
      problem.keys.forEach((keys, i) => {
        const y = i * (one + gap) + k * (high + 4) + 1;
        const color = SEQUENCE[i % SEQUENCE.length];
        if (!k) this.marks.take({ d: shape(i, 5.5), fill: color, transform: `translate(7 ${y + high / 2})` });
        let x = LEFT;
        keys.forEach((_, t) => {
          const weight = moment.attention[place++];
          const width = weight * (WIDTH - LEFT - 1);
          const kept = runs[k].attractor.selection[i] === t;
          this.pieces.take({ x: fixed(x, 2), y, width: fixed(Math.max(width - 1.5, 0), 2), height: high, fill: color,
            "fill-opacity": kept ? 0.42 : 0.2 });
          if (width > 14) {
            const percent = width > 66 ? ` · ${weight > 0.9995 && weight < 1 ? "99.9+" : fixed(100 * weight, weight > 0.1 ? 0 : 1)} %` : "";
            this.names.text(`${t}${percent}`, { x: fixed(x + width / 2), y: y + high / 2 + 4, class: kept ? "kept" : "soft" });
          }
          x += width;
        });
        if (k) this.edges.take({ x: LEFT - 0.5, y: y - 1, width: WIDTH - LEFT, height: high + 2 });
        words.push(`sequence ${i}: token ${moment.kept[i]} most`);
      });
    });
    for (const pool of [this.pieces, this.names, this.marks, this.edges]) pool.done();
    set(this.element, { "aria-label": `attention, ${words.join("; ")}` });
  }
}

/** The order and the look of trainings, as a line before their names. */
export function sample(k: number): SVGSVGElement {
  return svg("svg", { class: "sample", viewBox: "0 0 30 10", "aria-hidden": "true" },
    svg("path", { d: "M1 5H29", stroke: RUN[k], "stroke-width": 2.6, "stroke-dasharray": k ? "7 5" : undefined }));
}
