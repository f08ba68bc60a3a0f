import type { Faults } from '../../container.ts';
import type { RawPacket } from '../../packets/packet.ts';
import { MAX_HEADER_BYTES, soundFrame } from './frames.ts';
import type { Framing } from './tables.ts';
import type { Unwrapped, Unwrapper } from './unwrap.ts';

/** A packet, and what its frame said beside. */
export interface TsSound extends RawPacket, Pick<Unwrapped, 'track' | 'startTrim' | 'endTrim'> {}

/** What a PES packet says of the first frame that begins in it. */
export interface Mark {
  readonly entry: number;
  readonly met: Faults;
  readonly seconds: number | undefined;
}

/** Cuts the bytes of a stream into frames, which do not keep to the borders of PES packets. */
export class FrameBuffer {
  #buffer = new Uint8Array(1 << 17);
  #end = 0;
  #mark: (Mark & { at: number }) | undefined;

  constructor(
    private readonly framing: Framing,
    private readonly unwrapper: Unwrapper,
  ) {}

  get bytes(): number {
    return this.#end;
  }

  /** A PES packet begins with the next byte. */
  mark(mark: Mark): void {
    this.#mark = { ...mark, at: this.#end };
  }

  append(bytes: Uint8Array): void {
    if (this.#end + bytes.length > this.#buffer.length) {
      // Nothing in so many bytes was a frame.
      this.lose();
    }
    this.#buffer.set(bytes.subarray(0, this.#buffer.length), this.#end);
    this.#end += bytes.length;
  }

  /** Bytes are missing here: what is at hand of the frame before cannot be completed. */
  lose(): void {
    this.#end = 0;
    this.#mark = undefined;
  }

  /** Moves all whole frames to `out`. */
  take(out: TsSound[]): void {
    const data = this.#buffer.subarray(0, this.#end);
    let at = 0;
    while (at + MAX_HEADER_BYTES <= data.length) {
      const frame = this.#frameAt(data, at);
      if (!frame) {
        at++;
        continue;
      }
      if (at + frame.bytes > data.length) break;
      const mark = this.#mark && at >= this.#mark.at ? this.#mark : undefined;
      const unwrapped = this.unwrapper.unwrap(data.slice(at, at + frame.bytes));
      if (unwrapped) {
        const { bytes, standsAlone, ...sound } = unwrapped;
        // Only a frame that begins with the PES packet is found by who begins there.
        const place = mark?.at === at && standsAlone ? { entry: mark.entry, met: mark.met } : undefined;
        out.push({ offset: 0, length: bytes.length, bytes, seconds: mark?.seconds, ...place, ...sound });
      }
      if (mark) this.#mark = undefined;
      at += frame.bytes;
    }
    this.#buffer.copyWithin(0, at, this.#end);
    this.#end -= at;
    if (this.#mark) this.#mark.at -= at;
  }

  /** A frame whose successor, if it is at hand, is one too. */
  #frameAt(data: Uint8Array, at: number) {
    const frame = soundFrame(this.framing, data, at);
    if (!frame) return undefined;
    const next = at + frame.bytes;
    return next + MAX_HEADER_BYTES > data.length || soundFrame(this.framing, data, next) ? frame : undefined;
  }
}
