import { type AudioResult, type DecoderPort, fail, ok } from '../audio-ports.ts';
import type { BlockReader } from '../block-reader.ts';
import { hasAscii, u16be, u32be } from '../bytes.ts';
import { MAX_GAP_SECONDS } from '../clock.ts';
import {
  OPUS_RATE_HZ,
  parseOpusHead,
  parseVorbisIdentification,
  parseVorbisModes,
  vorbisPrivateData,
} from '../codec-config.ts';
import {
  type Container,
  endlessWalkWarning,
  type Part,
  type PartStart,
  type PlayedSpan,
  type TrackCodec,
} from '../container.ts';
import { oneSpan } from '../playback.ts';
import { openTrack } from '../track.ts';
import { parseStreamInfo, STREAM_INFO_BYTES } from './flac.ts';
import {
  MAX_FALSE_PAGES,
  type OggFaults,
  PacketAssembler,
  type Page,
  type PagesEnd,
  pagesOf,
  walkOgg,
} from './ogg-pages.ts';

/** Meaning of the positions of a Theora stream (Theora specification, 6.2 and A.2.3). */
interface FrameClock {
  readonly serial: number;
  readonly framesPerSecond: number;
  /** Bits by which the number of the key frame is shifted; the lower bits count the frames since then. */
  readonly shift: number;
}

const HEADER_BYTES = 42;
/** Pages that are searched for the first picture. */
const MAX_PAGES = 1000;

/** Time of the first picture, in seconds; undefined if the recording at `from` is no Theora video. */
async function videoStart(reader: BlockReader, from: number): Promise<number | undefined> {
  let clock: FrameClock | undefined;
  let pages = 0;
  let hasBegun = false;
  for await (const page of pagesOf(reader, from)) {
    if (++pages > MAX_PAGES) return undefined;
    // The next recording begins here. Walking on would read it once for each recording before it.
    if (page.isFirst && hasBegun) return undefined;
    hasBegun ||= !page.isFirst;
    if (page.isFirst) clock ??= await clockOf(reader, page);
    // All streams of a recording begin before any of them continues.
    else if (!clock) return undefined;
    // The position of header pages is 0.
    else if (page.serial === clock.serial && page.granule) return pageStart(clock, page.granule, page.segments);
  }
  return undefined;
}

async function clockOf(reader: BlockReader, page: Page): Promise<FrameClock | undefined> {
  const head = await reader.peek(page.bodyStart, HEADER_BYTES);
  if (page.end - page.bodyStart < HEADER_BYTES || head[0] !== 0x80 || !hasAscii(head, 1, 'theora')) return undefined;
  const framesPerSecond = u32be(head, 22) / u32be(head, 26);
  if (!(framesPerSecond > 0) || !Number.isFinite(framesPerSecond)) return undefined;
  return { serial: page.serial, framesPerSecond, shift: ((head[40] & 3) << 3) | (head[41] >> 5) };
}

/** A page states the number of frames at its end; each frame is a packet. */
function pageStart({ framesPerSecond, shift }: FrameClock, granule: number, segments: Uint8Array): number {
  const frames = Math.floor(granule / 2 ** shift) + (granule % 2 ** shift);
  const inPage = segments.filter((length) => length < 255).length;
  return Math.max(0, frames - inPage) / framesPerSecond;
}

interface OggStream {
  readonly serial: number;
  readonly codec: TrackCodec;
  /** First page of its recording, which may have other streams. */
  readonly startByte: number;
  /** First page after the headers. */
  readonly firstByte: number;
}

/** Names of codecs that are not decoded, by the start of the first packet. */
const UNSUPPORTED_CODECS: readonly (readonly [magic: string, name: string])[] = [
  ['Speex   ', 'Speex'],
  ['PCM     ', 'uncompressed samples'],
  ['CELT    ', 'CELT'],
];

const NO_BYTES = new Uint8Array(0);

type Kind = 'vorbis' | 'opus' | 'flac';

interface FirstPacket {
  readonly serial: number;
  readonly kind: Kind;
  readonly bytes: Uint8Array;
  readonly startByte: number;
}

/** Pages that are searched for headers; a picture in the comments takes many. */
const MAX_HEADER_PAGES = 1000;
const MAX_HEADER_PACKETS = 512;

/**
 * Finds the first audio stream at or after `from`, and reads its headers. A recording with incomplete headers has no
 * samples and is skipped.
 */
