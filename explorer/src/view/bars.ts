// Attention weights: one bar a sequence, a piece a token; a second training below it.

import type { Answers, Moment } from "../answers";
import type { Shape } from "./elements";
import { colorOf, fixed, path, shape, words } from "./marks";

const WIDTH = 240;
const LEFT = 20;
const HIGH = 20;

export function bars({ problem: { keys }, runs }: Answers, moments: Moment[]): Shape {
  const [one, gap] = [moments.length > 1 ? 2 * HIGH + 4 : HIGH, keys.length > 6 ? 4 : 8];
  const found: Shape[] = [];
  const said: string[] = [];
  moments.forEach(({ attention, kept }, k) => {
    let place = 0;
    keys.forEach((row, i) => {
      const y = i * (one + gap) + k * (HIGH + 4) + 1;
      const fill = colorOf(i);
      if (!k) found.push(path(shape(i, 5.5), { fill, transform: `translate(7 ${y + HIGH / 2})` }));
      let x = LEFT;
      row.forEach((_, t) => {
        const weight = attention[place++];
        const width = weight * (WIDTH - LEFT - 1);
        const wanted = runs[k].attractor.selection[i] === t;
        found.push(["rect", { x: fixed(x, 2), y, width: fixed(Math.max(width - 1.5, 0), 2), height: HIGH, rx: 2.5, fill, "fill-opacity": wanted ? 0.42 : 0.2 }]);
        if (width > 14) {
          const percent = width > 66 ? ` · ${weight > 0.9995 && weight < 1 ? "99.9+" : fixed(100 * weight, weight > 0.1 ? 0 : 1)} %` : "";
          found.push(words(`${t}${percent}`, x + width / 2, y + HIGH / 2 + 4, { class: wanted ? "kept" : "soft" }));
        }
        x += width;
      });
      if (k) found.push(["rect", { class: "second", x: LEFT - 0.5, y: y - 1, width: WIDTH - LEFT, height: HIGH + 2, rx: 3 }]);
      said.push(`sequence ${i}: token ${kept[i]} most`);
    });
  });
  return ["svg", {
    role: "img", class: "bars", viewBox: `0 0 ${WIDTH} ${keys.length * (one + gap)}`, "aria-label": `attention, ${said.join("; ")}`,
  }, found];
}
