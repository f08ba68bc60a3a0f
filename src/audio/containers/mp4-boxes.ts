import { type AudioResult, type CodecName, fail, ok } from '../audio-ports.ts';
import type { BlockReader } from '../block-reader.ts';
import { ascii, i64be, u16be, u32be } from '../bytes.ts';
import { roundingErrorSamples } from '../clock.ts';
import { aacTrack, alacTrack, decoderConfig, OPUS_RATE_HZ, opusHeadFromBox, XHE_AAC } from '../codec-config.ts';
import { MAX_SCAN_SECONDS, type PartStart, type PlayedSpan, type TrackCodec } from '../container.ts';
import { effectsOfLayout, effectsOfPositions, type PcmLayout } from '../pcm.ts';
import { joined } from '../playback.ts';
import { parseStreamInfo, STREAM_INFO_BYTES } from './flac.ts';

/** One box of an ISO base media file (ISO/IEC 14496-12 §4.2): `[bodyStart, end)` without its header. */
export interface Box {
  readonly type: string;
  readonly start: number;
  readonly bodyStart: number;
  readonly end: number;
  /** Whether the file ends before the box. */
  readonly isCut: boolean;
}

const MAX_HEADER_BYTES = 16;

/** Boxes on one level; a day in fragments of half a second has 350 thousand. */
export const MAX_BOXES = 1_000_000;

/** The header at `at` of `view`, at `position` of the file; undefined for an impossible length. */
function parseBox(view: Uint8Array, at: number, position: number, limit: number): Box | undefined {
  if (at + 8 > view.length) return undefined;
  const short = u32be(view, at);
  const isLong = short === 1;
  if (isLong && at + MAX_HEADER_BYTES > view.length) return undefined;
  const header = isLong ? MAX_HEADER_BYTES : 8;
  const size = isLong ? u32be(view, at + 8) * 2 ** 32 + u32be(view, at + 12) : short === 0 ? limit - position : short;
  if (size < header) return undefined;
  const end = position + size;
  return {
    type: ascii(view, at + 4, at + 8),
    start: position,
    bodyStart: position + header,
    end: Math.min(end, limit),
    isCut: end > limit,
  };
}

/** Boxes in `[from, to)` of the file, up to the first invalid one. */
export async function* boxesOf(reader: BlockReader, from: number, to: number): AsyncGenerator<Box> {
  let position = from;
  for (let count = 0; count < MAX_BOXES && position + 8 <= to; count++) {
    const box = parseBox(await reader.peek(position, MAX_HEADER_BYTES), 0, position, to);
    if (!box) return;
    yield box;
    position = box.end;
  }
}

/** Boxes in bytes in memory; positions count from their start. */
export function* boxesIn(bytes: Uint8Array, from = 0, to = bytes.length): Generator<Box> {
  for (let position = from; position + 8 <= to; ) {
    const box = parseBox(bytes, position, position, to);
    if (!box) return;
    yield box;
    position = box.end;
  }
}

/** Body of the first box of a type in bytes in memory. */
export function findBox(bytes: Uint8Array, type: string, from = 0, to = bytes.length): Uint8Array | undefined {
  for (const box of boxesIn(bytes, from, to)) if (box.type === type) return bytes.subarray(box.bodyStart, box.end);
  return undefined;
}

/** A copy of a box's body, at most `maxBytes` of it. */
export async function readBody(reader: BlockReader, box: Box, maxBytes: number): Promise<Uint8Array> {
  const length = Math.max(0, Math.min(box.end - box.bodyStart, maxBytes));
  return (await reader.peek(box.bodyStart, length)).slice(0, length);
}

/** The first box of each type inside `box`. */
export async function childrenOf(reader: BlockReader, box: Box, bodyOffset = 0): Promise<ReadonlyMap<string, Box>> {
  const children = new Map<string, Box>();
  for await (const child of boxesOf(reader, box.bodyStart + bodyOffset, box.end)) {
    if (!children.has(child.type)) children.set(child.type, child);
    if (children.size > 64) break;
  }
  return children;
}

/** Fields that all audio descriptions share, and the boxes after them. */
interface SoundEntry {
  readonly type: string;
  readonly version: number;
  readonly channels: number;
  readonly bits: number;
  readonly sampleRateHz: number;
  /** Flags of uncompressed audio, in the second version of QuickTime's description. */
  readonly formatFlags: number;
  readonly boxes: Uint8Array;
}

/** Flags of `lpcm` (QuickTime File Format, sound sample description version 2). */
const IS_FLOAT = 1;
const IS_BIG_ENDIAN = 2;
const IS_SIGNED = 4;
const IS_NOT_INTERLEAVED = 32;

