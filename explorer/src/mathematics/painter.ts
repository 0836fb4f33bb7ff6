// Asks for basins: of a worker where the page allows one, else of the page itself between frames.

import { coreText, serve } from "./index";
import type { Job, Painted } from "./painting";

export interface Painter {
  paint(asked: Omit<Job, "id">): void;
  /** Pictures that are still at work are for nothing. */
  forget(): void;
  destroy(): void;
}

export function painterTo(show: (painted: Painted) => void): Painter {
  let id = 0;
  let shown = 0;
  let last: Job | null = null;
  let stop = (): void => undefined;
  let port: Worker | MessagePort;

  /** A preview may be of a moment ago; what is exact is of now. */
  const take = ({ data: painted }: MessageEvent<Painted>): void => {
    if (painted.preview ? painted.id <= shown : painted.id !== id) return;
    shown = painted.preview ? painted.id : id - 1;
    show(painted);
  };
  const ask = (): void => { if (last) port.postMessage(last); };
  const slices = (): void => {
    const { port1, port2 } = new MessageChannel();
    serve(port2);
    port1.onmessage = take;
    port = port1;
    stop = () => port1.close();
  };
  try {
    const address = URL.createObjectURL(new Blob([`(${coreText})().serve(self)`], { type: "text/javascript" }));
    const worker = new Worker(address);
    worker.onmessage = take;
    worker.onerror = () => { // the policy of the page forbids it
      slices();
      ask();
    };
    port = worker;
    stop = () => {
      worker.terminate();
      URL.revokeObjectURL(address);
    };
  } catch {
    slices();
  }

  const forget = (): void => {
    shown = ++id;
    last = null;
  };
  return {
    paint: (asked) => {
      last = { ...asked, id: ++id };
      ask();
    },
    forget,
    destroy: () => {
      stop();
      forget();
    },
  };
}
