import { ascii, toHex, u16be, u32be } from '../../bytes.ts';
import { AAC_OBJECT_USAC, parseAacConfig } from '../../packets/aac.ts';
import { OPUS_RATE_HZ, opusHeadFromBox } from '../../packets/opus.ts';
import type { TrackCodec } from '../../packets/packet.ts';
import { type AudioResult, fail, ok } from '../../result.ts';
import type { CodecName } from '../../types.ts';
import { STREAM_INFO_BYTES } from '../flac/stream-info.ts';
import { boxesIn, findBox } from './boxes.ts';
import { pcmEntry } from './pcm-entry.ts';

/** The fields that all sound descriptions share, and where the boxes behind them begin. */
export interface SoundEntry {
  readonly type: string;
  readonly version: number;
  readonly channels: number;
  readonly bits: number;
  readonly sampleRateHz: number;
  /** Flags of uncompressed sound, in the second version of QuickTime's description. */
  readonly formatFlags: number;
  readonly boxes: Uint8Array;
}

/** Names for codings that are not decoded. */
const NAMES: Readonly<Record<string, string>> = {
  'ac-4': 'AC-4',
  mlpa: 'Dolby TrueHD',
  dtsc: 'DTS',
  dtsh: 'DTS-HD',
  dtsl: 'DTS-HD',
  dtse: 'DTS Express',
  dtsx: 'DTS:X',
  mhm1: 'MPEG-H 3D audio',
  mha1: 'MPEG-H 3D audio',
  iamf: 'IAMF',
  ima4: 'IMA ADPCM',
  QDM2: 'QDesign Music',
  Qclp: 'QCELP',
  sqcp: 'QCELP',
  sevc: 'EVRC',
  agsm: 'GSM',
  spex: 'Speex',
};

const PLAIN: Readonly<Record<string, CodecName>> = {
  '.mp3': 'mp3',
  'ac-3': 'ac3',
  'ec-3': 'eac3',
  samr: 'amr-nb',
  sawb: 'amr-wb',
};

/** Takes the first sample entry of a track apart, down to what a decoder needs. */
export function codecOfEntry(entry: Uint8Array): AudioResult<TrackCodec> {
  const sound = parseSoundEntry(entry);
  if (!sound) return fail('corrupt', 'The MP4 file has a damaged description of its audio track.');
  const { type, channels, sampleRateHz, boxes } = sound;
  const inside = (name: string) => findBox(boxes, name) ?? findBox(findBox(boxes, 'wave') ?? boxes, name);
  const plain = (codec: CodecName, extraData: Uint8Array = new Uint8Array(0), extra: Partial<TrackCodec> = {}) =>
    ok({ codec, sampleRateHz, channels, extraData: toHex(extraData), ...extra });
  if (type === 'enca' || type === 'drms' || type === 'drmi') {
    return fail('unsupported', 'The MP4 file is encrypted (DRM), so it cannot be read.');
  }
  if (PLAIN[type] === 'amr-nb') return plain('amr-nb', undefined, { sampleRateHz: 8000, channels: 1 });
  if (PLAIN[type] === 'amr-wb') return plain('amr-wb', undefined, { sampleRateHz: 16000, channels: 1 });
  if (PLAIN[type]) return plain(PLAIN[type]);
  if (type === 'mp4a' || type === 'm4a ') return codecOfDescriptor(inside('esds'), sound);
  if (type === 'Opus') {
    const box = inside('dOps');
    if (!box || box.length < 11) return fail('corrupt', 'The MP4 file lacks the header of its Opus track.');
    return plain('opus', opusHeadFromBox(box), { sampleRateHz: OPUS_RATE_HZ, channels: box[1] });
  }
  if (type === 'fLaC') {
    const info = inside('dfLa')?.subarray(8, 8 + STREAM_INFO_BYTES);
    if (info?.length !== STREAM_INFO_BYTES) return fail('corrupt', 'The MP4 file lacks the header of its FLAC track.');
    return plain('flac', info);
  }
  if (type === 'alac') {
    const cookie = inside('alac')?.slice(0, 28);
    if (cookie?.length !== 28) return fail('corrupt', 'The MP4 file lacks the header of its ALAC track.');
    const atom = new Uint8Array(36);
    atom.set([0, 0, 0, 36, 0x61, 0x6c, 0x61, 0x63]);
    atom.set(cookie, 8);
    return plain('alac', atom, { sampleRateHz: u32be(cookie, 24), channels: cookie[13] });
  }
  const pcm = pcmEntry(sound);
  if (pcm) return plain('pcm', undefined, { pcm });
  const name = NAMES[type] ?? `a coding called "${type.replace(/[^\x20-\x7e]/g, '?').trim()}"`;
  return fail('unsupported', `The MP4 file holds audio in ${name}, which is not supported.`);
}