/** Layout of uncompressed samples with their effects channels; undefined for other codings. */
function pcmEntry(sound: SoundEntry): PcmLayout | undefined {
  const layout = pcmFormatOf(sound);
  if (!layout) return undefined;
  const [chan, chnl] = [findBox(sound.boxes, 'chan'), findBox(sound.boxes, 'chnl')];
  const effects = chan
    ? effectsOfLayout(chan.subarray(4), layout.channels)
    : effectsOfPositions(chnl ?? NO_LAYOUT, layout.channels);
  return effects.length > 0 ? { ...layout, effects } : layout;
}

const NO_LAYOUT = new Uint8Array(0);

/** `sowt` and `twos` are names for 16 bits; for other widths `bits` is set. */
const bytesOfNamed = (bits: number): number => ([8, 24, 32].includes(bits) ? bits / 8 : 2);

/** Format of uncompressed samples, by type; undefined for other codings and unused widths. */
function pcmFormatOf({ type, bits, channels, formatFlags, boxes }: SoundEntry): PcmLayout | undefined {
  const pcm = (encoding: PcmLayout['encoding'], bytesPerSample: number, isBigEndian = true): PcmLayout | undefined =>
    [1, 2, 3, 4, 8].includes(bytesPerSample) ? { encoding, bytesPerSample, isBigEndian, channels } : undefined;
  const isLittle = () => {
    const enda = findBox(findBox(boxes, 'wave') ?? boxes, 'enda');
    return enda !== undefined && enda.length >= 2 && u16be(enda, 0) === 1;
  };
  switch (type) {
    case 'sowt':
      return pcm('signed', bytesOfNamed(bits), false);
    case 'twos':
      return pcm('signed', bytesOfNamed(bits));
    case 'raw ':
    case 'NONE':
      return bits === 16 ? pcm('signed', 2) : pcm('unsigned', 1);
    case 'in24':
      return pcm('signed', 3, !isLittle());
    case 'in32':
      return pcm('signed', 4, !isLittle());
    case 'fl32':
      return pcm('float', 4, !isLittle());
    case 'fl64':
      return pcm('float', 8, !isLittle());
    case 'alaw':
      return pcm('alaw', 1);
    case 'ulaw':
      return pcm('mulaw', 1);
    case 'lpcm': {
      if (formatFlags & IS_NOT_INTERLEAVED || bits % 8 !== 0) return undefined;
      const encoding = formatFlags & IS_FLOAT ? 'float' : formatFlags & IS_SIGNED ? 'signed' : 'unsigned';
      if (encoding === 'unsigned' && bits !== 8) return undefined;
      return pcm(encoding, bits / 8, (formatFlags & IS_BIG_ENDIAN) !== 0);
    }
    case 'ipcm':
    case 'fpcm': {
      const config = findBox(boxes, 'pcmC');
      if (!config || config.length < 6 || config[5] % 8 !== 0) return undefined;
      return pcm(type === 'ipcm' ? 'signed' : 'float', config[5] / 8, (config[4] & 1) === 0);
    }
    default:
      return undefined;
  }
}

/** Names of codings that are not supported. */
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
 * Parses the first sample entry of a track.
 *
 * @param timescale of the track: the sample rate if the entry has 0, as for rates above 65535 Hz
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

/** One entry of an edit list: plays a span of the media, or silence (ISO/IEC 14496-12 §8.6.6). */
export interface Edit {
  /** Units of the track; −1 for silence. */
  readonly mediaTime: number;
  /** Units of the movie; 0 in the last entry means up to the end of the media. */
  readonly duration: number;
}

export type EditList =
  | { readonly kind: 'edits'; readonly edits: readonly Edit[]; readonly movieTimescale: number }
  /** `fault` completes the sentence "The edit list of the MP4 file …". */
  | { readonly kind: 'unusable'; readonly fault: string };

const MAX_EDITS = 1000;
const EMPTY = -1;
const NORMAL_RATE = 0x10000;

const unusable = (fault: string): EditList => ({ kind: 'unusable', fault });

