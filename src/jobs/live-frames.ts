import type { Resampler, ResamplerPort } from '../audio/audio-ports.ts';
import { expandMuLaw } from '../audio/pcm.ts';
import type { CorrectionMessage, ENVELOPES, Encoding, SampleRateHz, SpeakerMessage } from '../contract/live.ts';
import { speakerLabel } from '../diarization/diarization.ts';
import type { CorrectionEvent, TurnEvent } from '../live/live-session.ts';

/** Duration of a frame. */
export const FRAME_MS = 100;

/** Format of a client's audio, which has one channel. */
export interface AudioFormat {
  readonly sampleRateHz: SampleRateHz;
  readonly encoding: Encoding;
  /** Format of the messages that carry the audio; absent for binary frames. */
  readonly envelope?: (typeof ENVELOPES)[number];
}

const SAMPLE_BYTES: Readonly<Record<Encoding, number>> = { pcm_f32le: 4, pcm_s16le: 2, mulaw: 1 };
const MULAW_VALUES = Float32Array.from({ length: 256 }, (_, byte) => expandMuLaw(byte));
const S16_SCALE = 1 / 32768;

/** Size of a frame. */
export function frameBytes({ sampleRateHz, encoding }: AudioFormat): number {
  return ((sampleRateHz * FRAME_MS) / 1000) * SAMPLE_BYTES[encoding];
}

/** Samples of a frame. `silenced`: the frame had a NaN or an infinity and counts as silence. */
export interface DecodedFrame {
  /** In −1…1; values outside are clipped. */
  readonly samples: Float32Array;
  readonly silenced: boolean;
}

/** @returns undefined for a frame of the wrong size */
export function decodeFrame(frame: ArrayBuffer, format: AudioFormat): DecodedFrame | undefined {
  if (frame.byteLength !== frameBytes(format)) return undefined;
  if (format.encoding === 'mulaw')
    return { samples: Float32Array.from(new Uint8Array(frame), (byte) => MULAW_VALUES[byte]), silenced: false };
  const view = new DataView(frame);
  const samples = new Float32Array(frame.byteLength / SAMPLE_BYTES[format.encoding]);
  if (format.encoding === 'pcm_s16le') {
    for (let i = 0; i < samples.length; i++) samples[i] = view.getInt16(2 * i, true) * S16_SCALE;
    return { samples, silenced: false };
  }
  for (let i = 0; i < samples.length; i++) {
    const value = view.getFloat32(4 * i, true);
    if (!Number.isFinite(value)) return { samples: samples.fill(0), silenced: true };
    samples[i] = Math.max(-1, Math.min(1, value));
  }
  return { samples, silenced: false };
}

/** A telephony frame: 20 ms at 8 kHz, one byte per sample. */
const TELEPHONY_FRAME_BYTES = 160;
/** µ-law code of zero. */
const SILENCE = 0xff;

/** Joins telephony frames into the stream's frames of 100 ms. */
export class FrameJoiner {
  #pending: Uint8Array;

  constructor(
    private readonly frameBytes: number,
    pending: Uint8Array = new Uint8Array(0),
  ) {
    this.#pending = pending;
  }

  /** Bytes since the last whole frame. */
  get pending(): Uint8Array {
    return this.#pending;
  }

