import { ascii, u16be, u32be } from '../../bytes.ts';
import { aacTrack, XHE_AAC } from '../../packets/aac.ts';
import { alacTrack } from '../../packets/alac.ts';
import { decoderConfig } from '../../packets/mpeg4-descriptor.ts';
import { OPUS_RATE_HZ, opusHeadFromBox } from '../../packets/opus.ts';
import type { TrackCodec } from '../../packets/packet.ts';
import { type AudioResult, fail, ok } from '../../result.ts';
import type { CodecName } from '../../types.ts';
import { parseStreamInfo, STREAM_INFO_BYTES } from '../flac/stream-info.ts';
import { boxesIn, findBox } from './boxes.ts';
import { pcmEntry, type SoundEntry } from './pcm-entry.ts';

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
  usac: XHE_AAC,
};

/** Entries of encrypted tracks: of the common scheme, of FairPlay, of Audible. */
const ENCRYPTED = new Set(['enca', 'drms', 'drmi', 'aavd']);

const PLAIN: Readonly<Record<string, CodecName>> = {
  '.mp3': 'mp3',
  'ac-3': 'ac3',
  'ec-3': 'eac3',
  samr: 'amr-nb',
  sawb: 'amr-wb',
};

/**
 * Takes the first sample entry of a track apart, down to what a decoder needs.
 *
 * @param timescale of the track: mostly its sample rate, and all there is of one above 65535 Hz, which the entry has no
 *   room for and says 0
 */
export function codecOfEntry(entry: Uint8Array, timescale: number): AudioResult<TrackCodec> {
  const parsed = parseSoundEntry(entry);
  if (!parsed) return fail('corrupt', 'The MP4 file has a damaged description of its audio track.');
  const sound: SoundEntry = { ...parsed, sampleRateHz: parsed.sampleRateHz || timescale };
  const { type, channels, sampleRateHz, boxes } = sound;
  const inside = (name: string) => findBox(boxes, name) ?? findBox(findBox(boxes, 'wave') ?? boxes, name);
  const plain = (codec: CodecName, extraData: Uint8Array = new Uint8Array(0), extra: Partial<TrackCodec> = {}) =>
    ok({ codec, sampleRateHz, channels, extraData: extraData.slice(), ...extra });
  if (ENCRYPTED.has(type)) {
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
    const { sampleRateHz: rateHz, channels: flacChannels } = parseStreamInfo(info);
    return plain('flac', info, { sampleRateHz: rateHz, channels: flacChannels });
  }
  if (type === 'alac') {
    const track = alacTrack(inside('alac')?.subarray(4) ?? new Uint8Array(0));
    return track ? ok(track) : fail('corrupt', 'The MP4 file lacks the header of its ALAC track.');
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
  const found = esds && decoderConfig(esds.subarray(4));
  if (!found) return fail('corrupt', 'The MP4 file lacks the header of its AAC track.');
  const { objectType, privateData } = found;
  const { channels, sampleRateHz } = sound;
  const plain = (codec: CodecName) => ok({ codec, sampleRateHz, channels, extraData: new Uint8Array(0) });
  switch (objectType) {
    case 0x40:
    case 0x66:
    case 0x67:
    case 0x68: {
      return aacTrack(privateData, channels, 'The MP4 file');
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
