// The certificate, and what is kept: a column for each training.

import { saturated, type Answers, type Moment } from "../answers";
import { best, contradiction, normWords, number, small } from "../words";
import { sample } from "./bars";
import { html, set, write } from "./svg";

type Kind = "" | "good" | "bad";
interface Row { name: string | ((letter: string) => string); of(answers: Answers, moment: Moment, k: number): [string, Kind?] }

const solved = (answers: Answers, k: number, words: () => [string, Kind?]): [string, Kind?] =>
  answers.runs[k].attractor.solution.status === "solved" ? words() : ["–"];

const ROWS: Row[] = [
  { name: "norm", of: (a, _, k) => [normWords(a.runs[k].norm, a.problem.parameterization === "p") + (a.known(k) ? "" : ", none known")] },
  { name: (x) => `‖${x}*‖ at most`, of: (a, _, k) => solved(a, k, () => [a.runs[k].attractor.solution.value.toPrecision(9)]) },
  { name: (x) => `‖${x}*‖ at least`, of: (a, _, k) => solved(a, k, () => [a.runs[k].attractor.solution.lower.toPrecision(9)]) },
  { name: "gap", of: (a, _, k) => {
    const { status, gap } = a.runs[k].attractor.solution;
    if (status === "solved") return [small(gap), "good"];
    return [status === "infeasible" ? "infeasible" : "not settled", "bad"];
  } },
  { name: "for tokens", of: (a, _, k) => [`${a.runs[k].attractor.selection.join(" ")}${a.runs[k].attractor.globallyOptimal ? " best" : ""}`] },
  { name: "support", of: (a, _, k) => solved(a, k, () => {
    const { support } = a.runs[k].attractor.solution;
    return [support.length ? `${support.filter(Boolean).length} of ${support.length}` : "–"];
  }) },
  { name: "locally optimal", of: (a, _, k) => solved(a, k, () => (!a.runs[k].attractor.solution.support.length ? ["–"] : a.runs[k].attractor.locallyOptimal ? ["yes", "good"] : ["no", "bad"])) },
  { name: "keeps", of: (a, moment) => {
    if (!saturated(a.problem, moment.attention)) return ["several", "bad"];
    const good = best(moment.scores, moment.kept);
    return [`${moment.kept.join(" ")} ${good ? "best" : "not best"}`, good ? "good" : "bad"];
  } },
  { name: "gap of scores", of: (_, moment) => [number(moment.scoreGap)] },
];

export class Certificate {
  readonly element = html("div", { class: "certificate" });
  private readonly head = html("tr");
  private readonly cells = ROWS.map(() => [html("td"), html("td")]);
  private readonly names = ROWS.map(() => html("th", { scope: "row" }));
  private readonly proof = html("p", { class: "note" });
  private readonly kernel = html("p", { class: "note kernel" });

  constructor() {
    const body = ROWS.map((_, r) => html("tr", {}, this.names[r], ...this.cells[r]));
    this.head.append(html("td"), html("th", { scope: "col" }, sample(0)), html("th", { scope: "col" }, sample(1)));
    this.element.append(html("table", {}, html("thead", {}, this.head), html("tbody", {}, ...body)), this.proof, this.kernel);
  }

  contents(): { table: HTMLTableElement; notes: string[] } {
    return { table: this.element.querySelector("table")!, notes: [this.proof.textContent!, this.kernel.textContent!].filter(Boolean) };
  }

  draw(answers: Answers, moments: Moment[], kernel: string): void {
    this.element.classList.toggle("two", moments.length > 1);
    const letter = answers.problem.parameterization === "p" ? "p" : "W";
    ROWS.forEach(({ name }, r) => write(this.names[r], typeof name === "string" ? name : name(letter)));
    ROWS.forEach((row, r) => moments.forEach((moment, k) => {
      const [words, kind = ""] = row.of(answers, moment, k);
      write(this.cells[r][k], words);
      set(this.cells[r][k], { class: kind });
    }));
    const none = answers.predicted.find(({ solution }) => solution.status === "infeasible");
    write(this.proof, none ? `No ${letter} keeps the predicted tokens, ${none.selection.join(" ")}, as these multipliers show: ${contradiction(none)}.` : "");
    write(this.kernel, kernel);
  }
}
