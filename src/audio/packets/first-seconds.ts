/** Packets of a track that are looked at: pictures do not come in the order in which they are shown. */
const FIRST_PACKETS = 16;
/** What comes so much earlier than the first packet is of another clock: the recording was put together. */
const MAX_REORDER_SECONDS = 1;

/** When a track begins, by the times of its first packets. */
export class FirstSeconds {
  /** Endless where no packet has a time. */
  seconds = Number.POSITIVE_INFINITY;
  #packets = 0;

  /** The time of the next packet, where it has one. */
  pass(seconds: number | undefined): void {
    if (seconds === undefined || this.#packets >= FIRST_PACKETS) return;
    const isReordered = seconds < this.seconds && seconds >= this.seconds - MAX_REORDER_SECONDS;
    if (this.#packets++ === 0 || isReordered) this.seconds = seconds;
  }
}