export async function readStream(
  reader: BlockReader,
  from: number,
  end: PagesEnd = {},
): Promise<AudioResult<OggStream>> {
  let first: FirstPacket | undefined;
  let assembler: PacketAssembler | undefined;
  let unsupported: string | undefined;
  let headers: Uint8Array[] = [];
  let pages = 0;
  let startByte = from;
  let isStart = false;
  for await (const page of pagesOf(reader, from, end)) {
    if (++pages > MAX_HEADER_PAGES) break;
    // All streams of a recording begin before any of them continues, each once.
    const isNext = page.isFirst && (!isStart || page.serial === first?.serial);
    if (isNext) startByte = page.start;
    isStart = page.isFirst;
    if (page.isFirst && (!first || isNext)) {
      const candidate = new PacketAssembler(page.serial, true);
      const bytes = (await candidate.add(reader, page))[0]?.bytes ?? NO_BYTES;
      const kind = kindOf(bytes);
      if (kind) {
        first = { serial: page.serial, kind, bytes, startByte };
        assembler = candidate;
        headers = [];
      } else unsupported ??= UNSUPPORTED_CODECS.find(([magic]) => hasAscii(bytes, 0, magic))?.[1];
    } else if (first && assembler && page.serial === first.serial) {
      const packets = (await assembler.add(reader, page)).map((packet) => packet.bytes ?? NO_BYTES);
      const isAudio = packets.some((packet) => first?.kind === 'flac' && packet[0] === 0xff);
      // Opus and FLAC need only the number of headers: comments with pictures may be too long to be kept.
      headers.push(...(first.kind === 'vorbis' ? packets : packets.map(() => NO_BYTES)));
      const isEnd = isAudio || headers.length >= headerPackets(first);
      if (isEnd) return finish(first, headers, isAudio ? page.start : page.end);
    }
  }
  if (first || end.isDamaged) return fail('corrupt', 'The headers of the OGG file are damaged.');
  return unsupported
    ? fail('unsupported', `The OGG file holds audio in ${unsupported}, which is not supported.`)
    : fail('no_samples', 'The OGG file has no audio track that is known.');
}

function kindOf(packet: Uint8Array): Kind | undefined {
  if (packet[0] === 1 && hasAscii(packet, 1, 'vorbis')) return 'vorbis';
  if (hasAscii(packet, 0, 'OpusHead')) return 'opus';
  if (packet[0] === 0x7f && hasAscii(packet, 1, 'FLAC')) return 'flac';
  return undefined;
}

/** Header packets after the first one. */
function headerPackets({ kind, bytes }: FirstPacket): number {
  if (kind === 'opus') return 1;
  if (kind === 'vorbis') return 2;
  return (bytes.length < 9 ? 0 : u16be(bytes, 7)) || MAX_HEADER_PACKETS;
}

function finish(first: FirstPacket, headers: readonly Uint8Array[], firstByte: number): AudioResult<OggStream> {
  const { serial, kind, bytes, startByte } = first;
  const damaged = fail('corrupt', 'The headers of the OGG file are damaged.');
  const stream = (sampleRateHz: number, channels: number, extraData: Uint8Array) =>
    ok({ serial, startByte, firstByte, codec: { codec: kind, sampleRateHz, channels, extraData: extraData.slice() } });
  switch (kind) {
    case 'opus': {
      const head = parseOpusHead(bytes);
      return head ? stream(OPUS_RATE_HZ, head.channels, bytes) : damaged;
    }
    case 'vorbis': {
      const identification = parseVorbisIdentification(bytes);
      const data = headers.length >= 2 ? vorbisPrivateData(bytes, headers[1]) : undefined;
      if (!identification || !data || !parseVorbisModes(data)) return damaged;
      return stream(identification.sampleRateHz, identification.channels, data);
    }
    case 'flac': {
      const data = bytes.subarray(17, 17 + STREAM_INFO_BYTES);
      if (data.length < STREAM_INFO_BYTES) return damaged;
      const info = parseStreamInfo(data);
      return stream(info.sampleRateHz, info.channels, data);
    }
  }
}

const DISPLAY_NAME = 'The OGG file';
const DAMAGED = 'Pages of the OGG file whose checksums are wrong were left out.';
const LATER_PART = 'A later part of the OGG file could not be read and was left out.';
const OTHER_RATE = 'A later part of the OGG file has another sample rate and was left out.';
/** Recordings in one file: a day of internet radio with one recording for each song has some 400. */
const MAX_LINKS = 1024;
const TOO_MANY = `${DISPLAY_NAME} holds more than ${MAX_LINKS} recordings one after another; the rest was left out.`;

/** State that all recordings of a file share. */
interface OggFile {
  readonly reader: BlockReader;
  readonly decoders: DecoderPort;
  /** Rate of the first recording. */
  rateHz?: number;
  links: number;
  falsePages: number;
}

/** OGG with Vorbis, Opus or FLAC, also chained recordings; of a video its audio. */
export const ogg: Container = {
  format: 'ogg',
  hasMagic: true,
  detect: (head) => hasAscii(head, 0, 'OggS'),
  open: (reader, startByte, decoders) => openLink({ reader, decoders, links: 0, falsePages: 0 }, startByte, {}),
};

/**
 * Opens the recording at `from`, or the first after it that has samples: a station that changes its title twice in
 * quick succession writes headers without audio.
 *
 * @param losses `isLost` is set if samples of a skipped recording were lost
 */
