// The explorer: a state, what follows from it, and the views.

import { addressOf, readAddress } from "./address";
import { Answers, type Moment } from "./answers";
import { agreement } from "./kernel";
import { download, pngOf, sheetSvg } from "./files/pictures";
import { tokenFile } from "./files/npz";
import { pythonLines } from "./files/python";
import { readingsOf } from "./readings";
import { findScene, SCENES } from "./scenes";
import type { Model, State } from "./state";
import { Bars, sample } from "./view/bars";
import { BasinView, EXACT, PREVIEW } from "./view/basins";
import { Certificate } from "./view/certificate";
import { Charts } from "./view/charts";
import { Controls, options } from "./view/controls";
import { Disk } from "./view/disk";
import { Layout } from "./view/layout";
import { Plane } from "./view/plane";
import { Player } from "./view/player";
import css from "./view/style.css";
import { html, write } from "./view/svg";
import { followTheme } from "./view/theme";
import { normWords, OPTIMIZERS, tied, verdict } from "./words";

/** Milliseconds of the last update, for the tests of speed. */
export interface Timings { solve: number; draw: number }

export class Explorer {
  readonly timings: Timings = { solve: 0, draw: 0 };
  updates = 0;
  state: State;
  answers!: Answers;
  private scene: string;
  private base: State;
  private first: State;
  private part = 1; // of the path that is shown
  private darkPage = false;
  private frame = 0;
  private dragging = false;
  private saved = "";
  private shape = ""; // of what is on the page: tokens and what is trained
  private past: string[] = [];
  private future: string[] = [];
  private kernel = "";
  private told: Answers | null = null;
  private verdict = "";
  private moments: Moment[] = [];
  private readonly layout: Layout;
  private readonly controls: Controls;
  private readonly plane: Plane;
  private readonly disk: Disk;
  private readonly bars = new Bars();
  private readonly charts = new Charts();
  private readonly certificate = new Certificate();
  private readonly basins: BasinView;
  private readonly player = new Player((part) => {
    this.part = part;
    this.layout.time.value = String(part);
    this.redraw();
  }, (playing) => write(this.layout.play, playing ? "❚❚ pause" : "▶ play"));
  private readonly stopFollowing: () => void;
  private readonly sizes: ResizeObserver;
  private readonly listen = (): void => this.receive();
  private readonly hear = (): void => { this.kernel = agreement(this.model.get("kernel"), this.state, this.answers); this.redraw(); };
  private readonly visit = (): void => void this.follow();

