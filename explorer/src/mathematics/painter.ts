// Asks for basins: of a worker where the page allows one, else of the page itself between frames.

import { core, coreText } from "./index";
import type { Job, Painted } from "./painting";

type Asked = Omit<Job, "id">;

export class Painter {
  private id = 0;
  private shown = 0;
  private port: Worker | MessagePort;
  private last: Job | null = null;
  private address = "";

  constructor(private readonly show: (painted: Painted) => void) {
    this.port = this.worker() ?? this.slices();
  }

  paint(asked: Asked): void {
    this.last = { ...asked, id: ++this.id };
    this.port.postMessage(this.last);
  }

  /** Pictures that are still at work are for nothing. */
  forget(): void {
    this.shown = ++this.id;
    this.last = null;
  }

  destroy(): void {
    if ("terminate" in this.port) this.port.terminate();
    else this.port.close();
    URL.revokeObjectURL(this.address);
    this.forget();
  }

  private worker(): Worker | null {
    try {
      const text = `(${coreText})().serve(self)`;
      this.address = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
      const worker = new Worker(this.address);
      worker.onmessage = ({ data }) => this.take(data as Painted);
      worker.onerror = () => { // the policy of the page forbids it
        this.port = this.slices();
        if (this.last) this.port.postMessage(this.last);
      };
      return worker;
    } catch {
      return null;
    }
  }

  private slices(): MessagePort {
    const { port1, port2 } = new MessageChannel();
    core.serve(port2);
    port1.onmessage = ({ data }) => this.take(data as Painted);
    return port1;
  }

  /** A preview may be of a moment ago; what is exact is of now. */
  private take(painted: Painted): void {
    if (painted.preview ? painted.id <= this.shown : painted.id !== this.id) return;
    this.shown = painted.preview ? painted.id : this.id - 1;
    this.show(painted);
  }
}