function parseSoundEntry(entry: Uint8Array): SoundEntry | undefined {
  if (entry.length < 36) return undefined;
  const version = u16be(entry, 16);
  let [channels, bits, sampleRateHz] = [u16be(entry, 24), u16be(entry, 26), u32be(entry, 32) >>> 16];
  let formatFlags = 0;
  let boxesAt = 36;
  if (version === 2 && entry.length >= 72) {
    sampleRateHz = new DataView(entry.buffer, entry.byteOffset).getFloat64(40);
    channels = u32be(entry, 48);
    bits = u32be(entry, 56);
    formatFlags = u32be(entry, 60);
    boxesAt = 72;
  } else if (
    version === 1 &&
    !boxesIn(entry, 36)
      .next()
      .value?.type.match(/^[\w .-]{4}$/)
  )
    boxesAt = 52;
  const type = ascii(entry, 4, 8);
  return { type, version, channels, bits, sampleRateHz, formatFlags, boxes: entry.subarray(boxesAt) };
}

/** Codings by their number in an MPEG-4 descriptor (ISO/IEC 14496-1 §7.2.6.6, and the registry at mp4ra.org). */
function codecOfDescriptor(esds: Uint8Array | undefined, sound: SoundEntry): AudioResult<TrackCodec> {
  const found = esds && decoderConfig(esds);
  if (!found) return fail('corrupt', 'The MP4 file lacks the header of its AAC track.');
  const { objectType, privateData } = found;
  const { channels, sampleRateHz } = sound;
  const plain = (codec: CodecName) => ok({ codec, sampleRateHz, channels, extraData: '' });
  switch (objectType) {
    case 0x40:
    case 0x66:
    case 0x67:
    case 0x68: {
      const config = parseAacConfig(privateData);
      if (!config) return fail('corrupt', 'The MP4 file has a damaged header of its AAC track.');
      if (config.objectType === AAC_OBJECT_USAC) {
        return fail('unsupported', 'The MP4 file holds audio in xHE-AAC (USAC), which is not supported.');
      }
      return ok({
        codec: 'aac',
        sampleRateHz: config.sampleRateHz,
        channels: config.channels || channels || 1,
        extraData: toHex(privateData),
      });
    }
    case 0x69:
    case 0x6b:
      return plain('mp3');
    case 0xa5:
      return plain('ac3');
    case 0xa6:
      return plain('eac3');
    default: {
      const name = objectType === 0xa9 ? 'DTS' : `a coding with the number ${objectType}`;
      return fail('unsupported', `The MP4 file holds audio in ${name}, which is not supported.`);
    }
  }
}

const ES_DESCRIPTOR = 3;
const DECODER_CONFIG = 4;
const DECODER_SPECIFIC = 5;

/** Object type and private data out of `esds`: descriptors inside one another. */
function decoderConfig(esds: Uint8Array): { objectType: number; privateData: Uint8Array } | undefined {
  let at = 4;
  let objectType: number | undefined;
  while (at + 2 <= esds.length) {
    const tag = esds[at++];
    let length = 0;
    for (let i = 0; i < 4 && at < esds.length; i++) {
      const byte = esds[at++];
      length = length * 128 + (byte & 127);
      if (byte < 128) break;
    }
    if (tag === ES_DESCRIPTOR) {
      const flags = esds[at + 2] ?? 0;
      at += 3 + (flags & 0x80 ? 2 : 0);
      if (flags & 0x40) at += 1 + (esds[at] ?? 0);
      if (flags & 0x20) at += 2;
    } else if (tag === DECODER_CONFIG) {
      objectType = esds[at];
      at += 13;
    } else if (tag === DECODER_SPECIFIC && objectType !== undefined) {
      return { objectType, privateData: esds.subarray(at, at + length) };
    } else at += length;
  }
  return objectType === undefined ? undefined : { objectType, privateData: new Uint8Array(0) };
}
