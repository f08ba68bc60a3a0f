import type { BlockReader } from '../block-reader.ts';
import type { PacketCounter } from '../container.ts';
import { type PacketRun, type PacketWalk, packetBytes } from './packet.ts';

/** Packets found together, and how many samples each decodes to. */
export interface CountedRun {
  readonly run: PacketRun;
  readonly counts: readonly (readonly [samples: number, canRestart: boolean])[];
}

/** A packet that is still to come. */
export interface PacketAhead {
  /** Samples between the next packet and this one. */
  readonly samples: number;
  readonly seconds: number | undefined;
}

/** The runs of a walk in order, with a look at what comes. */
export class CountedRuns {
  /** Runs that were looked at and not taken yet. */
  readonly #waiting: CountedRun[] = [];

  constructor(
    private readonly reader: BlockReader,
    private readonly walk: PacketWalk,
    private readonly counter: PacketCounter | undefined,
  ) {}

  async next(): Promise<CountedRun | undefined> {
    return this.#waiting.shift() ?? (await this.#pull());
  }

  /** Whether there is another run; it is kept for `next`. */
  async hasMore(): Promise<boolean> {
    if (this.#waiting.length > 0) return true;
    const pulled = await this.#pull();
    if (pulled) this.#waiting.push(pulled);
    return pulled !== undefined;
  }

  /** The packets from number `from` of a run that was taken on, and those of the runs after it. */
  async *ahead(taken: CountedRun, from: number): AsyncGenerator<PacketAhead> {
    let samples = 0;
    let first = from;
    let current: CountedRun | undefined = taken;
    for (let i = 0; current; i++) {
      const { run, counts }: CountedRun = current;
      for (let k = first; k < run.packets.length; k++) {
        yield { samples, seconds: run.packets[k].seconds };
        samples += counts[k][0];
      }
      first = 0;
      if (i === this.#waiting.length) {
        const pulled = await this.#pull();
        if (pulled) this.#waiting.push(pulled);
      }
      current = this.#waiting[i];
    }
  }

  async close(): Promise<void> {
    await this.walk.return(undefined);
  }

  async #pull(): Promise<CountedRun | undefined> {
    const next = await this.walk.next();
    if (next.done) return undefined;
    const counts: [number, boolean][] = [];
    for (const packet of next.value.packets) {
      if (packet.samples !== undefined || !this.counter) {
        counts.push([packet.samples ?? 0, true]);
        continue;
      }
      const { canRestart, headBytes } = this.counter;
      const head = headBytes > 0 ? await packetBytes(this.reader, packet, headBytes) : NOTHING;
      counts.push([this.counter.count(head, packet.length), canRestart]);
    }
    return { run: next.value, counts };
  }
}

const NOTHING = new Uint8Array(0);
