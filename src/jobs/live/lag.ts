/** Lag of a stream's processed frames: from the time at which a frame was due to the end of its processing. */
export interface LagReport {
  readonly frames: number;
  readonly meanLagMs: number;
  readonly maxLagMs: number;
}

/** Collects the lag of a stream's frames between two log lines. */
export class LagMeter {
  #frames = 0;
  #sumMs = 0;
  #maxMs = 0;

  note(lagMs: number): void {
    this.#frames++;
    this.#sumMs += lagMs;
    this.#maxMs = Math.max(this.#maxMs, lagMs);
  }

  /** Reports the frames since the last call; undefined without any. */
  take(): LagReport | undefined {
    if (this.#frames === 0) return undefined;
    const report = { frames: this.#frames, meanLagMs: Math.round(this.#sumMs / this.#frames), maxLagMs: this.#maxMs };
    this.#frames = this.#sumMs = this.#maxMs = 0;
    return report;
  }
}
