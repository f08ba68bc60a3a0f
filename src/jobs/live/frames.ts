import { expandMuLaw } from '../../audio/pcm.ts';
import type { ENVELOPES, Encoding, SampleRateHz } from '../../contract/live.ts';

/** Every frame has this much audio. */
export const FRAME_MS = 100;

/** How a client sends its audio: one channel, interleaved with nothing. */
export interface AudioFormat {
  readonly sampleRateHz: SampleRateHz;
  readonly encoding: Encoding;
  /** Format of the messages that carry the audio; absent for binary frames. */
  readonly envelope?: (typeof ENVELOPES)[number];
}

const SAMPLE_BYTES: Readonly<Record<Encoding, number>> = { pcm_f32le: 4, pcm_s16le: 2, mulaw: 1 };
const MULAW_VALUES = Float32Array.from({ length: 256 }, (_, byte) => expandMuLaw(byte));
const S16_SCALE = 1 / 32768;

/** The one size that frames of a format have. */
export function frameBytes({ sampleRateHz, encoding }: AudioFormat): number {
  return ((sampleRateHz * FRAME_MS) / 1000) * SAMPLE_BYTES[encoding];
}

/** Samples of a frame; `silenced` when it held a NaN or an infinity, and so counts as silence. */
export interface DecodedFrame {
  /** In −1…1: what lies outside is clipped, as any converter would. */
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
