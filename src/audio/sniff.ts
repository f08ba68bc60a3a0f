import { type AudioError, fail } from './audio-ports.ts';
import { ascii, hasAscii } from './bytes.ts';

type Failure = ReturnType<typeof fail>;

interface KnownFormat {
  readonly name: string;
  readonly matches: (head: Uint8Array) => boolean;
}

const starts = (text: string) => (head: Uint8Array) => hasAscii(head, 0, text);
const startsBytes =
  (...bytes: number[]) =>
  (head: Uint8Array) =>
    bytes.every((byte, i) => head[i] === byte);

const bytesAt = (head: Uint8Array, at: number, ...bytes: number[]) => bytes.every((byte, i) => head[at + i] === byte);

/** Sync words of DTS in both byte orders, with 16 and 14 bits used of each word. */
const DTS_SYNCS = [
  [0x7f, 0xfe, 0x80, 0x01],
  [0xfe, 0x7f, 0x01, 0x80],
  [0x1f, 0xff, 0xe8, 0x00, 0x07],
  [0xff, 0x1f, 0x00, 0xe8, 0xf1, 0x07],
];

/** Kilobits a second of the frame sizes of AC-3, two sizes each. */
const AC3_KILOBITS = [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 576, 640];
const AC3_RATES_HZ = [48000, 44100, 32000];
const AC3_FRAME_SAMPLES = 1536;

/** Whether AC-3 or E-AC-3 begins: a frame, and the sync word of the next one at its end. */
function isBareAc3(head: Uint8Array): boolean {
  if (!bytesAt(head, 0, 0x0b, 0x77)) return false;
  return bytesAt(head, ac3FrameBytes(head), 0x0b, 0x77);
}

function ac3FrameBytes(head: Uint8Array): number {
  const isEnhanced = head[5] >> 3 > 10;
  if (isEnhanced) return 2 * ((((head[2] & 7) << 8) | head[3]) + 1);
  const rateHz = AC3_RATES_HZ[head[4] >> 6];
  const size = head[4] & 0x3f;
  const words = Math.floor((AC3_KILOBITS[size >> 1] * 1000 * AC3_FRAME_SAMPLES) / (16 * rateHz));
  // At 44.1 kHz the frame size is no integer: one of the two sizes has one word more.
  return 2 * (words + (rateHz === 44100 ? size & 1 : 0));
}

/** Audio and video formats that are recognised, but not supported. Supported containers are tried before this list. */
const KNOWN_MEDIA: readonly KnownFormat[] = [
  { name: 'a Windows Media file', matches: startsBytes(0x30, 0x26, 0xb2, 0x75, 0x8e, 0x66, 0xcf, 0x11) },
  { name: 'an AVI file', matches: (head) => hasAscii(head, 0, 'RIFF') && hasAscii(head, 8, 'AVI ') },
  { name: 'a big-endian WAV file (RIFX)', matches: starts('RIFX') },
  { name: 'a Wave64 file', matches: startsBytes(0x72, 0x69, 0x66, 0x66, 0x2e, 0x91, 0xcf, 0x11) },
  { name: 'a Sun/NeXT audio file', matches: starts('.snd') },
  { name: 'a NIST SPHERE file', matches: starts('NIST_1A') },
  { name: 'a MIDI file', matches: starts('MThd') },
  { name: 'a WavPack file', matches: starts('wvpk') },
  { name: "a Monkey's Audio file", matches: starts('MAC ') },
  { name: 'a True Audio file', matches: starts('TTA1') },
  { name: 'a Musepack file', matches: (head) => hasAscii(head, 0, 'MPCK') || hasAscii(head, 0, 'MP+') },
  { name: 'a DSD file', matches: (head) => hasAscii(head, 0, 'DSD ') || hasAscii(head, 0, 'FRM8') },
  { name: 'a Flash video file', matches: starts('FLV\x01') },
  { name: 'an MPEG program stream', matches: startsBytes(0, 0, 1, 0xba) },
  { name: 'a RealMedia file', matches: (head) => hasAscii(head, 0, '.RMF') || hasAscii(head, 0, '.ra\xfd') },
  { name: 'an MXF file', matches: startsBytes(0x06, 0x0e, 0x2b, 0x34, 0x02, 0x05, 0x01, 0x01, 0x0d, 0x01, 0x02) },
  { name: 'a Flash animation', matches: (head) => /^[FCZ]WS$/.test(ascii(head, 0, 3)) && head[3] > 0 && head[3] < 64 },
  { name: 'a Creative Voice file', matches: starts('Creative Voice File\x1a') },
  {
    name: 'a recording of a dictation machine (DSS)',
    matches: (head) => head[0] > 0 && head[0] < 8 && /^ds[s2]$/.test(ascii(head, 1, 4)),
  },
  { name: 'a recording of a Sony voice recorder (DVF, MSV)', matches: starts('MS_VOICE') },
  { name: 'a QCELP file', matches: (head) => hasAscii(head, 0, 'RIFF') && hasAscii(head, 8, 'QLCM') },
  { name: 'bare DTS audio', matches: (head) => DTS_SYNCS.some((sync) => startsBytes(...sync)(head)) },
  { name: 'bare Dolby Digital audio (AC-3)', matches: isBareAc3 },
  {
    name: 'bare TrueHD or MLP audio',
    matches: (head) => [0xba, 0xbb].some((id) => bytesAt(head, 4, 0xf8, 0x72, 0x6f, id)),
  },
];

