// What Python found for the same state, as a sentence.

import { isSolved, type Answers } from "./answers";
import { checkedReport, reason } from "./check";
import type { KernelReport } from "./state";

const NEAR = 1e-6;

const said = (x: number): string => (x < 1e-15 ? "to the last bit" : `to ${x.toExponential(0)}`);

/** How far the kernel's answers are from those of the page; empty where there are none to this state. */
export function agreement(given: unknown, { state, predicted: [predicted], runs }: Answers): string {
  if (!given || !Object.keys(given).length) return ""; // none yet
  let report: KernelReport;
  try {
    report = checkedReport(given);
  } catch (error) {
    return `What Python answered cannot be read: ${reason(error)}.`;
  }
  const { message, status = "", value, ends = [], milliseconds } = report;
  if (report.state !== (state.id ?? "")) return "";
  if (message) return message;
  const parts: string[] = [];
  let verb = "agrees:";
  if (status && status !== predicted.solution.status) {
    parts.push(`the problem ${status}`);
    verb = "finds";
  } else if (typeof value === "number" && isSolved(predicted)) {
    const off = Math.abs(value / predicted.solution.value - 1);
    parts.push(`norm ${said(off)}`);
    if (off > NEAR) verb = "differs:";
  }
  ends.forEach((end, k) => {
    const own = runs[k]?.parameters.subarray(-end.length);
    if (own?.length !== end.length) return;
    const off = Math.hypot(...end.map((x, j) => x - own[j])) / Math.hypot(...end);
    parts.push(`${ends.length > 1 ? ["first ", "second "][k] : ""}path ${said(off)}`);
  });
  if (!parts.length) return "";
  return `Python ${verb} ${parts.join(", ")}${milliseconds === undefined ? "" : ` (${milliseconds.toFixed(0)} ms)`}`;
}
