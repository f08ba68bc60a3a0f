import type { BlockReader } from '../../block-reader.ts';
import { ascii } from '../../bytes.ts';
import type { Container, Part, PartStart, Piece } from '../../container.ts';
import { anotherBehind } from '../../joined.ts';
import { MAX_GAP_SECONDS } from '../../packets/clock.ts';
import { firstReadable } from '../../packets/first-readable.ts';
import { FirstSeconds } from '../../packets/first-seconds.ts';
import { OPUS_RATE_HZ, parseOpusHead } from '../../packets/opus.ts';
import type { TrackCodec } from '../../packets/packet.ts';
import { openTrack } from '../../packets/track.ts';
import { onePiece } from '../../pieces.ts';
import { type AudioResult, fail, ok } from '../../result.ts';
import { withoutEnd } from '../../step-budget.ts';
import type { DecoderPort } from '../../types.ts';
import { type BlocksEnd, type BlockWalk, walkBlocks } from './blocks.ts';
import { codecOfTrack } from './codec.ts';
import { elementsIn, elementsOf, readBody, uintOf } from './ebml.ts';
import * as id from './ids.ts';
import { type MatroskaTrack, parseTracks } from './tracks.ts';

const WHERE = 'The Matroska file';
/** Private data with pictures in it is the longest part of a header. */
const MAX_HEADER_PART_BYTES = 4 << 20;
const DEFAULT_NS_PER_TICK = 1_000_000;
/** Bytes that may have been left out of every packet: writers leave out sync words. */
const MAX_PREFIX_BYTES = 64;
/** Blocks looked at to see which track begins first. */
const FIRST_BLOCKS = 64;

/** Matroska and WebM; of a video its sound. */
export const matroska: Container = {
  format: 'matroska',
  hasMagic: true,

  detect: (head) => head[0] === 0x1a && head[1] === 0x45 && head[2] === 0xdf && head[3] === 0xa3,

  async open(reader, startByte, decoders) {
    const header = await readHeader(reader, startByte);
    if (!header.ok) return header;
    const { audio, trackCount } = header.value;
    const preferred = audio.find(({ isEnabled, isDefault }) => isEnabled && isDefault) ?? audio[0];
    if (!preferred) {
      return trackCount === 0
        ? fail('corrupt', `${WHERE} has no tracks in it.`)
        : fail('no_samples', `${WHERE} has no audio track.`);
    }
    const others = audio.filter((track) => track !== preferred);
    return firstReadable([preferred, ...others], (track) => openSound(reader, header.value, track, decoders));
  },
};

async function openSound(
  reader: BlockReader,
  { played, nsPerTick, firstCluster, endByte }: Header,
  track: MatroskaTrack,
  decoders: DecoderPort,
): Promise<AudioResult<Part>> {
  const { encoding } = track;
  if (encoding.kind === 'encrypted') return fail('unsupported', `${WHERE} is encrypted (DRM), so it cannot be read.`);
  if (encoding.kind === 'compressed') {
    return fail('unsupported', `${WHERE} has compressed packets in its audio track, which is not supported.`);
  }
  if (encoding.kind === 'stripped' && encoding.prefix.length > MAX_PREFIX_BYTES) {
    return fail('corrupt', `${WHERE} has a damaged header: too many bytes were left out of every packet.`);
  }
  const codec = codecOfTrack(track);
  if (!codec.ok) return codec;
  const prefix = encoding.kind === 'stripped' ? encoding.prefix : new Uint8Array(0);
  const walk: BlockWalk = { trackNumber: track.number, nsPerTick, prefix };
  const start = await firstTime(
    reader,
    { ...walk, trackNumber: undefined, prefix: new Uint8Array(0) },
    firstCluster,
    played,
  );
  const opened = await openTrack(reader, decoders, {
    format: 'matroska',
    where: WHERE,
    track: codec.value,
    walk: (faults: BlocksEnd, entry = firstCluster) => walkBlocks(reader, walk, entry, faults),
  });
  if (!opened.ok) return opened;
  const { sampleRateHz: rateHz } = opened.value;
  return ok({
    ...opened.value,
    heard: (first, faults: BlocksEnd) => heardOf(track, codec.value, first, rateHz, start, faults),
    paddingOf: ({ endPadding }) => Math.min(endPadding, rateHz),
    warnings(faults: BlocksEnd) {
      // What a browser records states no size.
      const isCut = endByte === undefined ? faults.isCut === true : endByte > reader.sizeBytes;
      const lostSeconds = ((faults.lostSamples ?? 0) / rateHz).toFixed(1);
      return [
        ...(isCut ? [`${WHERE} ends before it should; the part that is there was used.`] : []),
        ...(faults.hasAnother ? [anotherBehind(WHERE)] : []),
        ...(faults.isEndless ? [withoutEnd(WHERE)] : []),
        ...(faults.lostSamples
          ? [`The beginning of the Matroska file, ${lostSeconds} s of it, is damaged and was taken as silence.`]
          : []),
      ];
    },
  });
}

