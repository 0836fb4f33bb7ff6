// The plane of tokens: drag one.

import { isInfeasible, isSolved, type Answers, type Moment, type Point } from "../answers";
import type { Attractor } from "../core/analysis";
import type { State } from "../state";
import { contradicting, subscript } from "../words";
import type { Drag } from "./drag";
import type { Attributes, Shape } from "./elements";
import { colorOf, dashes, fixed, HALF, pair, path, rounded, RUN, shape, SIZE, words } from "./marks";

const MARGIN = 1;
const BOX = { x: MARGIN, y: MARGIN, width: SIZE - 2 * MARGIN, height: SIZE - 2 * MARGIN, rx: 10 };

const movesQueries = ({ prompt, state }: Answers): boolean => !prompt && !state.projection;

/** How far the part of the plane reaches that is shown: tokens and queries, and some room to drag them to. */
export function reachOf(answers: Answers): number {
  const { problem, place } = answers;
  const seen = [...problem.keys.flat(), ...(movesQueries(answers) ? problem.queries : [])];
  return 1.3 * Math.max(0.5, ...seen.flatMap(place).map(Math.abs));
}

let turned = 0; // the score of a token, by a wheel

/** `change` edits the state while something is dragged, `done` ends that. */
export function plane(
  answers: Answers, moments: Moment[], reach: number, drag: (drag: Drag) => Attributes, change: (edit: (state: State) => void) => void, done: () => void,
): Shape {
  const { problem: { keys }, prompt, sequences, runs, predicted, attractors, state, direction, arrow, seen, place } = answers;
  const { projection, queries } = state;
  const [{ attractor: shown }] = runs;
  const unit = (HALF - MARGIN) / reach;
  const at = ([x, y]: Point): string => pair([HALF + unit * x, HALF - unit * y]);

  const ray = (w: ArrayLike<number>, i: number, color: string, dash?: string): Shape[] => {
    const [x, y] = arrow(w, i);
    const far = (3 * reach) / Math.hypot(x, y);
    if (!Number.isFinite(far)) return [];
    return [path(`M${HALF} ${HALF}L${at([x * far, y * far])}`, { class: "ray", stroke: color, "stroke-dasharray": dash })];
  };

  const edge = (from: string, to: string, color: string, more: Attributes = {}): Shape =>
    path(`M${from}L${to}`, { class: "edge", stroke: color, ...more });

  /** Where <x, p> lies between that of the token kept and one less: no other token comes in. */
  const slab = ({ solution: { w }, selection, constraints }: Attractor, i: number): Shape[] => {
    const whole = direction(w, i);
    const [x, y] = seen(whole);
    const length = Math.hypot(x, y);
    if (!(length > 0) || length < 0.999 * Math.hypot(...whole)) return []; // it is seen only where p lies in the plane
    const bound = constraints.find(({ sequence }) => sequence === i)?.bound ?? 0; // zero where a sequence need not be separated
    const [nx, ny] = [x / length, y / length];
    const [kx, ky] = place(keys[i][selection[i]]);
    const [[a, b], [c, d]] = [0, bound / length].map((back) => [-4 * reach, 4 * reach].map((side) =>
      at([kx - nx * back - side * ny, ky - ny * back + side * nx])));
    const color = colorOf(i);
    const kept = edge(a, b, color);
    if (!bound) return [kept];
    return [path(`M${a}L${b}L${d}L${c}Z`, { class: "band", fill: color }), kept, edge(c, d, color, { "stroke-dasharray": "4 4" })];
  };

  const solutions = (): Shape[] => {
    const found: Shape[] = [];
    const drawn = new Set([shown.solution.w.join()]);
    for (const one of prompt ? [...attractors, ...predicted, ...runs.map((run) => run.attractor)] : []) {
      const { w } = one.solution;
      if (isSolved(one) && !drawn.has(w.join())) found.push(...ray(w, 0, "var(--other)", "7 5"));
      drawn.add(w.join());
    }
    if (isSolved(shown)) {
      keys.forEach((_, i) => found.push(...slab(shown, i), ...(prompt ? [] : ray(shown.solution.w, i, colorOf(i)))));
      if (prompt) found.push(...ray(shown.solution.w, 0, "var(--accent)"));
    }
    // Lines from the kept token to those with multipliers: it lies among them, or pulls against another's.
    const contradicted = predicted.find(isInfeasible);
    for (const { i, t } of contradicted ? contradicting(contradicted) : []) {
      found.push(edge(at(place(keys[i][contradicted!.selection[i]])), at(place(keys[i][t])), colorOf(i),
        { "stroke-dasharray": "1 5", "stroke-linecap": "round" }));
    }
    return found;
  };

  const pointer = (p: Point, color: string, k: number, name: string): Shape[] => {
    const length = Math.hypot(...p);
    if (!(length > 1e-9)) return [];
    const [dx, dy] = [p[0] / length, -p[1] / length];
    const tip = 0.3 * SIZE * Math.min(1, 0.35 + length) * (k ? 0.9 : 1);
    const to = (along: number, across = 0): Point => [HALF + dx * along - dy * across, HALF + dy * along + dx * across];
    const [x, y] = to(tip + 11);
    return [
      path(`M${HALF} ${HALF}L${pair(to(tip - 8))}`, { class: "shaft", stroke: color, ...dashes(k) }),
      path(`M${[to(tip), to(tip - 12, 5), to(tip - 9), to(tip - 12, -5)].map(pair).join("L")}Z`, { fill: color }),
      ...(k ? [] : [words(name, x, y + 4, { class: "name" })]),
    ];
  };
  const arrows = moments.flatMap(({ point, row }, k) => {
    const { head } = runs[k];
    return [
      ...sequences.flatMap((i) =>
        pointer(arrow(point, i), prompt || k ? RUN[k] : colorOf(i), k, prompt ? "p" : `Wz${subscript(i)}`)),
      ...(head ? pointer(seen(head(row)), "var(--head)", k, "v") : []),
    ];
  });

  /** A mark, and what it takes to drag it. */
  const mark = (what: string, [x, y]: Point, drawn: Shape[], go: ((to: Point) => void) | null, own: () => number[], more: Attributes): Shape => {
    const inside = (v: number): number => Math.min(SIZE - MARGIN - 6, Math.max(MARGIN + 6, v));
    return ["g", {
      tabindex: 0, transform: `translate(${at([x, y])})`, role: go ? "button" : "img",
      "aria-roledescription": go ? `draggable ${what}` : what, ...(go && drag({
        at: own,
        world: (u, v) => [(inside(u) - HALF) / unit, (HALF - inside(v)) / unit],
        step: 0.02 * reach,
        go: (to) => go(rounded(to)),
      })), ...more,
    }, drawn];
  };

  const token = (key: number[], i: number, t: number, weight: number): Shape => {
    const score = moments[0].scores[i][t];
    const kept = shown.selection[i] === t;
    const [x, y] = place(key);
    const r = 4.5 + 9 * Math.sqrt(weight);
    const moves = !projection;
    const made = mark("token", [x, y], [
      ["circle", { class: "halo", r: 19 }],
      path(shape(i, Math.round(4 * r) / 4), { class: "mark", fill: colorOf(i), "fill-opacity": fixed(0.5 + 0.5 * weight) }),
      ["text", { dx: fixed(r + 4, 0), dy: 4 }, [
        ["tspan", { class: "number", text: String(t) }],
        ["tspan", { class: "soft", dx: 4, text: String(Number(Math.abs(score) < 10 ? score.toFixed(2) : score.toPrecision(3))) }],
      ]],
    ], moves ? (to) => change((s) => { s.keys[i][t] = to; }) : null, () => state.keys[i][t], {
      class: `token${kept ? " kept" : ""}${moves ? "" : " still"}`, "data-token": `${i},${t}`,
      "aria-label": `token ${t} of sequence ${i}, score ${fixed(score, 2)}, attention ${fixed(weight, 2)}, at ${fixed(x, 2)}, ${fixed(y, 2)}`,
    });
    if (moves && !state.labels) Object.assign(made[1]!, scoring(i, t, made[1]!.onkeydown as (event: KeyboardEvent) => void));
    return made;
  };

  const score = (i: number, t: number, by: number): void => change((s) => { s.scores![i][t] = Math.round((s.scores![i][t] + by) * 100) / 100; });
  /** Plus, minus and a wheel change the score of a token. */
  const scoring = (i: number, t: number, others: (event: KeyboardEvent) => void): Attributes => ({
    onkeydown: (event: KeyboardEvent): void => {
      others(event);
      const by = { "+": 0.1, "=": 0.1, "-": -0.1 }[event.key];
      if (by === undefined || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      score(i, t, by);
      done();
    },
    onwheel: (event: WheelEvent): void => {
      if (!(event.currentTarget as Element).matches(":focus")) return; // pages scroll over what is not chosen
      event.preventDefault();
      score(i, t, event.deltaY < 0 ? 0.05 : -0.05);
      clearTimeout(turned);
      turned = window.setTimeout(done, 300);
    },
  });

  const query = (z: number[], i: number): Shape => mark("query", [z[0], z[1]], [
    ["circle", { class: "halo", r: 16 }],
    path(shape(i, 5.5), { fill: "var(--panel)", stroke: colorOf(i), "stroke-width": 2 }),
    ["text", { dx: 10, dy: 4, class: "soft", text: `z${subscript(i)}` }],
  ], (to) => change((s) => { s.queries[i] = to; }), () => state.queries[i], {
    class: "token", "data-query": i, "aria-label": `query ${i} at ${z.map((x) => fixed(x, 2)).join(", ")}`,
  });

  let number = 0;
  return ["svg", {
    class: "plane", viewBox: `0 0 ${SIZE} ${SIZE}`, role: "group",
    "aria-label": "tokens in the plane: arrow keys move one, farther with shift, plus and minus change its score",
  }, [
    ["clipPath", { id: "clip" }, [["rect", BOX]]],
    ["rect", { ...BOX, class: "frame" }],
    ["g", { "clip-path": "url(#clip)" }, [
      path(`M0 ${HALF}H${SIZE}M${HALF} 0V${SIZE}`, { class: "grid" }), ["g", {}, solutions()], ["g", {}, arrows],
    ]],
    ["g", {}, movesQueries(answers) ? keys.map((_, i) => query(queries[i], i)) : []],
    ["g", {}, keys.flatMap((row, i) => row.map((key, t) => token(key, i, t, moments[0].attention[number++])))],
  ]];
}
