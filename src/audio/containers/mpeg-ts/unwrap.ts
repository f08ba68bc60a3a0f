import { OPUS_RATE_HZ } from '../../packets/opus.ts';
import type { TrackCodec } from '../../packets/packet.ts';
import { soundFrame } from './frames.ts';
import { type LatmConfig, parseLoasFrame } from './latm.ts';
import { opusHeadOf, opusUnit } from './opus.ts';
import type { Framing } from './tables.ts';

/** What a decoder needs of one frame of a stream. */
export interface Unwrapped {
  readonly bytes: Uint8Array;
  readonly track: TrackCodec;
  /** Whether it can be understood without the frames before. */
  readonly standsAlone: boolean;
  /** Samples that are not to be heard, of Opus. */
  readonly startTrim?: number;
  readonly endTrim?: number;
}

/** Takes the frames of one stream, in order, out of what is around them. */
export interface Unwrapper {
  /** Undefined for damage, and for what is not understood; `foreign` then says what that is. */
  unwrap(frame: Uint8Array): Unwrapped | undefined;
  readonly foreign: string | undefined;
}

/** @param channels of Opus, which has them in the tables of the stream */
export function unwrapperOf(framing: Framing, channels: number): Unwrapper {
  if (framing === 'latm') return new LatmUnwrapper();
  const opusHead = framing === 'opus' ? opusHeadOf(channels) : new Uint8Array(0);
  return {
    foreign: undefined,
    unwrap(frame) {
      if (framing === 'opus') {
        const unit = opusUnit(frame, 0);
        if (!unit) return undefined;
        const { headerBytes, startTrim, endTrim } = unit;
        const track: TrackCodec = { codec: 'opus', sampleRateHz: OPUS_RATE_HZ, channels, extraData: opusHead };
        return { bytes: frame.subarray(headerBytes), track, standsAlone: true, startTrim, endTrim };
      }
      const sound = soundFrame(framing, frame, 0);
      if (!sound?.track) return undefined;
      return { bytes: frame, track: sound.track, standsAlone: true };
    },
  };
}

class LatmUnwrapper implements Unwrapper {
  foreign: string | undefined;
  #config: LatmConfig | undefined;

  unwrap(frame: Uint8Array): Unwrapped | undefined {
    const parsed = parseLoasFrame(frame, this.#config);
    if (parsed.kind === 'foreign') {
      this.foreign ??= parsed.what;
      // What continues with that configuration is not understood either.
      this.#config = undefined;
      return undefined;
    }
    const track = parsed.kind === 'frame' ? soundFrame('adts', parsed.adts, 0)?.track : undefined;
    if (parsed.kind !== 'frame' || !track) return undefined;
    this.#config = parsed.config;
    return { bytes: parsed.adts, track, standsAlone: parsed.hasConfig };
  }
}
