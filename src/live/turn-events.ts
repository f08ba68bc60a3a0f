import { LIVE } from './live-parameters.ts';
import type { TurnEvent } from './live-session.ts';

/** `Turns` as stored in a snapshot, by label. */
export interface TurnsState {
  readonly openSince: readonly number[];
  readonly lastEnd: readonly number[];
  readonly numbers: readonly number[];
}

/** Stored in place of a start frame if no turn is open. */
const CLOSED = -1;

/**
 * Builds the turns of each label from its active frames. A turn starts with enough speech and ends with enough silence,
 * as far as the window reaches. Labels get their public numbers when they are first sent.
 */
export class Turns {
  /** By label: frame at which the open turn began. */
  #openSince: number[] = [];
  /** By label: frame at which the last turn ended. */
  #lastEnd: number[] = [];
  /** Labels in the order in which they were first sent. */
  #numbers: number[] = [];

  constructor(private readonly secondsPerFrame: number) {}

  /**
   * Decides about the frames [from, to) of a label.
   *
   * @param isActive whether the label talks in a frame before `windowEnd`
   * @param earliest first frame at which a turn that was held back may start
   * @returns events with frames instead of times
   */
  decide(
    label: number,
    from: number,
    to: number,
    windowEnd: number,
    isActive: (frame: number) => boolean,
    earliest: number,
  ): { readonly kind: 'start' | 'end'; readonly frame: number }[] {
    const events: { kind: 'start' | 'end'; frame: number }[] = [];
    const minOn = Math.round(LIVE.minOnSeconds / this.secondsPerFrame);
    const minOff = Math.round(LIVE.minOffSeconds / this.secondsPerFrame);
    let isOpen = this.isOpen(label);
    for (let frame = from; frame < to; frame++) {
      if (!isOpen && isActive(frame)) {
        let length = 1;
        while (length < minOn && frame + length < windowEnd && isActive(frame + length)) length++;
        if (length < minOn && frame + length < windowEnd) continue;
        const start = frame === from ? Math.max(earliest, this.#lastEnd[label] ?? 0) : frame;
        this.#openSince[label] = Math.min(frame, start);
        events.push({ kind: 'start', frame: this.#openSince[label] });
        isOpen = true;
      } else if (isOpen && !isActive(frame)) {
        let length = 1;
        while (length < minOff && frame + length < windowEnd && !isActive(frame + length)) length++;
        if (length < minOff && frame + length < windowEnd) continue;
        events.push({ kind: 'end', frame: this.#close(label, frame) });
        isOpen = false;
      }
    }
    return events;
  }

  isOpen(label: number): boolean {
    return (this.#openSince[label] ?? CLOSED) !== CLOSED;
  }

  /** Closes a turn at a frame, or at the first frame after its start if that is later. @returns the end frame */
  end(label: number, frame: number): number {
    return this.#close(label, frame);
  }

  /** The public number of a label; gives it the next one if it has none. */
  numberOf(label: number): number {
    const known = this.#numbers.indexOf(label);
    return known >= 0 ? known : this.#numbers.push(label) - 1;
  }

  /** Whether a label has a public number. */
  hasNumber(label: number): boolean {
    return this.#numbers.includes(label);
  }

  openLabels(): number[] {
    return this.#openSince.flatMap((since, label) => (since !== undefined && since !== CLOSED ? [label] : []));
  }

  save(): TurnsState {
    const filled = (values: number[]) => Array.from(values, (value) => value ?? CLOSED);
    return { openSince: filled(this.#openSince), lastEnd: filled(this.#lastEnd), numbers: this.#numbers };
  }

  restore({ openSince, lastEnd, numbers }: TurnsState): void {
    this.#openSince = [...openSince];
    this.#lastEnd = [...lastEnd];
    this.#numbers = [...numbers];
  }

  #close(label: number, frame: number): number {
    const at = Math.max(frame, this.#openSince[label] + 1);
    this.#openSince[label] = CLOSED;
    this.#lastEnd[label] = at;
    return at;
  }
}

/** Sorts events by time; at equal times ends come before starts. */
export function inOrder(events: TurnEvent[]): TurnEvent[] {
  const rank = (event: TurnEvent) => (event.kind === 'end' ? 0 : 1);
  return events.sort((a, b) => a.timestampSeconds - b.timestampSeconds || rank(a) - rank(b) || a.speaker - b.speaker);
}

export interface SentActivityState {
  readonly from: number;
  readonly bits: Uint8Array;
}

/** Labels that were sent as talking in the last frames: one bit per label, of at most eight. */
export class SentActivity {
  /** Frame of the first byte. */
  #from = 0;
  #bits: Uint8Array = new Uint8Array(0);

  /** First frame that is kept. */
  get from(): number {
    return this.#from;
  }

  has(frame: number, label: number): boolean {
    return ((this.#bits[frame - this.#from] ?? 0) & (1 << label)) !== 0;
  }

  /** Number of labels that were sent as talking at once. */
  count(frame: number): number {
    let count = 0;
    for (let bits = this.#bits[frame - this.#from] ?? 0; bits !== 0; bits &= bits - 1) count++;
    return count;
  }

  isAlone(frame: number, label: number): boolean {
    return this.has(frame, label) && this.count(frame) === 1;
  }

  add(frame: number, label: number): void {
    this.#bits[frame - this.#from] |= 1 << label;
  }

  /** Extends the buffer to the frames before `until` and drops all but the last `kept`. */
  remember(until: number, kept: number): void {
    const from = Math.max(0, until - kept);
    const next = new Uint8Array(until - from);
    const overlap = this.#bits.subarray(Math.max(0, from - this.#from));
    next.set(overlap.subarray(0, next.length), Math.max(0, this.#from - from));
    this.#bits = next;
    this.#from = from;
  }

  save(): SentActivityState {
    return { from: this.#from, bits: this.#bits };
  }

  restore({ from, bits }: SentActivityState): void {
    this.#from = from;
    this.#bits = bits;
  }
}