  /** `address`: whether the address of the page is this explorer's to read and to write. */
  constructor(private readonly host: HTMLElement, private readonly model: Model, private readonly address = false, scene = "") {
    this.state = structuredClone(model.get("state"));
    this.base = structuredClone(this.state);
    this.first = this.base;
    this.scene = scene;
    this.plane = new Plane({
      move: (i, t, to) => this.drag((s) => { s.keys[i][t] = to; }),
      moveQuery: (i, to) => this.drag((s) => { s.queries[i] = to; }),
      score: (i, t, by) => this.drag((s) => { s.scores![i][t] = Math.round((s.scores![i][t] + by) * 100) / 100; }),
      done: () => this.settle(),
    });
    this.disk = new Disk((to) => this.drag((s) => { s.start = to; }), () => this.settle());
    this.controls = new Controls((edit) => { edit(this.state); this.settle(); });
    this.layout = new Layout({
      scene: (name) => this.show(name),
      undo: () => this.travel(this.past, this.future),
      redo: () => this.travel(this.future, this.past),
      reset: () => this.replace(structuredClone(this.base)),
      play: () => (this.player.playing ? this.player.pause() : this.player.play(this.part)),
      time: (part) => { this.player.pause(); this.part = part; this.redraw(); },
      link: () => void this.copyLink(),
      png: () => void this.savePicture("png"),
      svg: () => void this.savePicture("svg"),
      tokens: () => download("tokens.npz", new Blob([tokenFile(this.state)], { type: "application/octet-stream" })),
      python: () => this.showPython(),
    }, { controls: this.controls.element, plane: this.plane.element, disk: this.disk.element, bars: this.bars.element,
      charts: this.charts.element, certificate: this.certificate.element });
    const shadow = host.shadowRoot ?? host.attachShadow({ mode: "open" });
    shadow.replaceChildren(html("style", {}, css), this.layout.root);
    this.layout.link.hidden = !address;
    this.layout.root.addEventListener("keydown", (event) => this.key(event));
    this.basins = new BasinView(this.disk, (words) => write(this.layout.diskCaption, words),
      () => { host.dataset.painted = String(this.updates); });
    this.sizes = new ResizeObserver((entries) => entries.forEach(({ target, contentRect }) => {
      const { width } = (target as SVGSVGElement).viewBox.baseVal; // text keeps its size where pictures shrink
      if (contentRect.width) (target as SVGSVGElement).style.setProperty("--u", String(Math.round((100 * width) / contentRect.width) / 100));
    }));
    for (const picture of shadow.querySelectorAll("svg[viewBox]:not(.sample)")) this.sizes.observe(picture);
    this.stopFollowing = followTheme(host, (dark) => {
      this.darkPage = dark;
      this.paintTheme();
    });
    model.on("change:state", this.listen);
    model.on("change:kernel", this.hear);
    if (address) addEventListener("hashchange", this.visit);
    if (!address || !this.follow()) this.begin();
    this.hear();
  }

  destroy(): void {
    this.model.off?.("change:state", this.listen);
    this.model.off?.("change:kernel", this.hear);
    removeEventListener("hashchange", this.visit);
    this.stopFollowing();
    this.sizes.disconnect();
    cancelAnimationFrame(this.frame);
    this.player.pause();
    this.basins.destroy();
    this.host.shadowRoot!.replaceChildren();
  }

  /** Another scene of the list, or what the page had at first: "". */
  show(name: string, change: Partial<State> = {}): void {
    this.scene = name;
    this.base = this.baseOf(name);
    this.replace({ ...structuredClone(this.base), ...change });
  }

  /** Whether what is seen is saved: nothing is dragged, and no frame is due. */
  get settled(): boolean {
    return !this.dragging && !this.frame && this.saved === this.entry();
  }

  private baseOf(scene: string): State {
    return { ...structuredClone(findScene(scene)?.state ?? this.first), theme: this.state.theme };
  }

  /** For tests. */
  sceneNames(): string[] {
    return SCENES.map(({ name }) => name);
  }

  /** What the page says, as numbers: for tests, and for those who read along. */
  readings(): object {
    return readingsOf(this.answers);
  }

  private begin(): void {
    this.saved = this.entry();
    this.past = [];
    this.future = [];
    this.reset();
    this.layout.say(this.verdict);
  }

  /** Reads the address; false where it says nothing. */
  private follow(): boolean {
    const read = readAddress(location.hash, (name) => (name ? findScene(name)?.state : this.first));
    if (!read) return false;
    this.scene = read.scene;
    this.base = this.baseOf(read.scene);
    this.state = { ...read.state, theme: this.state.theme };
    this.begin();
    this.save();
    return true;
  }

  private shapeNow(): string {
    const { parameterization, keys } = this.state;
    return JSON.stringify([this.scene, parameterization, keys.map((row) => row.length)]);
  }

  /** All that depends on the number of tokens is made again. */
  private reset(): void {
    this.shape = this.shapeNow();
    this.basins.reset();
    this.paintTheme();
    this.compute();
    this.plane.reset(this.answers);
    this.draw();
    this.paintExactly();
  }

  private receive(): void {
    const state = this.model.get("state");
    if (JSON.stringify(state) === JSON.stringify(this.state)) return;
    this.state = structuredClone(state);
    this.base = this.first = structuredClone(state);
    this.scene = "";
    this.begin();
  }

