import { stretch } from '../steady-decoder.ts';
import type { DecoderPort, PacketDecoder } from '../types.ts';
import type { TrackCodec } from './packet.ts';
import { openTrack } from './track-decoder.ts';

/** Opus holds samples back while it resamples, less than its shortest packet, and gives them later. */
const OPUS_LAG_SAMPLES = 119;

const NOTHING = new Float32Array(0);

/** One open decoder and the place in the recording of what comes out of it. */
export class Lane {
  /** Samples of the last packet; valid until the next one. */
  block: Float32Array = NOTHING;
  blockPosition = 0;
  readonly #decoder: PacketDecoder;
  readonly #lagSamples: number;
  #next: number | undefined;

  constructor(
    track: TrackCodec,
    decoders: DecoderPort,
    private readonly rateHz: number,
  ) {
    this.#decoder = openTrack(track, decoders);
    this.#lagSamples = track.codec === 'opus' ? OPUS_LAG_SAMPLES : 0;
  }

  /** @param samples what the packet should decode to */
  decode(packet: Uint8Array, position: number, samples: number): void {
    const decoded = this.#decoder.decode(packet);
    const hasOtherRate = decoded.length > 0 && this.#decoder.sampleRateHz !== this.rateHz;
    this.block = hasOtherRate ? stretch(decoded, samples) : decoded;
    const lag = this.#next === undefined ? 0 : position - this.#next;
    this.blockPosition = this.#next === undefined || lag < 0 || lag > this.#lagSamples ? position : this.#next;
    this.#next =
      this.block.length === 0 && this.#next === undefined ? undefined : this.blockPosition + this.block.length;
  }

  close(): void {
    this.#decoder.close();
  }
}
