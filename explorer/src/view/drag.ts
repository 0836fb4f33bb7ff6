// What can be dragged, by mouse, finger and keyboard alike.

import type { Point } from "../answers";
import type { Attributes } from "./elements";
import { SIZE } from "./marks";

export interface Drag {
  /** Where the thing is, in units of the picture. */
  at(): readonly number[];
  /** What a pixel of the picture means. */
  world(x: number, y: number): Point;
  /** How far an arrow key goes. */
  step: number;
  go(to: Point): void;
}

const ARROWS: Record<string, Point> = { "ArrowLeft": [-1, 0], "ArrowRight": [1, 0], "ArrowUp": [0, 1], "ArrowDown": [0, -1] };

/** Gives the listeners of marks that are dragged; `done` is called where one is let go. */
export function dragging(done: () => void): (drag: Drag) => Attributes {
  let pointer = -1;
  let box = new DOMRect();
  let moved = false;
  const end = (): void => {
    pointer = -1;
    if (moved) done();
    moved = false;
  };
  const release = (): void => { if (pointer < 0) end(); }; // of a key
  return ({ at, world, step, go }) => {
    const lift = ({ pointerId }: PointerEvent): void => { if (pointerId === pointer) end(); };
    return {
      onpointerdown: (event: PointerEvent): void => {
        if (event.button !== 0 || pointer >= 0) return;
        event.preventDefault();
        const mark = event.currentTarget as SVGElement;
        mark.focus({ preventScroll: true });
        pointer = event.pointerId;
        box = mark.ownerSVGElement!.getBoundingClientRect();
        mark.setPointerCapture(pointer);
      },
      // A page that may scroll would take the finger away; groups of SVG have no touch-action in Chromium.
      ontouchstart: (event: Event): void => event.preventDefault(),
      onpointermove: (event: PointerEvent): void => {
        if (event.pointerId !== pointer) return;
        moved = true;
        go(world(((event.clientX - box.left) / box.width) * SIZE, ((event.clientY - box.top) / box.height) * SIZE));
      },
      onpointerup: lift,
      onpointercancel: lift,
      onkeydown: (event: KeyboardEvent): void => {
        const by = ARROWS[event.key];
        if (!by || event.ctrlKey || event.metaKey || event.altKey) return;
        event.preventDefault();
        event.stopPropagation();
        const [x, y] = at();
        const far = step * (event.shiftKey ? 5 : 1);
        moved = true;
        go([x + far * by[0], y + far * by[1]]);
      },
      onkeyup: release,
      onblur: release,
    };
  };
}
