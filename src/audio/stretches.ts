import type { PacketDecoder } from './types.ts';

/**
 * Where decoding starts anew. Some decoders never forget where they began (noise that stands in for bands, predictors of speech
 * codecs): from the middle they give other samples than from the start, however long they are warmed up. So a recording is cut into
 * stretches at fixed frames, each with a decoder of its own that was warmed up on the frames in front. Whoever reads a sample, from
 * wherever, gets the same one.
 */
export interface StretchPlan {
  readonly stretchFrames: number;
  /** At most `stretchFrames`. */
  readonly warmUpFrames: number;
}

/** Seconds of a stretch: far longer than a warm-up, far shorter than a shard. */
const STRETCH_SECONDS = 20;

/** The plan for frames of `frameSamples`. */
export function stretchPlan(sampleRateHz: number, frameSamples: number, warmUpFrames: number): StretchPlan {
  return {
    warmUpFrames,
    stretchFrames: Math.max(warmUpFrames, Math.ceil((STRETCH_SECONDS * sampleRateHz) / frameSamples)),
  };
}

/** Decodes the frames of one recording in order, with a fresh decoder for every stretch. */
export class StretchDecoder {
  /** Feed frames from this one on. */
  readonly firstFrame: number;
  readonly #open: () => PacketDecoder;
  readonly #plan: StretchPlan;
  #stretch: number;
  #current: PacketDecoder | undefined;
  /** Warms up while the stretch in front of its own comes to an end. */
  #next: PacketDecoder | undefined;

  /** @param wantedFrame the first frame whose samples are wanted */
  constructor(open: () => PacketDecoder, plan: StretchPlan, wantedFrame: number) {
    this.#open = open;
    this.#plan = plan;
    this.#stretch = Math.floor(wantedFrame / plan.stretchFrames);
    this.firstFrame = Math.max(0, this.#stretch * plan.stretchFrames - plan.warmUpFrames);
  }

  /** Samples of frame number `frame`; of those that only warm up, some or none. The view is valid until the next call. */
  decode(frame: number, packet: Uint8Array): Float32Array {
    const { stretchFrames, warmUpFrames } = this.#plan;
    if (frame >= (this.#stretch + 1) * stretchFrames) {
      this.#current?.close();
      this.#current = this.#next;
      this.#next = undefined;
      this.#stretch = Math.floor(frame / stretchFrames);
    }
    if (frame >= (this.#stretch + 1) * stretchFrames - warmUpFrames) {
      this.#next ??= this.#open();
      this.#next.decode(packet);
    }
    this.#current ??= this.#open();
    return this.#current.decode(packet);
  }

  close(): void {
    this.#current?.close();
    this.#next?.close();
    this.#current = undefined;
    this.#next = undefined;
  }
}
