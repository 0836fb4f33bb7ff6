// Plays a path over time.

const PLAYED = 3000; // milliseconds of a whole path

export class Player {
  private frame = 0;

  /** `show` takes the part of the path that is to be seen. */
  constructor(private readonly show: (part: number) => void, private readonly changed: (playing: boolean) => void) {}

  get playing(): boolean {
    return this.frame !== 0;
  }

  play(from: number): void {
    this.changed(true);
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    let begun = performance.now() - (from >= 1 ? 0 : from) * PLAYED;
    const go = (now: number): void => {
      begun = Math.min(begun, now);
      const part = Math.min(1, (now - begun) / PLAYED);
      this.show(still ? Math.floor(part * 8) / 8 : part); // a few pictures, where motion is not wanted
      if (part < 1) this.frame = requestAnimationFrame(go);
      else this.pause();
    };
    this.frame = requestAnimationFrame(go);
  }

  pause(): void {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    this.changed(false);
  }
}
