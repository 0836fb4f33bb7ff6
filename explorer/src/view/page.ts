// What stands around the pictures.

import type { Answers } from "../answers";
import { normWords, optimizerWords } from "../words";
import { button, type Shape } from "./elements";
import { sample } from "./marks";

export type Action = [words: string, act: () => void];

const paragraph = (words: string): Shape => ["p", { text: words }];

export const GUIDE: Shape = ["details", { class: "guide" }, [
  ["summary", { text: "How to read this" }],
  paragraph("Tokens: shape and color are the sequence, size is the attention a token has, the bold number counts it from 0, the other is its score. A band lies between the token kept (whole line) and the first place where another may stand (broken line): that is the margin."),
  paragraph("Rays: whole, the solution for the tokens kept; broken, other selections where training can end. Arrows: p, or W z of every query z (marks not filled), as trained so far."),
  paragraph("The disk: every prompt p, drawn at p / (‖p‖ + 2), so that the rim is infinity. Marks on the rim are where training can end, with the tokens kept there; colors are the starts that end there. A matrix W has more numbers than a disk can show, so it has no basins: train the prompt p to see some."),
]];

/** A picture below words in bold and others. */
export const figure = (bold: string, rest: string, ...inside: Shape[]): Shape =>
  ["figure", {}, [["figcaption", {}, [["b", { text: bold }], ["span", { text: rest }]]], ["div", { class: "stage" }, inside]]];

export const section = (name: string, inside: Shape): Shape => ["section", {}, [["h3", { text: name }], inside]];

/** What can be saved, chosen from a list that opens and closes. */
export function menu(open: boolean, set: (open: boolean) => void, items: Action[]): Shape {
  return ["div", {
    class: "menu",
    onkeydown: (event: KeyboardEvent) => {
      if (event.key !== "Escape") return;
      set(false);
      ((event.currentTarget as Element).firstElementChild as HTMLElement).focus();
    },
    onfocusout: (event: FocusEvent) => {
      if (!(event.currentTarget as Element).contains(event.relatedTarget as Element)) set(false);
    },
  }, [
    button("Save ▾", () => set(!open), { "aria-haspopup": "true", "aria-expanded": String(open) }),
    ["div", { hidden: !open }, items.map(([words, act]) => button(words, () => {
      set(false);
      act();
    }))],
  ]];
}

/** Lines of Python, where there are some. */
export const panel = (lines: string, copy: () => void, close: () => void): Shape =>
  ["section", { class: "panel", hidden: !lines, "aria-label": "Python" }, [
    ["div", {}, [["b", { text: "The same in Python" }], ["span", {}, [button("Copy", copy), button("Close", close)]]]],
    ["pre", { tabindex: 0, "aria-label": "Python lines", text: lines }],
  ]];

/** Names of trainings, where there are two. */
export const legend = ({ runs, state: { parameterization }, prompt }: Answers): Shape => ["p", { class: "legend" },
  runs.length < 2 ? [] : runs.map(({ training, norm }, k) => {
    const kind = training.parameterization ?? parameterization;
    const words = [
      optimizerWords(training),
      training.p && training.optimizer === "mirror_descent" && `p = ${training.p}`,
      runs.some((run) => run.training.parameterization) && `of ${kind === "KQ" ? "K and Q" : kind}`,
      training.plain && "plain gradient",
      `measured in ${normWords(norm, prompt)}`,
    ];
    return ["span", {}, [sample(k), ["span", { text: words.filter(Boolean).join(", ") }]]];
  })];
