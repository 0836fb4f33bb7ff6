// The certificate, and what is kept: a column for each training.

import { isInfeasible, isSolved, type Answers, type Moment, type Run } from "../answers";
import { contradiction, isBest, normWords, number, small } from "../words";
import type { Shape } from "./elements";
import { sample } from "./marks";

/** What a row says of a training, and how good that is. */
type Cell = [words: string, kind?: "good" | "bad"];

const column = ({ norm, known, attractor }: Run, moment: Moment, prompt: boolean): Cell[] => {
  const { solution: { status, value, lower, gap, support }, selection, globallyOptimal, locallyOptimal } = attractor;
  const solved = isSolved(attractor);
  const held = solved && support.length > 0;
  const best = isBest(moment);
  return [
    [normWords(norm, prompt) + (known ? "" : ", none known")],
    [solved ? value.toPrecision(9) : "–"],
    [solved ? lower.toPrecision(9) : "–"],
    solved ? [small(gap), "good"] : [status === "infeasible" ? status : "not settled", "bad"],
    [selection.join(" ") + (globallyOptimal ? " best" : "")],
    [held ? `${support.filter(Boolean).length} of ${support.length}` : "–"],
    !held ? ["–"] : locallyOptimal ? ["yes", "good"] : ["no", "bad"],
    moment.saturated ? [`${moment.kept.join(" ")} ${best ? "" : "not "}best`, best ? "good" : "bad"] : ["several", "bad"],
    [number(moment.scoreGap)],
  ];
};

export function certificate({ prompt, runs, predicted }: Answers, moments: Moment[], kernel: string): Shape {
  const letter = prompt ? "p" : "W";
  const columns = runs.map((run, k) => column(run, moments[k], prompt));
  const names = ["norm", `‖${letter}*‖ at most`, `‖${letter}*‖ at least`, "gap", "for tokens", "support", "locally optimal", "keeps", "gap of scores"];
  const none = predicted.find(isInfeasible);
  return ["div", { class: runs.length > 1 ? "certificate two" : "certificate" }, [
    ["table", {}, [
      ["thead", {}, [["tr", {}, [["td"], ...runs.map((_, k): Shape => ["th", { scope: "col" }, [sample(k)]])]]]],
      ["tbody", {}, names.map((name, r) => ["tr", {}, [["th", { scope: "row", text: name }], ...columns.map((cells): Shape => {
        const [words, kind] = cells[r];
        return ["td", { class: kind, text: words }];
      })]])],
    ]],
    ["p", { class: "note", text: none ? `No ${letter} keeps the predicted tokens, ${none.selection.join(" ")}, as these multipliers show: ${contradiction(none)}.` : "" }],
    ["p", { class: "note kernel", text: kernel }],
  ]];
}