/** @param body of `elst` @returns undefined if the list is empty or its clock is unknown */
export function parseEdits(body: Uint8Array, movieTimescale: number): EditList | undefined {
  if (body.length < 8 || movieTimescale <= 0) return undefined;
  const isLong = body[0] === 1;
  const entryBytes = isLong ? 20 : 12;
  const count = u32be(body, 4);
  if (count === 0) return undefined;
  if (count > MAX_EDITS) return unusable(`has ${count} entries, more than ${MAX_EDITS}`);
  if (8 + count * entryBytes > body.length) return unusable('is cut short');
  const edits: Edit[] = [];
  const rates: number[] = [];
  let ticks = 0;
  for (let at = 8; edits.length < count; at += entryBytes) {
    const duration = isLong ? i64be(body, at) : u32be(body, at);
    const mediaTime = isLong ? i64be(body, at + 8) : u32be(body, at + 4) | 0;
    if (duration < 0 || mediaTime < EMPTY) return unusable('is damaged');
    ticks += duration;
    edits.push({ mediaTime, duration });
    if (mediaTime !== EMPTY) rates.push(u32be(body, at + entryBytes - 4));
  }
  if (rates.length === 0) return unusable('selects no audio');
  // A rate of 0 in the only entry is an unset field; among several entries it freezes a picture.
  const isNormal = rates.every((rate) => rate === NORMAL_RATE) || (rates.length === 1 && rates[0] === 0);
  if (!isNormal) return unusable('changes the playback speed');
  if (ticks > MAX_SCAN_SECONDS * movieTimescale) return unusable(`lasts longer than ${MAX_SCAN_SECONDS / 3600} hours`);
  return { kind: 'edits', edits, movieTimescale };
}

/**
 * The list of a recording that continues in fragments. A list that was written before the fragments ends with the
 * samples of the index; its last entry is extended to the end.
 *
 * @param media length of the audio before the fragments
 */
export function openEnded(list: EditList, media: { readonly timescale: number; readonly duration: number }): EditList {
  const last = list.kind === 'edits' ? list.edits.at(-1) : undefined;
  if (list.kind !== 'edits' || !last || last.mediaTime === EMPTY || last.duration === 0) return list;
  if (media.timescale <= 0 || media.duration <= 0) return list;
  const endSeconds = last.mediaTime / media.timescale + last.duration / list.movieTimescale;
  const endsWithIndex = endSeconds >= media.duration / media.timescale - 1 / list.movieTimescale;
  return endsWithIndex ? { ...list, edits: [...list.edits.slice(0, -1), { ...last, duration: 0 }] } : list;
}

/**
 * The spans that a list plays, or the reason why it is ignored. The recording is read forward, so a list that repeats
 * or reorders audio is ignored.
 *
 * @param timescale units of the track a second
 * @param start first packets: the list uses the container's times with their rounding (`roundingErrorSamples`)
 */
export function playEdits(
  { edits, movieTimescale }: EditList & { kind: 'edits' },
  timescale: number,
  sampleRateHz: number,
  { constantDuration, packetSamples }: PartStart,
): readonly PlayedSpan[] | { readonly fault: string } {
  const off = constantDuration ? roundingErrorSamples(constantDuration, packetSamples, sampleRateHz) : 0;
  // With a rounding error of more than half a packet, the times are unusable.
  const isPlausible = 2 * Math.abs(off) < packetSamples;
  const rateHz = isPlausible ? (sampleRateHz * packetSamples) / (packetSamples - off) : sampleRateHz;
  // The list is rounded to the clock of the movie, often 1 ms; the end of the media is exact.
  const slackSamples = Math.ceil(rateHz / movieTimescale);
  const last = edits.findLastIndex(({ mediaTime }) => mediaTime !== EMPTY);
  const spans: PlayedSpan[] = [];
  let ticks = 0;
  let passed = 0;
  for (const [i, { mediaTime, duration }] of edits.entries()) {
    // Borders are rounded, not lengths, so that errors do not add up.
    const begin = Math.round((ticks * rateHz) / movieTimescale);
    ticks += duration;
    const samples = Math.round((ticks * rateHz) / movieTimescale) - begin;
    if (mediaTime === EMPTY) {
      spans.push({ samples });
      continue;
    }
    const stated = timescale > 0 ? Math.round((mediaTime * rateHz) / timescale) : 0;
    if (stated < passed - slackSamples) return { fault: 'jumps back' };
    const position = Math.max(stated, passed);
    passed = position + samples;
    if (i === last && duration === 0) spans.push({ position });
    else spans.push({ position, samples, ...(i === last && { slackSamples }) });
  }
  return joined(spans);
}

/** Numbers of samples from iTunes' comment; for HE-AAC at the core rate, which is half. */
export interface GaplessComment {
  readonly delaySamples: number;
  readonly paddingSamples: number;
  readonly recordingSamples: number;
}

/** @param text value of the tag `iTunSMPB`: numbers in hexadecimal */
export function parseGaplessComment(text: string): GaplessComment | undefined {
  const match = /^\s*[0-9a-f]{8}\s+([0-9a-f]{8})\s+([0-9a-f]{8})\s+([0-9a-f]{16})/i.exec(text);
  if (!match) return undefined;
  const [delaySamples, paddingSamples, recordingSamples] = match.slice(1).map((digits) => Number.parseInt(digits, 16));
  return { delaySamples, paddingSamples, recordingSamples };
}