  /** @returns the whole frames; undefined unless `bytes` holds whole telephony frames */
  push(bytes: Uint8Array): ArrayBuffer[] | undefined {
    if (bytes.length === 0 || bytes.length % TELEPHONY_FRAME_BYTES !== 0) return undefined;
    const joined = new Uint8Array(this.#pending.length + bytes.length);
    joined.set(this.#pending);
    joined.set(bytes, this.#pending.length);
    const whole = Math.floor(joined.length / this.frameBytes);
    this.#pending = joined.slice(whole * this.frameBytes);
    return Array.from({ length: whole }, (_, i) => joined.slice(i * this.frameBytes, (i + 1) * this.frameBytes).buffer);
  }

  /** The last frame, padded with silence; undefined if no bytes are pending. */
  flush(): ArrayBuffer | undefined {
    if (this.#pending.length === 0) return undefined;
    const frame = new Uint8Array(this.frameBytes).fill(SILENCE);
    frame.set(this.#pending);
    this.#pending = new Uint8Array(0);
    return frame.buffer;
  }
}

const SESSION_RATE_HZ = 16_000;
const NO_SAMPLES = new Float32Array(0);

/** State of a `LiveInput`, from which another one continues. */
export interface InputState {
  readonly receivedSamples: number;
  readonly returnedSamples: number;
  /** The last received samples, as far as later outputs need them. */
  readonly tail: Float32Array;
}

/**
 * Resamples a stream to 16 kHz. The output does not depend on how often it was suspended. It is delayed by the filter's
 * look-ahead, 2 to 4 ms, and padded at the start: a frame of 100 ms gives 1600 samples, so that no live window has to
 * wait for the next frame.
 */
export class LiveInput {
  #received: number;
  #returned: number;
  #tail: Float32Array;
  #resampler: Resampler | undefined;

  constructor(
    private readonly rateHz: number,
    private readonly resamplers: ResamplerPort,
    state: InputState = { receivedSamples: 0, returnedSamples: 0, tail: NO_SAMPLES },
  ) {
    this.#received = state.receivedSamples;
    this.#returned = state.returnedSamples;
    this.#tail = state.tail;
  }

  /** @returns samples of the same duration at 16 kHz; the caller owns them */
  push(samples: Float32Array): Float32Array {
    if (this.rateHz === SESSION_RATE_HZ) return samples;
    const isFirst = this.#received === 0;
    const resampled = this.#open().push(samples).slice();
    this.#received += samples.length;
    this.#returned += resampled.length;
    this.#keepTail(samples);
    if (!isFirst) return resampled;
    const whole = new Float32Array(Math.round((samples.length * SESSION_RATE_HZ) / this.rateHz));
    whole.set(resampled, whole.length - resampled.length);
    return whole;
  }

  get state(): InputState {
    return { receivedSamples: this.#received, returnedSamples: this.#returned, tail: this.#tail };
  }

  /** Frees the resampler's memory, which the garbage collector does not. */
  suspend(): InputState {
    this.#resampler?.close();
    this.#resampler = undefined;
    return this.state;
  }

  #open(): Resampler {
    if (this.#resampler) return this.#resampler;
    const tailStart = this.#received - this.#tail.length;
    const firstInput = Math.max(tailStart, this.#firstNeeded());
    const resampler = this.resamplers.open(this.rateHz, firstInput, this.#returned);
    if (this.#received > firstInput) resampler.push(this.#tail.subarray(firstInput - tailStart));
    this.#resampler = resampler;
    return resampler;
  }

  /** First input sample that the next output needs. */
  #firstNeeded(): number {
    const position = Math.floor((this.#returned * this.rateHz) / SESSION_RATE_HZ);
    return Math.max(0, position - this.resamplers.contextInputSamples(this.rateHz));
  }

  #keepTail(samples: Float32Array): void {
    const joined = new Float32Array(this.#tail.length + samples.length);
    joined.set(this.#tail);
    joined.set(samples, this.#tail.length);
    const needed = this.#received - this.#firstNeeded();
    this.#tail = joined.slice(Math.max(0, joined.length - needed));
  }
}

/** The message of a start or an end. */
export function speakerMessage({ kind, speaker, timestampSeconds, match }: TurnEvent): SpeakerMessage {
  const data = { timestamp: timestampSeconds, speaker: speakerLabel(speaker) };
  return {
    type: `diarization_speaker_${kind}`,
    data: kind === 'start' && match !== undefined ? { ...data, match } : data,
  };
}

/** The message of a correction. */
export function correctionMessage({ changes }: CorrectionEvent): CorrectionMessage {
  const data = {
    changes: changes.map(({ startSeconds, endSeconds, from, to }) => ({
      start: startSeconds,
      end: endSeconds,
      from: speakerLabel(from),
      to: speakerLabel(to),
    })),
  };
  return { type: 'diarization_speaker_correction', data };
}