interface Header {
  readonly audio: readonly MatroskaTrack[];
  /** Numbers of the tracks of sound and pictures. */
  readonly played: ReadonlySet<number>;
  readonly trackCount: number;
  readonly nsPerTick: number;
  readonly firstCluster: number;
  /** Where the recording ends, as it says itself; undefined where it does not. */
  readonly endByte: number | undefined;
}

async function readHeader(reader: BlockReader, startByte: number): Promise<AudioResult<Header>> {
  const damaged = fail('corrupt', 'The header of the Matroska file is damaged.');
  for await (const top of elementsOf(reader, startByte, reader.sizeBytes)) {
    if (top.id === id.EBML) {
      const fields = [...elementsIn(await readBody(reader, top, 1024))];
      const docType = fields.find((field) => field.id === id.DOC_TYPE);
      const name = docType ? ascii(docType.body, 0, 32).replace(/\0.*$/s, '') : 'matroska';
      if (name !== 'matroska' && name !== 'webm') {
        return fail(
          'unsupported',
          `The file is an EBML file of the kind "${name.replace(/[^\x20-\x7e]/g, '?')}", which is not supported.`,
        );
      }
    }
    if (top.id !== id.SEGMENT) continue;
    const endByte = top.size === undefined ? undefined : top.bodyStart + top.size;
    let tracks: ReturnType<typeof parseTracks> | undefined;
    let nsPerTick = DEFAULT_NS_PER_TICK;
    let firstCluster: number | undefined;
    let tracksEnd: number | undefined;
    for await (const part of elementsOf(reader, top.bodyStart, reader.sizeBytes)) {
      if (part.id === id.INFO) {
        for (const field of elementsIn(await readBody(reader, part, MAX_HEADER_PART_BYTES))) {
          if (field.id === id.TIMESTAMP_SCALE) nsPerTick = uintOf(field.body) || DEFAULT_NS_PER_TICK;
        }
      } else if (part.id === id.TRACKS) {
        tracks ??= parseTracks(await readBody(reader, part, MAX_HEADER_PART_BYTES));
        tracksEnd ??= part.size === undefined ? undefined : part.bodyStart + part.size;
      } else if (part.id === id.CLUSTER) firstCluster ??= part.start;
      if (tracks && firstCluster !== undefined) break;
    }
    if (!tracks) return damaged;
    // Where none follows there may be a hole, after which the walk finds the next one.
    firstCluster ??= tracksEnd;
    if (firstCluster === undefined) return fail('no_samples', `${WHERE} has no samples in it.`);
    return ok({ ...tracks, nsPerTick, firstCluster, endByte });
  }
  return damaged;
}

/** Where a recording begins, by its clock. */
interface Start {
  readonly seconds: number;
  /** Whether what comes first is damaged. */
  readonly isDamaged: boolean;
}

/**
 * Where players begin: the earliest of the times that the tracks of sound and pictures begin with, by the first blocks;
 * 0 where what is in front of them is damaged.
 */
async function firstTime(
  reader: BlockReader,
  walk: BlockWalk,
  firstCluster: number,
  played: ReadonlySet<number>,
): Promise<Start> {
  const end: BlocksEnd = {};
  const starts = new Map<number, FirstSeconds>();
  for await (const run of walkBlocks(reader, walk, firstCluster, end)) {
    for (const { seconds, trackNumber: number } of run.packets.slice(0, FIRST_BLOCKS)) {
      if (number === undefined || !played.has(number)) continue;
      const start = starts.get(number) ?? new FirstSeconds();
      starts.set(number, start);
      start.pass(seconds);
    }
    break;
  }
  if (end.isLateStart) return { seconds: 0, isDamaged: true };
  return { seconds: Math.min(...[...starts.values()].map(({ seconds }) => seconds)), isDamaged: false };
}

function heardOf(
  track: MatroskaTrack,
  codec: TrackCodec,
  { firstSeconds = 0 }: PartStart,
  rateHz: number,
  start: Start,
  faults: BlocksEnd,
): readonly Piece[] {
  // Opus says it itself, and some writers count the other field at the rate of the encoder's input.
  const preSkip = codec.codec === 'opus' ? parseOpusHead(codec.extraData)?.preSkip : undefined;
  const delaySeconds = preSkip === undefined ? track.codecDelayNs / 1e9 : preSkip / OPUS_RATE_HZ;
  const lateSeconds = Math.max(0, firstSeconds - start.seconds);
  const lead = lateSeconds <= MAX_GAP_SECONDS ? Math.round(lateSeconds * rateHz) : 0;
  const delay = delaySeconds <= 1 ? Math.round(delaySeconds * rateHz) : 0;
  if (start.isDamaged) faults.lostSamples = lead;
  return onePiece(delay, undefined, lead);
}
