// What Python found for the same state, as a sentence.

import type { Answers } from "./answers";
import type { KernelReport, State } from "./state";

/** How far the kernel's answers are from those of the page; empty where there are none to this state. */
export function agreement(report: KernelReport | null | undefined, state: State, { predicted: [{ solution }], runs }: Answers): string {
  if (!report || (report.state ?? "") !== (state.id ?? "")) return "";
  if (report.message) return report.message;
  const parts: string[] = [];
  let differs = false;
  if (report.status && report.status.toLowerCase() !== solution.status) {
    parts.push(`Python finds the problem ${report.status.toLowerCase()}`);
    differs = true;
  } else if (report.value !== undefined && report.value !== null && solution.status === "solved") {
    const off = Math.abs(report.value / solution.value - 1);
    parts.push(`norm ${said(off)}`);
    differs = off > NEAR;
  }
  report.ends?.forEach((end, k) => {
    const run = runs[k];
    if (!run || end.length !== run.end.length) return;
    const off = Math.hypot(...end.map((x, j) => x - run.end[j])) / Math.hypot(...end);
    parts.push(`${report.ends!.length > 1 ? ["first path", "second path"][k] : "path"} ${said(off)}`);
  });
  if (!parts.length) return "";
  const verb = differs ? "differs" : "agrees";
  const time = report.milliseconds === undefined ? "" : ` (${report.milliseconds.toFixed(0)} ms)`;
  return `Python ${verb}: ${parts.join(", ")}${time}`.replace("differs: Python finds", "finds");
}

const NEAR = 1e-6;

const said = (x: number): string => (x < 1e-15 ? "to the last bit" : `to ${x.toExponential(0)}`);
