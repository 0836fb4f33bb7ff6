// The explorer: a state, what follows from it, and the page.

import { addressOf, readAddress } from "./address";
import { answersTo, type Answers } from "./answers";
import { checkedState, reason } from "./check";
import { tokenFile } from "./files/npz";
import { download, pngOf, sheetSvg } from "./files/pictures";
import { pythonLines } from "./files/python";
import { agreement } from "./kernel";
import { painterTo } from "./mathematics/painter";
import type { Painted } from "./mathematics/painting";
import { readingsOf } from "./readings";
import { findScene, SCENES } from "./scenes";
import { problemOf, type Model, type State } from "./state";
import { bars } from "./view/bars";
import { certificate } from "./view/certificate";
import { charts } from "./view/charts";
import { controls } from "./view/controls";
import { BasinColors, disk, paintBasins, UNIT } from "./view/disk";
import { dragging } from "./view/drag";
import { button, render, select, type Shape } from "./view/elements";
import { figure, GUIDE, legend, menu, panel, section, type Action } from "./view/page";
import { plane, reachOf } from "./view/plane";
import css from "./view/style.css";
import { followTheme } from "./view/theme";
import { count, verdict, type Choice } from "./words";

const STYLE: Shape = ["style", { text: css }];
const PREVIEW = { cells: 40, steps: 160 };
const EXACT = { cells: 150, steps: 4000 };
const FASTER = 4; // steps of a preview
const PLAYED = 3000; // milliseconds of a whole path

/** What pages and tests ask of an explorer. */
export interface Explorer {
  readonly state: State;
  /** Number of updates while something was dragged. */
  readonly updates: number;
  /** Whether what is seen is saved: nothing is dragged, and no frame is due. */
  readonly settled: boolean;
  /** Another scene of the list, or what the page had at first: "". */
  show(name: string, change?: Partial<State>): void;
  sceneNames(): string[];
  /** What the page says, as numbers. */
  readings(): object;
  destroy(): void;
}

