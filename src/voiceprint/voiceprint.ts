import { fromBase64, toBase64 } from '../audio/bytes.ts';
import { crc32 } from '../audio/crc.ts';
import type { SpeakerVoice } from '../diarization/diarization.ts';

/**
 * The text of a voiceprint is base64 (RFC 4648 §4) of
 *
 *     0   "RCVP"
 *     4   version, 1
 *     5   length n of the embedder's id, then the id in ASCII
 *     6+n length of the speech, in units of 10 ms, uint16
 *     8+n dimension d, uint16
 *     10+n  d values as int16, scaled so that the largest magnitude is 32767
 *     …   CRC-32 of all bytes before, uint32
 *
 * all little-endian. The values are those of a unit vector: 16 bits change a cosine by less than 1e-4.
 */
const MAGIC = [0x52, 0x43, 0x56, 0x50];
const VERSION = 1;
const ID_OFFSET = 6;
const MAX_ID_CHARS = 64;
const MAX_DIMENSION = 4096;
const VALUE_SCALE = 32767;
const CRC_BYTES = 4;
const SECONDS_UNIT = 0.01;

type VoiceprintFault =
  | { readonly kind: 'foreign' }
  | { readonly kind: 'damaged' }
  | { readonly kind: 'version'; readonly version: number };

type DecodedVoiceprint =
  | { readonly ok: true; readonly value: SpeakerVoice }
  | { readonly ok: false; readonly error: VoiceprintFault };

/** @returns the text of a voiceprint, equal for equal voices */
export function encodeVoiceprint(voice: SpeakerVoice): string {
  const { embeddingId, embedding, secondsAlone } = voice;
  if (!/^[\x21-\x7e]+$/.test(embeddingId) || embeddingId.length > MAX_ID_CHARS) {
    throw new Error(`"${embeddingId}" cannot be written into a voiceprint`);
  }
  const bytes = new Uint8Array(ID_OFFSET + embeddingId.length + 4 + 2 * embedding.length + CRC_BYTES);
  const view = new DataView(bytes.buffer);
  bytes.set(MAGIC);
  view.setUint8(4, VERSION);
  view.setUint8(5, embeddingId.length);
  for (let i = 0; i < embeddingId.length; i++) view.setUint8(ID_OFFSET + i, embeddingId.charCodeAt(i));
  let at = ID_OFFSET + embeddingId.length;
  view.setUint16(at, Math.min(0xffff, Math.round(secondsAlone / SECONDS_UNIT)), true);
  view.setUint16(at + 2, embedding.length, true);
  at += 4;
  const largest = embedding.reduce((most, value) => Math.max(most, Math.abs(value)), 1e-12);
  for (const value of embedding) {
    view.setInt16(at, Math.round((value / largest) * VALUE_SCALE), true);
    at += 2;
  }
  view.setUint32(at, crc32(bytes.subarray(0, at)), true);
  return toBase64(bytes);
}

/** Reads a voiceprint. `foreign` is any other text, `damaged` a voiceprint that was cut or changed. */
export function decodeVoiceprint(text: string): DecodedVoiceprint {
  const bytes = fromBase64(text);
  if (bytes === undefined || bytes.length < ID_OFFSET || MAGIC.some((value, i) => bytes[i] !== value)) {
    return { ok: false, error: { kind: 'foreign' } };
  }
  const version = bytes[4];
  if (version !== VERSION) return { ok: false, error: { kind: 'version', version } };
  const value = readBody(bytes);
  return value === undefined ? { ok: false, error: { kind: 'damaged' } } : { ok: true, value };
}

function readBody(bytes: Uint8Array): SpeakerVoice | undefined {
  const view = new DataView(bytes.buffer);
  const idLength = bytes[5];
  const body = ID_OFFSET + idLength + 4;
  if (bytes.length < body + CRC_BYTES) return undefined;
  const dimension = view.getUint16(body - 2, true);
  const end = body + 2 * dimension;
  if (dimension < 1 || dimension > MAX_DIMENSION || bytes.length !== end + CRC_BYTES) return undefined;
  if (view.getUint32(end, true) !== crc32(bytes.subarray(0, end))) return undefined;
  const embedding = Float32Array.from({ length: dimension }, (_, d) => view.getInt16(body + 2 * d, true));
  const length = Math.sqrt(embedding.reduce((sum, value) => sum + value * value, 0));
  if (length === 0) return undefined;
  return {
    embeddingId: String.fromCharCode(...bytes.subarray(ID_OFFSET, ID_OFFSET + idLength)),
    embedding: embedding.map((value) => value / length),
    secondsAlone: view.getUint16(body - 4, true) * SECONDS_UNIT,
  };
}