async function openLink(file: OggFile, from: number, losses: { isLost?: boolean }): Promise<AudioResult<Part>> {
  const { reader, decoders } = file;
  let empty = fail('no_samples', `${DISPLAY_NAME} has no samples in it.`);
  for (let next: number | undefined = from; next !== undefined && file.links++ < MAX_LINKS; ) {
    const startByte: number = next;
    const head: PagesEnd = {};
    const stream: AudioResult<OggStream> = await readStream(reader, startByte, head);
    file.falsePages += head.falsePages ?? 0;
    if (!stream.ok) return stream;
    const { serial, codec: track, firstByte } = stream.value;
    const trial: OggFaults = {};
    const before = { links: file.links, earlierFalsePages: file.falsePages };
    const walk = (faults: OggFaults, entry = firstByte) => {
      Object.assign(faults, before, { ...faults });
      return walkOgg(reader, serial, entry, faults);
    };
    const opened: AudioResult<Part> = await openTrack(reader, decoders, {
      format: 'ogg',
      displayName: DISPLAY_NAME,
      track,
      walk,
      trial,
    });
    if (opened.ok) return ok(await linkOf(file, stream.value, startByte, opened.value));
    if (opened.error.kind !== 'no_samples') return opened;
    losses.isLost ||= (trial.isCut || trial.isDamaged || trial.isEndless) === true;
    file.falsePages += trial.falsePages ?? 0;
    empty = opened;
    next = file.falsePages > MAX_FALSE_PAGES ? undefined : trial.nextRecording;
  }
  return empty;
}

async function linkOf(file: OggFile, stream: OggStream, startByte: number, part: Part): Promise<Part> {
  const rateHz = part.sampleRateHz;
  file.rateHz ??= rateHz;
  const videoSeconds = await videoStart(file.reader, stream.startByte);
  return {
    ...part,
    startByte,
    playedSpans: (start, faults) => playedSpansOf(stream, start, rateHz, videoSeconds, faults),
    paddingOf: ({ endPadding }, faults: OggFaults) => faults.onlyPadding ?? endPadding,
    warnings: (faults) => warningsOf(faults, rateHz),
    next: (faults) => nextLink(file, faults),
    reopen: async (byte) => {
      const link = await openLink(file, byte, {});
      return link.ok ? link.value : undefined;
    },
  };
}

/** The next recording of a chained file. */
async function nextLink(file: OggFile, faults: OggFaults): Promise<{ part?: Part; warning?: string }> {
  const from = faults.nextRecording;
  file.links = faults.links ?? file.links;
  file.falsePages = (faults.earlierFalsePages ?? 0) + (faults.falsePages ?? 0);
  if (from === undefined) return {};
  if (file.falsePages > MAX_FALSE_PAGES) return { warning: LATER_PART };
  const losses: { isLost?: boolean } = {};
  const link = await openLink(file, from, losses);
  const warning = file.links > MAX_LINKS ? TOO_MANY : losses.isLost ? LATER_PART : undefined;
  if (!link.ok) return { warning: warning ?? (link.error.kind === 'no_samples' ? undefined : LATER_PART) };
  if (link.value.sampleRateHz !== file.rateHz) return { warning: OTHER_RATE };
  return { part: link.value, warning };
}

/**
 * The last page states where the recording ends; in Vorbis the first one states where it begins (Vorbis I, appendix
 * A.2). In a video the first page also states how late the audio is. Without video a start above 0 means that a live
 * stream was recorded from the middle, unless pages before it are lost.
 */
function playedSpansOf(
  { codec }: OggStream,
  start: PartStart,
  rateHz: number,
  videoSeconds: number | undefined,
  faults: OggFaults,
): readonly PlayedSpan[] {
  const { startPadding, isOneRun } = start;
  const preSkip = codec.codec === 'opus' ? (parseOpusHead(codec.extraData)?.preSkip ?? 0) : 0;
  // In a recording of one page the surplus is at the end.
  if (isOneRun) faults.onlyPadding = Math.max(0, startPadding);
  const delay = codec.codec === 'vorbis' && !isOneRun ? Math.max(0, startPadding) : preSkip;
  const beginSeconds = videoSeconds ?? (faults.isLateStart ? 0 : undefined);
  const lateSamples = beginSeconds === undefined ? 0 : Math.round(-startPadding - beginSeconds * rateHz);
  const lead = lateSamples > 0 && lateSamples <= MAX_GAP_SECONDS * rateHz ? lateSamples : 0;
  if (faults.isLateStart) faults.lostSamples = lead;
  return oneSpan(delay, undefined, lead);
}

function warningsOf(faults: OggFaults, rateHz: number): readonly string[] {
  const lostSeconds = ((faults.lostSamples ?? 0) / rateHz).toFixed(1);
  return [
    ...(faults.isCut ? [`${DISPLAY_NAME} is incomplete; the available part was used.`] : []),
    ...(faults.isDamaged ? [DAMAGED] : []),
    ...(faults.isEndless ? [endlessWalkWarning(DISPLAY_NAME)] : []),
    ...(faults.lostSamples
      ? [`The beginning of the OGG file, ${lostSeconds} s of it, is damaged and was taken as silence.`]
      : []),
  ];
}