  private drag(edit: (state: State) => void): void {
    edit(this.state);
    this.dragging = true;
    this.kernel = "";
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.compute();
      this.redraw();
      this.basins.preview(this.answers);
      this.updates++;
    });
  }

  /** The end of a change: what was a preview becomes exact, and the state is saved. */
  private settle(): void {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    this.dragging = false;
    if (this.entry() !== this.saved) this.replace(this.state);
  }

  private replace(state: State): void {
    this.past.push(this.saved);
    this.future = [];
    this.restore(state);
  }

  /** A step of the history: a state and the scene that it belongs to. */
  private entry(): string {
    return JSON.stringify([this.scene, this.state]);
  }

  private travel(from: string[], to: string[]): void {
    const text = from.pop();
    if (!text) return;
    to.push(this.saved);
    const [scene, state] = JSON.parse(text) as [string, State];
    this.scene = scene;
    this.base = this.baseOf(scene);
    const focused = this.host.shadowRoot!.activeElement as HTMLButtonElement | null;
    this.restore(state);
    if (focused?.disabled) this.layout.root.focus({ preventScroll: true }); // it would hear no Ctrl+Z
  }

  private restore(state: State): void {
    this.state = state;
    this.kernel = "";
    this.player.pause();
    if (this.shape === this.shapeNow()) {
      this.compute();
      this.draw();
      this.paintExactly();
    } else {
      this.part = 1;
      this.reset();
    }
    this.save();
  }

  private save(): void {
    this.state.id = Math.random().toString(36).slice(2, 10);
    this.saved = this.entry();
    this.model.set("state", structuredClone(this.state));
    this.model.save_changes();
    if (this.address) history.replaceState(history.state, "", addressOf(this.state, this.scene, this.base));
    this.layout.say(this.verdict);
    this.host.dispatchEvent(new CustomEvent("explorer-change", { detail: this.state, bubbles: true, composed: true }));
  }

  private compute(): void {
    const t = performance.now();
    this.answers = new Answers(this.state);
    for (const one of [this.answers.predicted[0], ...this.answers.attractors]) {
      const name = one.selection.join();
      if (!this.basins.colors.has(name)) this.basins.colors.set(name, this.basins.colors.size);
    }
    this.timings.solve = performance.now() - t;
  }

  /** Controls, words and pictures. */
  private draw(): void {
    const { layout, state } = this;
    this.controls.show(state);
    options(layout.scenes, [...(findScene(this.scene) ? [] : [["", this.first.title ?? "this data"] as [string, string]]),
      ...SCENES.map(({ name, state: { title } }): [string, string] => [name, title!])]);
    layout.scenes.value = this.scene;
    write(layout.title, state.title ?? "Drag a token, watch the attractor move");
    write(layout.point, [state.point, state.source && `(${state.source})`].filter(Boolean).join(" "));
    write(layout.tokensCaption, state.projection ? state.projection.words
      : `drag; size: attention, bold: number, then score${state.labels ? " y⟨v, x⟩" : ""}`);
    layout.undo.disabled = !this.past.length;
    layout.redo.disabled = !this.future.length;
    this.showLegend();
    this.showFoot();
    this.redraw();
  }

  private paintExactly(): void {
    delete this.host.dataset.painted;
    this.basins.exact(this.answers);
  }

  private showLegend(): void {
    const { runs, problem } = this.answers;
    const names = runs.map(({ training, norm }, k) => {
      const kind = training.parameterization ?? this.state.parameterization;
      const parts = [OPTIMIZERS.find(([name]) => name === training.optimizer)![1]];
      if (training.p && training.optimizer === "mirror_descent") parts.push(`p = ${training.p}`);
      if (kind !== this.state.parameterization || runs.some((run) => run.training.parameterization)) parts.push(kind === "KQ" ? "of K and Q" : `of ${kind}`);
      if (training.plain) parts.push("plain gradient");
      parts.push(`measured in ${normWords(norm, problem.parameterization === "p")}`);
      return [sample(k), parts.join(", ")] as const;
    });
    const key = names.map(([, words]) => words).join();
    if (this.layout.legend.dataset.key === key) return;
    this.layout.legend.dataset.key = key;
    this.layout.legend.replaceChildren(...(names.length > 1 ? names.map(([line, words]) => html("span", {}, line, words)) : []));
  }

  private redraw(): void {
    const t = performance.now();
    const { answers, layout } = this;
    if (this.told !== answers) {
      this.told = answers;
      this.verdict = verdict(answers, answers.runs.map((run) => answers.moment(run, -1)));
      write(layout.verdict, this.verdict);
    }
    this.moments = answers.runs.map((run) => answers.moment(run, Math.round(this.part * (run.steps.length - 1))));
    this.plane.draw(answers, this.moments);
    this.disk.draw(answers, this.moments, this.basins.colors);
    this.bars.draw(answers, this.moments);
    this.charts.draw(answers, this.moments);
    this.certificate.draw(answers, this.moments, this.kernel);
    write(layout.step, `step ${this.moments[0].step.toLocaleString("en")}`);
    layout.time.setAttribute("aria-valuetext", layout.step.textContent!);
    this.timings.draw = performance.now() - t;
  }

  /** What is exact, what a preview, and what is not seen. */
  private showFoot(): void {
    const { projection } = this.state;
    const cells = this.answers.hasBasins ? `; basins are a preview while you drag, ${PREVIEW.cells} × ${PREVIEW.cells} starts of long steps, and exact after it, ${EXACT.cells} × ${EXACT.cells}` : "";
    const hidden = projection ? ` ${Math.round(100 * projection.hidden)} % of the squared distances between tokens lie outside the plane shown; tokens cannot be dragged.` : "";
    write(this.layout.foot, `Solutions, bounds (rounding included), paths and attention are exact at every moment${cells}.${hidden}`);
  }

  private paintTheme(): void {
    const { theme } = this.state;
    const dark = theme === "dark" || (theme !== "light" && this.darkPage);
    this.layout.root.classList.toggle("dark", dark);
    this.basins.shade(getComputedStyle(this.layout.root).getPropertyValue("--none").trim());
  }

  private key(event: KeyboardEvent): void {
    if (!(event.ctrlKey || event.metaKey) || event.altKey || event.key.toLowerCase() !== "z") return;
    if ((event.composedPath()[0] as Element).matches?.("input[type=number]")) return; // it has its own
    event.preventDefault();
    event.stopPropagation();
    if (event.shiftKey) this.travel(this.future, this.past);
    else this.travel(this.past, this.future);
  }

  private python(): string {
    const { predicted, problem, runs } = this.answers;
    return pythonLines(this.state, predicted[0].selection, [...new Set(runs.map(({ norm }) => norm))], tied(problem.scores));
  }

  private showPython(): void {
    write(this.layout.code, this.python());
    this.layout.panel.hidden = false;
    this.layout.code.focus();
  }

  private async copyLink(): Promise<void> {
    const link = location.href.split("#")[0] + addressOf(this.state, this.scene, this.base);
    await navigator.clipboard?.writeText(link).catch(() => undefined);
    this.layout.say("link copied");
  }

  private async savePicture(kind: "png" | "svg"): Promise<void> {
    const { title, point, verdict, root } = this.layout;
    const text = sheetSvg({
      root, words: [title, point, verdict].map((element) => element.textContent!),
      pictures: [{ svg: this.plane.element }, { svg: this.disk.svg, below: this.disk.canvas }],
      bars: this.bars.element, charts: this.charts.pictures(), ...this.certificate.contents(),
    });
    if (kind === "svg") download("attractor.svg", new Blob([text], { type: "image/svg+xml" }));
    else download("attractor.png", await pngOf(text));
  }
}
