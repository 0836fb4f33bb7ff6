// Where everything stands, and the buttons around it.

import { html, write } from "./svg";

const GUIDE = [
  "Tokens: shape and color are the sequence, size is the attention a token has, the bold number counts it from 0, the other is its score. A band lies between the token kept (whole line) and the first place where another may stand (broken line): that is the margin.",
  "Rays: whole, the solution for the tokens kept; broken, other selections where training can end. Arrows: p, or W z of every query z (marks not filled), as trained so far.",
  "The disk: every prompt p, drawn at p / (‖p‖ + 2), so that the rim is infinity. Marks on the rim are where training can end, with the tokens kept there; colors are the starts that end there. A matrix W has more numbers than a disk can show, so it has no basins: train the prompt p to see some.",
];

export interface Tools {
  scene(name: string): void;
  undo(): void;
  redo(): void;
  reset(): void;
  link(): void;
  png(): void;
  svg(): void;
  tokens(): void;
  python(): void;
  play(): void;
  time(part: number): void;
}

export class Layout {
  readonly root = html("div", { class: "explorer", role: "region", tabindex: -1, "aria-label": "attractor explorer" });
  readonly scenes = html("select", { "aria-label": "scene" });
  readonly undo: HTMLButtonElement;
  readonly redo: HTMLButtonElement;
  readonly link: HTMLButtonElement;
  readonly play: HTMLButtonElement;
  readonly time = html("input", { type: "range", min: 0, max: 1, step: "any", value: 1, "aria-label": "step of training" });
  readonly step = html("output");
  readonly title = html("h2");
  readonly point = html("p", { class: "point" });
  readonly verdict = html("p", { class: "verdict" });
  readonly tokensCaption = html("span");
  readonly diskCaption = html("span");
  readonly legend = html("p", { class: "legend" });
  readonly foot = html("p", { class: "foot" });
  readonly code = html("pre", { tabindex: 0, "aria-label": "Python lines" });
  readonly panel = html("section", { class: "panel", hidden: "" , "aria-label": "Python" });
  private readonly said = html("p", { class: "unseen", role: "status", "aria-live": "polite" });
  private readonly menu = html("div", { hidden: "" });
  private saying = 0;

  constructor(tools: Tools, parts: { controls: Element; plane: Element; disk: Element; bars: Element; charts: Element; certificate: Element }) {
    const button = (words: string, act: () => void, more: Record<string, string> = {}): HTMLButtonElement => {
      const made = html("button", { type: "button", ...more }, words);
      made.addEventListener("click", act);
      return made;
    };
    this.undo = button("↶", tools.undo, { "aria-label": "undo", title: "undo (Ctrl+Z)" });
    this.redo = button("↷", tools.redo, { "aria-label": "redo", title: "redo (Ctrl+Shift+Z)" });
    this.play = button("▶ play", tools.play);
    const opener = button("Save ▾", () => this.open(!!this.menu.hidden), { "aria-haspopup": "true", "aria-expanded": "false" });
    const chosen = (act: () => void) => (): void => { this.open(false); act(); };
    this.link = button("Copy link", chosen(tools.link));
    this.menu.append(this.link, button("Picture, PNG", chosen(tools.png)), button("Picture, SVG", chosen(tools.svg)),
      button("Token file, .npz", chosen(tools.tokens)), button("Python lines", chosen(tools.python)));
    const menu = html("div", { class: "menu" }, opener, this.menu);
    this.open = (shown: boolean): void => {
      this.menu.hidden = !shown;
      opener.setAttribute("aria-expanded", String(shown));
    };
    menu.addEventListener("keydown", (event) => { if (event.key === "Escape") { this.open(false); opener.focus(); } });
    menu.addEventListener("focusout", (event) => { if (!menu.contains(event.relatedTarget as Node)) this.open(false); });
    this.scenes.addEventListener("change", () => tools.scene(this.scenes.value));
    this.time.addEventListener("input", () => tools.time(this.time.valueAsNumber));
    const copy = button("Copy", () => { void navigator.clipboard?.writeText(this.code.textContent ?? ""); this.say("copied"); });
    this.panel.append(html("div", {}, html("b", {}, "The same in Python"),
      html("span", {}, copy, " ", button("Close", () => { this.panel.hidden = true; }))), this.code);
    const figure = (bold: string, rest: Element, picture: Element): HTMLElement =>
      html("figure", {}, html("figcaption", {}, html("b", {}, bold), rest), picture);
    const stage = html("div", { class: "stage" });
    stage.append(parts.plane);
    const section = (name: string, ...children: Element[]): HTMLElement =>
      html("section", {}, ...(name ? [html("h3", {}, name)] : []), ...children);
    this.root.append(
      html("header", {},
        this.title, html("div", { class: "tools" }, this.scenes, this.undo, this.redo, button("Reset", tools.reset), menu)),
      this.point, this.verdict,
      parts.controls,
      html("div", { class: "row" },
        figure("Tokens", this.tokensCaption, stage), figure("Where training goes", this.diskCaption, parts.disk)),
      this.legend,
      html("div", { class: "time" }, this.play, this.time, this.step),
      html("div", { class: "lower" }, section("Attention", parts.bars), section("", parts.charts), section("Certificate", parts.certificate)),
      html("details", { class: "guide" }, html("summary", {}, "How to read this"), ...GUIDE.map((words) => html("p", {}, words))),
      this.panel, this.foot, this.said);
  }

  private open: (shown: boolean) => void;

  /** Tells those who do not see it what came out, once it stands. */
  say(words: string): void {
    clearTimeout(this.saying);
    this.saying = window.setTimeout(() => write(this.said, words), 300);
  }
}
