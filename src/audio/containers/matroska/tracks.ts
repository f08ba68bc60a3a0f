import { ascii } from '../../bytes.ts';
import { elementsIn, floatOf, uintOf } from './ebml.ts';
import * as id from './ids.ts';

/** One audio track, as the header describes it. */
export interface MatroskaTrack {
  readonly number: number;
  readonly isEnabled: boolean;
  readonly isDefault: boolean;
  readonly codecId: string;
  readonly codecPrivate: Uint8Array;
  readonly codecDelayNs: number;
  readonly sampleRateHz: number;
  readonly channels: number;
  readonly bitDepth: number;
  readonly encoding: ContentEncoding;
}

/** What was done to the packets before they were written. */
export type ContentEncoding =
  | { readonly kind: 'none' }
  /** The same first bytes were taken away from each. */
  | { readonly kind: 'stripped'; readonly prefix: Uint8Array }
  | { readonly kind: 'compressed' }
  | { readonly kind: 'encrypted' };

/** Tracks that are looked at; no recording has more, and each takes more memory than its bytes in the file. */
const MAX_TRACKS = 100;

const PICTURES_TYPE = 1;
const AUDIO_TYPE = 2;
const HEADER_STRIPPING = 3;

interface Tracks {
  readonly audio: readonly MatroskaTrack[];
  /** Numbers of the tracks of sound and pictures. */
  readonly played: ReadonlySet<number>;
  readonly trackCount: number;
}

/** @param body of `Tracks` */
export function parseTracks(body: Uint8Array): Tracks {
  const audio: MatroskaTrack[] = [];
  const played = new Set<number>();
  let trackCount = 0;
  for (const entry of elementsIn(body)) {
    if (entry.id !== id.TRACK_ENTRY) continue;
    if (++trackCount > MAX_TRACKS) continue;
    const fields = fieldsOf(entry.body);
    const number = (field: number, fallback: number) => (fields.has(field) ? uintOf(fields.get(field)!) : fallback);
    const type = number(id.TRACK_TYPE, 0);
    if (type === AUDIO_TYPE || type === PICTURES_TYPE) played.add(number(id.TRACK_NUMBER, 0));
    if (type !== AUDIO_TYPE) continue;
    const sound = fieldsOf(fields.get(id.AUDIO) ?? new Uint8Array(0));
    const rate = sound.get(id.SAMPLING_FREQUENCY);
    const codecId = fields.get(id.CODEC_ID) ?? new Uint8Array(0);
    audio.push({
      number: number(id.TRACK_NUMBER, 0),
      isEnabled: number(id.FLAG_ENABLED, 1) !== 0,
      isDefault: number(id.FLAG_DEFAULT, 1) !== 0,
      codecId: ascii(codecId, 0, 64).replace(/\0.*$/s, ''),
      codecPrivate: fields.get(id.CODEC_PRIVATE) ?? new Uint8Array(0),
      codecDelayNs: number(id.CODEC_DELAY, 0),
      sampleRateHz: Math.round(rate ? floatOf(rate) : 8000),
      channels: sound.has(id.CHANNELS) ? uintOf(sound.get(id.CHANNELS)!) : 1,
      bitDepth: sound.has(id.BIT_DEPTH) ? uintOf(sound.get(id.BIT_DEPTH)!) : 0,
      encoding: encodingOf(fields.get(id.CONTENT_ENCODINGS)),
    });
  }
  return { audio, played, trackCount };
}

/** Bodies by id, the first of each. */
function fieldsOf(body: Uint8Array): ReadonlyMap<number, Uint8Array> {
  const fields = new Map<number, Uint8Array>();
  for (const element of elementsIn(body)) if (!fields.has(element.id)) fields.set(element.id, element.body);
  return fields;
}

function encodingOf(encodings: Uint8Array | undefined): ContentEncoding {
  const encoding = encodings && fieldsOf(encodings).get(id.CONTENT_ENCODING);
  if (!encoding) return { kind: 'none' };
  const fields = fieldsOf(encoding);
  if (fields.has(id.CONTENT_ENCRYPTION)) return { kind: 'encrypted' };
  const compression = fields.get(id.CONTENT_COMPRESSION);
  if (!compression) return { kind: 'none' };
  const settings = fieldsOf(compression);
  const algorithm = settings.get(id.CONTENT_COMP_ALGO);
  if (!algorithm || uintOf(algorithm) !== HEADER_STRIPPING) return { kind: 'compressed' };
  return { kind: 'stripped', prefix: settings.get(id.CONTENT_COMP_SETTINGS) ?? new Uint8Array(0) };
}