/** `address`: whether the address of the page is this explorer's to read and to write. */
export function explorerIn(host: HTMLElement, model: Model, address = false, scene = ""): Explorer {
  let state = structuredClone(checkedState(model.get("state")));
  let first = structuredClone(state);
  let base = first;
  let answers = answersTo(state);
  let refused = ""; // why what was asked for is not shown
  let updates = 0;
  let part = 1; // of the path that is shown
  let reach = 1; // of the plane that is shown
  let frame = 0;
  let playing = 0;
  let dragged = false;
  let dark = false;
  let menuOpen = false;
  let saved = "";
  let shape = ""; // of what is on the page: tokens and what is trained
  let past: string[] = [];
  let future: string[] = [];
  let said = "";
  let saying = 0;
  let says = "";
  let python = "";
  let diskWords = "";
  let none = ""; // the color of starts that do not settle
  let colors = new BasinColors();
  let painted: Painted | null = null;
  let header: Shape = ["header"];
  let training: Shape = ["details"];
  const wide = !matchMedia("(max-width: 640px)").matches;

  const shadow = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  render(shadow, [STYLE, ["div"]]);
  const root = shadow.lastElementChild as HTMLElement;

  const drag = dragging(settle);
  const undo = (): void => travel(past, future);
  const redo = (): void => travel(future, past);
  const saves: Action[] = [
    ["Picture, PNG", () => void pngOf(sheetSvg(root)).then((blob) => download("attractor.png", blob, "image/png"))],
    ["Picture, SVG", () => download("attractor.svg", sheetSvg(root), "image/svg+xml")],
    ["Token file, .npz", () => download("tokens.npz", tokenFile(state), "application/octet-stream")],
    ["Python lines", () => {
      python = pythonLines(answers);
      redraw();
      root.querySelector("pre")!.focus();
    }],
  ];
  if (address) saves.unshift(["Copy link", () => copy(location.href.split("#")[0] + addressOf(state, scene, base), "link copied")]);

  const painter = painterTo((picture) => {
    painted = picture;
    repaint();
    if (picture.preview) caption("the rim is infinity; basins: a preview");
    else if (picture.done) finish("the rim is infinity; drag the start; basins: exact");
  });
  const sizes = new ResizeObserver((entries) => entries.forEach(({ target, contentRect }) => {
    const { width } = (target as SVGSVGElement).viewBox.baseVal; // text keeps its size where pictures shrink
    if (contentRect.width) (target as SVGSVGElement).style.setProperty("--u", String(Math.round((100 * width) / contentRect.width) / 100));
  }));
  const stopFollowing = followTheme(host, (now) => {
    dark = now;
    paintTheme();
  });
  const hear = (): void => redraw();
  const visit = (): void => void follow();
  model.on("change:state", receive);
  model.on("change:kernel", hear);
  if (address) addEventListener("hashchange", visit);
  if (!address || !follow()) begin(answers);
  for (const picture of root.querySelectorAll("svg[viewBox]:not(.sample)")) sizes.observe(picture);

  return {
    get state() { return state; },
    get updates() { return updates; },
    get settled() { return !dragged && !frame && saved === entry(); },
    show,
    sceneNames: () => SCENES.map(({ name }) => name),
    readings: () => readingsOf(answers),
    destroy() {
      model.off?.("change:state", receive);
      model.off?.("change:kernel", hear);
      removeEventListener("hashchange", visit);
      stopFollowing();
      sizes.disconnect();
      clearTimeout(saying);
      cancelAnimationFrame(frame);
      cancelAnimationFrame(playing);
      painter.destroy();
      shadow.replaceChildren();
    },
  };

  function show(name: string, edit: Partial<State> = {}): void {
    const to = checkedState({ ...structuredClone(baseOf(name)), ...edit });
    scene = name;
    base = baseOf(name);
    replace(to);
  }

  function baseOf(name: string): State {
    return { ...structuredClone(findScene(name)?.state ?? first), theme: state.theme };
  }

  function begin(found: Answers): void {
    state = found.state;
    saved = entry();
    [past, future] = [[], []];
    reset(found);
    say(says);
  }

  /** Does what comes from outside, or says why it does not: then nothing has changed. */
  function attempt(what: string, act: () => void): void {
    refused = "";
    try {
      act();
    } catch (error) {
      refused = `${what} cannot be shown: ${reason(error)}.`;
      redraw();
    }
  }

  /** Reads the address; false where it says nothing. */
  function follow(): boolean {
    let followed = false;
    attempt("This link", () => {
      const read = readAddress(location.hash, (name) => (name ? findScene(name)?.state : first));
      if (!read) return;
      const found = answersTo({ ...read.state, theme: state.theme });
      scene = read.scene;
      base = baseOf(scene);
      begin(found);
      keep();
      followed = true;
    });
    return followed;
  }

  function shapeNow(): string {
    return JSON.stringify([scene, state.parameterization, state.keys.map((row) => row.length)]);
  }

  /** All that depends on the number of tokens is made again. */
  function reset(found?: Answers): void {
    shape = shapeNow();
    colors = new BasinColors();
    compute(found);
    reach = reachOf(answers);
    clear();
    paintTheme();
    paintExactly();
  }

  function receive(): void {
    attempt("What the notebook sent", () => {
      const now = checkedState(model.get("state"));
      if (JSON.stringify(now) === JSON.stringify(state)) return;
      const found = answersTo(structuredClone(now));
      base = first = structuredClone(now);
      scene = "";
      begin(found);
    });
  }

  function change(edit: (state: State) => void): void {
    edit(state);
    dragged = true;
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      compute();
      redraw();
      const { trainings: [training] } = state;
      const faster = training.optimizer === "gradient_descent" ? 1 : FASTER;
      paint({ ...PREVIEW, preview: true, training: { ...training, learning_rate: faster * training.learning_rate } });
      updates++;
    });
  }

  /** The end of a change: what was a preview becomes exact, and the state is saved. */
  function settle(): void {
    cancelAnimationFrame(frame);
    frame = 0;
    dragged = false;
    if (entry() !== saved) replace(state);
  }

  function replace(to: State): void {
    past.push(saved);
    future = [];
    restore(to);
  }

  /** A step of the history: a state and the scene that it belongs to. */
  function entry(): string {
    return JSON.stringify([scene, state]);
  }

  function travel(from: string[], to: string[]): void {
    const text = from.pop();
    if (!text) return;
    to.push(saved);
    let then: State;
    [scene, then] = JSON.parse(text) as [string, State];
    base = baseOf(scene);
    const focused = shadow.activeElement as HTMLButtonElement | null;
    restore(then);
    if (focused?.disabled) root.focus({ preventScroll: true }); // it would hear no Ctrl+Z
  }

  function restore(to: State): void {
    state = to;
    pause();
    if (shape === shapeNow()) {
      compute();
      paintExactly();
    } else {
      part = 1;
      reset();
    }
    keep();
  }

  /** Saves the state. */
  function keep(): void {
    state.id = Math.random().toString(36).slice(2, 10);
    saved = entry();
    refused = "";
    model.set("state", structuredClone(state));
    model.save_changes();
    if (address) history.replaceState(history.state, "", addressOf(state, scene, base));
    redraw();
    say(says);
    host.dispatchEvent(new CustomEvent("explorer-change", { detail: state, bubbles: true, composed: true }));
  }

  function compute(found = answersTo(state)): void {
    answers = found;
    says = verdict(answers);
    for (const one of [answers.predicted[0], ...answers.attractors]) colors.of(one.selection);
  }

  /** Asks for basins; false where there are none. */
  function paint(asked: Omit<Parameters<typeof painter.paint>[0], "problem" | "unit">): boolean {
    const any = answers.hasBasins && !answers.nothingAttracts;
    if (any) painter.paint({ ...asked, problem: problemOf(state), unit: UNIT });
    else clear();
    return any;
  }

  function paintExactly(): void {
    delete host.dataset.painted;
    painter.forget();
    const { hasBasins, state: { parameterization: kind, projection, trainings: [training] } } = answers;
    if (paint({ ...EXACT, preview: false, training })) return caption("the rim is infinity; basins: computing");
    const what = kind === "p" ? "p" : kind === "pv" ? "p and v" : "W z of every query";
    finish(hasBasins ? "the rim is infinity; no direction there attracts" : `${what}${projection ? ", as seen" : ""}; the rim is infinity`);
  }

  function caption(words: string): void {
    if (diskWords === words) return;
    diskWords = words;
    redraw();
  }

  function finish(words: string): void {
    caption(words);
    host.dataset.painted = String(updates);
  }

  function clear(): void {
    painted = null;
    const canvas = root.querySelector("canvas");
    if (canvas) canvas.width = 1;
  }

  function repaint(): void {
    if (painted) paintBasins(root.querySelector("canvas")!, painted, colors, none);
  }

  function paintTheme(): void {
    redraw();
    none = getComputedStyle(root).getPropertyValue("--none").trim();
    repaint();
  }

  function redraw(): void {
    if (!saved) return; // nothing is shown yet
    const { point, source, projection, labels } = state;
    const moments = answers.runs.map((run) => answers.moment(run, Math.round(part * (run.steps.length - 1))));
    const scenes = SCENES.map(({ name, state: { title } }): Choice => [name, title!]);
    if (!findScene(scene)) scenes.unshift(["", first.title ?? "this data"]);
    const step = `step ${count(moments[0].step)}`;
    const cells = answers.hasBasins ? `; basins are a preview while you drag, ${PREVIEW.cells} × ${PREVIEW.cells} starts of long steps, and exact after it, ${EXACT.cells} × ${EXACT.cells}` : "";
    const hidden = projection ? ` ${Math.round(100 * projection.hidden)} % of the squared distances between tokens lie outside the plane shown; tokens cannot be dragged.` : "";
    if (!dragged) { // what is not drawn stays as it is meanwhile
      header = ["header", {}, [
        ["h2", { text: state.title ?? "Drag a token, watch the attractor move" }],
        ["div", { class: "tools" }, [
          select("scene", scene, scenes, show),
          button("↶", undo, { "aria-label": "undo", title: "undo (Ctrl+Z)", disabled: !past.length }),
          button("↷", redo, { "aria-label": "redo", title: "redo (Ctrl+Shift+Z)", disabled: !future.length }),
          button("Reset", () => replace(structuredClone(base))),
          menu(menuOpen, (open) => {
            menuOpen = open;
            redraw();
          }, saves),
        ]],
      ]];
      training = controls(state, wide, (edit) => attempt("This", () => {
        const next = structuredClone(state);
        edit(next);
        state = checkedState(next);
        settle();
      }));
    }
    const light = state.theme === "light" || (state.theme !== "dark" && !dark);
    render(shadow, [STYLE, ["div", {
      class: light ? "explorer" : "explorer dark", role: "region", tabindex: -1, "aria-label": "attractor explorer", onkeydown: keyPressed,
    }, [
      header,
      ["p", { class: "refused", role: "alert", hidden: !refused, text: refused }],
      ["p", { class: "point", text: [point, source && `(${source})`].filter(Boolean).join(" ") }],
      ["p", { class: "verdict", text: says }],
      training,
      ["div", { class: "row" }, [
        figure("Tokens", projection ? projection.words : `drag; size: attention, bold: number, then score${labels ? " y⟨v, x⟩" : ""}`,
          plane(answers, moments, reach, drag, change, settle)),
        figure("Where training goes", diskWords, ["canvas"], disk(answers, moments, colors, drag, change)),
      ]],
      legend(answers),
      ["div", { class: "time" }, [
        button(playing ? "❚❚ pause" : "▶ play", play),
        ["input", { type: "range", min: 0, max: 1, step: "any", value: String(part), "aria-label": "step of training", "aria-valuetext": step,
          oninput: (event: Event) => {
            pause();
            part = (event.target as HTMLInputElement).valueAsNumber;
            redraw();
          } }],
        ["output", { text: step }],
      ]],
      ["div", { class: "lower" }, [
        section("Attention", bars(answers, moments)),
        ["section", {}, [charts(answers, moments)]],
        section("Certificate", certificate(answers, moments, dragged ? "" : agreement(model.get("kernel"), answers))),
      ]],
      GUIDE,
      panel(python, () => copy(python, "copied"), () => {
        python = "";
        redraw();
      }),
      ["p", { class: "foot", text: `Solutions, bounds (rounding included), paths and attention are exact at every moment${cells}.${hidden}` }],
      ["p", { class: "unseen", role: "status", "aria-live": "polite", text: said }],
    ]]]);
  }

  /** Plays the path over time. */
  function play(): void {
    if (playing) return pause();
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    let begun = performance.now() - (part % 1) * PLAYED;
    const go = (now: number): void => {
      begun = Math.min(begun, now);
      const played = Math.min(1, (now - begun) / PLAYED);
      part = still ? Math.floor(played * 8) / 8 : played; // a few pictures, where motion is not wanted
      playing = played < 1 ? requestAnimationFrame(go) : 0;
      redraw();
    };
    playing = requestAnimationFrame(go);
    redraw();
  }

  function pause(): void {
    cancelAnimationFrame(playing);
    playing = 0;
  }

  function keyPressed(event: KeyboardEvent): void {
    if (!(event.ctrlKey || event.metaKey) || event.altKey || event.key.toLowerCase() !== "z") return;
    if ((event.composedPath()[0] as Element).matches?.("input[type=number]")) return; // it has its own
    event.preventDefault();
    event.stopPropagation();
    (event.shiftKey ? redo : undo)();
  }

  function copy(text: string, words: string): void {
    navigator.clipboard?.writeText(text).catch(() => undefined);
    say(words);
  }

  /** Tells those who do not see it what came out, once it stands. */
  function say(words: string): void {
    clearTimeout(saying);
    saying = window.setTimeout(() => {
      said = words;
      redraw();
    }, 300);
  }
}
