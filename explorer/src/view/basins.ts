// Basins on the disk: a preview while something is dragged, exact after it.

import type { Answers } from "../answers";
import { Painter } from "../mathematics/painter";
import { problemOf } from "../state";
import { UNIT, type Disk } from "./disk";

export const PREVIEW = { cells: 40, steps: 160 };
export const EXACT = { cells: 150, steps: 4000 };
const FASTER = 4; // steps of a preview

export class BasinView {
  /** Colors of selections, in the order in which they were met. */
  colors = new Map<string, number>();
  private none = "#cfcfcf";
  private readonly painter: Painter;

  /** `said` takes what is seen; `done` is called where it is exact. */
  constructor(private readonly disk: Disk, private readonly said: (words: string) => void, private readonly done: () => void) {
    this.painter = new Painter((painted) => {
      disk.paint(painted, this.colors, this.none);
      if (painted.preview) said("the rim is infinity; basins: a preview");
      else if (painted.done) this.finish("the rim is infinity; drag the start; basins: exact");
    });
  }

  destroy(): void {
    this.painter.destroy();
  }

  reset(): void {
    this.colors = new Map();
    this.disk.clear();
  }

  /** The color of starts that do not settle, which depends on the theme. */
  shade(none: string): void {
    if (none) this.none = none;
    this.disk.repaint(this.colors, this.none);
  }

  preview(answers: Answers): void {
    if (!answers.hasBasins || answers.nothingAttracts) return this.disk.clear();
    const [training] = answers.state.trainings;
    const faster = training.optimizer === "gradient_descent" ? 1 : FASTER;
    this.painter.paint({ problem: problemOf(answers.state), unit: UNIT, preview: true, ...PREVIEW,
      training: { ...training, learning_rate: faster * training.learning_rate } });
  }

  exact(answers: Answers): void {
    this.painter.forget();
    const { hasBasins, nothingAttracts, state: { trainings, parameterization: kind, projection } } = answers;
    if (hasBasins && !nothingAttracts) {
      this.said("the rim is infinity; basins: computing");
      this.painter.paint({ problem: problemOf(answers.state), unit: UNIT, preview: false, ...EXACT, training: trainings[0] });
      return;
    }
    this.disk.clear();
    const what = kind === "p" ? "p" : kind === "pv" ? "p and v" : "W z of every query";
    this.finish(hasBasins ? "the rim is infinity; no direction there attracts" : `${what}${projection ? ", as seen" : ""}; the rim is infinity`);
  }

  private finish(words: string): void {
    this.said(words);
    this.done();
  }
}