/** Formats without audio. */
const KNOWN_OTHER: readonly KnownFormat[] = [
  { name: 'a PDF document', matches: starts('%PDF') },
  { name: 'a ZIP archive or an office document', matches: starts('PK\x03\x04') },
  { name: 'a gzip archive', matches: startsBytes(0x1f, 0x8b) },
  { name: 'a RAR archive', matches: starts('Rar!') },
  { name: 'a 7-Zip archive', matches: startsBytes(0x37, 0x7a, 0xbc, 0xaf) },
  { name: 'a PNG image', matches: startsBytes(0x89, 0x50, 0x4e, 0x47) },
  { name: 'a JPEG image', matches: startsBytes(0xff, 0xd8, 0xff) },
  { name: 'a GIF image', matches: starts('GIF8') },
  { name: 'a WebP image', matches: (head) => hasAscii(head, 0, 'RIFF') && hasAscii(head, 8, 'WEBP') },
];

/** The failure that names a known unsupported format; undefined if nothing is recognised. */
export function rejectKnownFormat(head: Uint8Array): Failure | undefined {
  const media = KNOWN_MEDIA.find((known) => known.matches(head));
  if (media) return fail('unsupported', `The file is ${media.name}, which is not supported yet.`);
  const other = KNOWN_OTHER.find((known) => known.matches(head));
  if (other) return fail('not_audio', `The file is ${other.name}, not audio.`);
  const text = textKind(head);
  return text === undefined ? undefined : fail('not_audio', `The file is ${text}, not audio.`);
}

/** The failure if nothing is recognised. */
export const UNKNOWN: { readonly ok: false; readonly error: AudioError } = fail(
  'not_audio',
  'The file is not audio in a known format.',
);

/** 'a web page', 'JSON' …; undefined if the bytes are no text. */
export function textKind(head: Uint8Array): string | undefined {
  if (head.length === 0) return undefined;
  const bytes = head.subarray(0, 1024);
  if (bytes.some((byte) => (byte < 0x20 && (byte < 9 || byte > 13) && byte !== 0x1b) || byte === 0x7f))
    return undefined;
  if (!isUtf8(bytes)) return undefined;
  const text = ascii(bytes, 0, bytes.length)
    .replace(/^\xef\xbb\xbf/, '')
    .trimStart()
    .toLowerCase();
  if (/^(<!--[\s\S]*?-->\s*)?<(!doctype html|html|head|body|script|title|meta)\b/.test(text)) return 'a web page';
  if (text.startsWith('<?xml') && text.includes('<html')) return 'a web page';
  if (text.startsWith('<?xml') || /^<[a-z]+[\s>:]/.test(text)) return 'XML';
  if (/^[[{]\s*(["[{}\]]|-?\d|true|false|null)/.test(text)) return 'JSON';
  if (text.startsWith('#extm3u') || text.startsWith('[playlist]')) return 'a playlist';
  return 'text';
}

/** Whether the bytes are valid UTF-8; the last character may be truncated. */
function isUtf8(bytes: Uint8Array): boolean {
  for (let i = 0; i < bytes.length; ) {
    const byte = bytes[i];
    const extra = byte < 0x80 ? 0 : byte < 0xc2 ? -1 : byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : byte < 0xf5 ? 3 : -1;
    if (extra < 0) return false;
    for (let k = 1; k <= extra && i + k < bytes.length; k++) if ((bytes[i + k] & 0xc0) !== 0x80) return false;
    i += extra + 1;
  }
  return true;
}
