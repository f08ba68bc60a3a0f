import { type AudioResult, type DecoderPort, fail, ok, SeekNeeded } from '../audio-ports.ts';
import { BLOCK_BYTES, type BlockReader } from '../block-reader.ts';
import { ascii, hasAscii, i64be, u32be } from '../bytes.ts';
import { parseOpusHead } from '../codec-config.ts';
import {
  type Container,
  type PacketWalk,
  type Part,
  type PartStart,
  type PlayedSpan,
  type TrackCodec,
  trailingFileWarning,
} from '../container.ts';
import { joined, oneSpan } from '../playback.ts';
import { firstReadable, openTrack } from '../track.ts';
import { familyOf } from './amr.ts';
import {
  type Box,
  boxesIn,
  boxesOf,
  childrenOf,
  codecOfEntry,
  type EditList,
  findBox,
  type GaplessComment,
  openEnded,
  parseEdits,
  parseGaplessComment,
  playEdits,
  readBody,
} from './mp4-boxes.ts';
import {
  type FragmentDefaults,
  type FragmentFaults,
  type FragmentStarts,
  type FragmentWalk,
  fragmentStarts,
  lateSeconds,
  type TrackClock,
  walkFragments,
} from './mp4-fragments.ts';
import {
  amrFrames,
  type Reuse,
  type SampleTables,
  type SampleWalk,
  type TableFaults,
  walkSamples,
  withoutReuse,
} from './mp4-samples.ts';

/** One track, as the `moov` box describes it. */
interface Mp4Track {
  readonly id: number;
  readonly isEnabled: boolean;
  readonly timescale: number;
  /** Units of `timescale`, without fragments; 0 if unknown. */
  readonly duration: number;
  /** Entries of `stsd` with their headers. */
  readonly sampleEntries: readonly Uint8Array[];
  readonly tables: SampleTables | undefined;
  readonly edits: EditList | undefined;
}

interface Movie {
  readonly audio: readonly Mp4Track[];
  readonly trackCount: number;
  /** Clocks of all audio and video tracks of a recording in fragments; otherwise empty. */
  readonly clocks: readonly TrackClock[];
  readonly isFragmented: boolean;
  readonly defaults: ReadonlyMap<number, FragmentDefaults>;
  readonly gapless: GaplessComment | undefined;
}

const MAX_TRACKS = 100;
/** Descriptions of one track; joined recordings have several. */
const MAX_ENTRIES = 64;
/** Bytes of the sample entries that are read; private data are short. */
const MAX_ENTRY_BYTES = 1 << 16;
const MAX_TAG_BYTES = 1 << 16;

/** Reads the audio tracks of a `moov` box. The tables of packets are read later. */
async function readMovie(reader: BlockReader, moov: Box): Promise<Movie> {
  const audio: Mp4Track[] = [];
  const others: Box[] = [];
  const defaults = new Map<number, FragmentDefaults>();
  let movieTimescale = 0;
  let trackCount = 0;
  let isFragmented = false;
  let gapless: GaplessComment | undefined;
  for await (const box of boxesOf(reader, moov.bodyStart, moov.end)) {
    if (box.type === 'mvhd') movieTimescale = timescaleOf(await readBody(reader, box, 32));
    else if (box.type === 'trak' && ++trackCount <= MAX_TRACKS) {
      const track = await readTrack(reader, box, movieTimescale);
      if (track) audio.push(track);
      else others.push(box);
    } else if (box.type === 'mvex') {
      isFragmented = true;
      for (const trex of boxesInBody(await readBody(reader, box, MAX_TAG_BYTES), 'trex')) {
        if (trex.length < 24 || defaults.size >= MAX_TRACKS) continue;
        defaults.set(u32be(trex, 4), {
          description: u32be(trex, 8),
          duration: u32be(trex, 12),
          size: u32be(trex, 16),
        });
      }
    } else if (box.type === 'udta') gapless = await readGapless(reader, box);
  }
  const clocks = isFragmented ? await clocksOf(reader, audio, others, movieTimescale) : [];
  return { audio, trackCount, clocks, isFragmented, defaults, gapless };
}

async function clocksOf(
  reader: BlockReader,
  audio: readonly Mp4Track[],
  others: readonly Box[],
  movieTimescale: number,
): Promise<readonly TrackClock[]> {
  const clocks = audio.map(clockOf);
  for (const trak of others) {
    const pictures = await readTrack(reader, trak, movieTimescale, 'vide');
    if (pictures) clocks.push(clockOf(pictures));
  }
  return clocks;
}

const clockOf = ({ id, timescale, edits, tables }: Mp4Track): TrackClock => ({
  id,
  timescale,
  edits,
  isTabled: tables !== undefined && tables.sizes.count > 0,
});

function* boxesInBody(body: Uint8Array, type: string): Generator<Uint8Array> {
  for (const box of boxesIn(body)) if (box.type === type) yield body.subarray(box.bodyStart, box.end);
}

/** Units a second, from `mvhd` or `mdhd`. */
const timescaleOf = (body: Uint8Array): number => (body.length < 24 ? 0 : u32be(body, body[0] === 1 ? 20 : 12));

/** Units of the timescale. @param body of `mdhd` */
function durationOf(body: Uint8Array): number {
  if (body.length < 24 || (body[0] === 1 && body.length < 32)) return 0;
  return body[0] === 1 ? Math.max(0, i64be(body, 24)) : u32be(body, 16);
}

/** @param handler type of track; undefined is returned for other types */
async function readTrack(
  reader: BlockReader,
  trak: Box,
  movieTimescale: number,
  handler = 'soun',
): Promise<Mp4Track | undefined> {
  const inTrack = await childrenOf(reader, trak);
  const mdia = inTrack.get('mdia');
  const inMedia = mdia ? await childrenOf(reader, mdia) : undefined;
  const [mdhd, hdlr, minf] = ['mdhd', 'hdlr', 'minf'].map((type) => inMedia?.get(type));
  if (!mdhd || !hdlr || !minf || !hasAscii(await readBody(reader, hdlr, 12), 8, handler)) return undefined;
  const stbl = (await childrenOf(reader, minf)).get('stbl');
  const table = stbl ? await childrenOf(reader, stbl) : undefined;
  const stsd = table?.get('stsd');
  if (!table || !stsd) return undefined;
  const description = await readBody(reader, stsd, MAX_ENTRY_BYTES);
  const entries = [...boxesIn(description, 8)].slice(0, MAX_ENTRIES);
  const tkhd = inTrack.get('tkhd');
  const media = await readBody(reader, mdhd, 32);
  const header = tkhd ? await readBody(reader, tkhd, 24) : new Uint8Array(24);
  const edts = inTrack.get('edts');
  const elst = edts ? (await childrenOf(reader, edts)).get('elst') : undefined;
  return {
    id: header.length < 24 ? 0 : u32be(header, header[0] === 1 ? 20 : 12),
    isEnabled: (header[3] & 1) === 1,
    timescale: timescaleOf(media),
    duration: durationOf(media),
    sampleEntries: entries.map(({ start, end }) => description.subarray(start, end)),
    tables: await readTables(reader, table),
    edits: elst ? parseEdits(await readBody(reader, elst, MAX_TAG_BYTES), movieTimescale) : undefined,
  };
}

/** Positions of the tables, with counts limited to the size of their boxes. */
async function readTables(reader: BlockReader, table: ReadonlyMap<string, Box>): Promise<SampleTables | undefined> {
  const [stts, stsc, stsz] = [table.get('stts'), table.get('stsc'), table.get('stsz') ?? table.get('stz2')];
  const stco = table.get('stco') ?? table.get('co64');
  if (!stts || !stsc || !stsz || !stco) return undefined;
  const at = async (box: Box, entryBytes: number, headBytes = 8) => {
    const head = await readBody(reader, box, headBytes);
    const room = Math.floor((box.end - box.bodyStart - headBytes) / entryBytes);
    const count = head.length < headBytes ? 0 : Math.max(0, Math.min(u32be(head, headBytes - 4), room));
    return { offset: box.bodyStart + headBytes, count };
  };
  const sizeHead = await readBody(reader, stsz, 12);
  if (sizeHead.length < 12) return undefined;
  const isCompact = stsz.type === 'stz2';
  const constant = isCompact ? 0 : u32be(sizeHead, 4);
  const fieldBits = isCompact ? sizeHead[7] : 32;
  if (![4, 8, 16, 32].includes(fieldBits)) return undefined;
  const sizes = constant > 0 ? { offset: 0, count: u32be(sizeHead, 8) } : await at(stsz, fieldBits / 8, 12);
  return {
    times: await at(stts, 8),
    runs: await at(stsc, 12),
    sizes: { ...sizes, constant, fieldBits },
    chunks: { ...(await at(stco, stco.type === 'co64' ? 8 : 4)), isLong: stco.type === 'co64' },
  };
}

/** The tag `iTunSMPB` in the movie's user data. */
async function readGapless(reader: BlockReader, udta: Box): Promise<GaplessComment | undefined> {
  const meta = (await childrenOf(reader, udta)).get('meta');
  const ilst = meta ? (await childrenOf(reader, meta, 4)).get('ilst') : undefined;
  if (!ilst) return undefined;
  for await (const item of boxesOf(reader, ilst.bodyStart, ilst.end)) {
    if (item.type !== '----') continue;
    const body = await readBody(reader, item, MAX_TAG_BYTES);
    const name = findBox(body, 'name');
    const data = findBox(body, 'data');
    if (name && data && hasAscii(name, 4, 'iTunSMPB')) return parseGaplessComment(ascii(data, 8, data.length));
  }
  return undefined;
}

/** Coding of the packets of a track. */
interface Descriptions {
  readonly codec: TrackCodec;
  /** Numbers, from 1, of descriptions of another coding; their packets are left out. */
  readonly excluded: readonly number[];
}

/**
 * A track may have several descriptions (ISO/IEC 14496-12 §8.5.2), each for some of its packets, if recordings were
 * joined without coding them again. The description of the first packets is used.
 *
 * @param inFragments the default description of packets in fragments
 */
async function readDescriptions(
  reader: BlockReader,
  { sampleEntries, tables, timescale }: Mp4Track,
  inFragments = 1,
): Promise<AudioResult<Descriptions>> {
  let first = 1;
  if (sampleEntries.length > 1) {
    const isTabled = tables !== undefined && tables.sizes.count > 0 && tables.runs.count > 0;
    const run = isTabled ? (await reader.peekTable(tables.runs.offset, 12)).slice(0, 12) : undefined;
    first = run?.length === 12 ? u32be(run, 8) : inFragments;
  }
  const own = sampleEntries[first - 1] ?? sampleEntries[0] ?? new Uint8Array(0);
  const codec = codecOfEntry(own, timescale);
  if (!codec.ok) return codec;
  const excluded: number[] = [];
  for (const [i, entry] of sampleEntries.entries()) {
    if (entry === own) continue;
    const other = codecOfEntry(entry, timescale);
    if (!other.ok || codingOf(other.value) !== codingOf(codec.value)) excluded.push(i + 1);
  }
  return ok({ codec: codec.value, excluded });
}

/** Bytes of object type, rate and channels of AAC; the packets repeat the rest of the configuration. */
const AAC_BYTES = 2;

const codingOf = (track: TrackCodec): string =>
  JSON.stringify({
    ...track,
    extraData: [...track.extraData.subarray(0, track.codec === 'aac' ? AAC_BYTES : undefined)],
  });

/** The packets of the track: from tables, from fragments, or from tables and then fragments. */
interface TrackWalk {
  readonly samples?: SampleWalk;
  readonly fragments?: FragmentWalk;
}

/** Faults and facts that a walk found. */
type Mp4Faults = FragmentFaults &
  TableFaults &
  Reuse & {
    /** Whether the end is taken from iTunes' comment. */
    isGapless?: boolean;
    /** Reason why the edit list was ignored, for the warning. */
    editFault?: string;
  };

/** First boxes of a file of this family: distinct names, and words that a text may contain. */
const FIRST_BOXES = new Set(['ftyp', 'styp', 'moov', 'mdat', 'moof', 'sidx']);
const FIRST_WORDS = new Set(['free', 'skip', 'wide', 'pnot']);

/** Longest padding after the recording that the times of the packets may state. */
const MAX_PADDING_SECONDS = 1;

/** Photos use the same boxes; an animated one has an index like a recording. */
const IMAGE_BRANDS = new Set(['heic', 'heix', 'heim', 'heis', 'hevc', 'hevx', 'mif1', 'msf1', 'avif', 'avis']);

const DISPLAY_NAME = 'The MP4 file';
const OTHERS = 'Parts of the audio of the MP4 file have another coding than its beginning and were left out.';
const DAMAGED = 'Parts of the MP4 file are damaged and were left out.';
const ENDLESS = 'The MP4 file plays the same bytes repeatedly; the rest was left out.';
/** Boxes after the index that are searched for another one; some writers write a box for each chunk. */
const MAX_BOXES_AFTER_INDEX = 1000;

/** MP4, M4A, QuickTime and 3GP, also in fragments; of a video its audio. */
export const mp4: Container = {
  format: 'mp4',
  hasMagic: true,

  detect(head) {
    const type = ascii(head, 4, 8);
    // In a text the length before the word would consist of letters, which is more than 512 MB.
    return FIRST_BOXES.has(type) || (FIRST_WORDS.has(type) && head[0] < 0x20);
  },

  async open(reader, startByte, decoders) {
    const found = await findMovie(reader, startByte);
    if (!found.ok) return found;
    const { movie, end } = found.value;
    const preferred = movie.audio.find(({ isEnabled }) => isEnabled) ?? movie.audio[0];
    if (!preferred) {
      return movie.trackCount === 0
        ? fail('corrupt', 'The MP4 file has no tracks in it.')
        : fail('no_samples', 'The MP4 file has no audio track.');
    }
    const others = movie.audio.filter((track) => track !== preferred);
    return firstReadable([preferred, ...others], (track) => openMovie(reader, decoders, movie, track, end));
  },
};

/** @param entry a packet's number in the tables; larger numbers are fragments (`FragmentWalk.tabled`) */
function walkTrack(
  reader: BlockReader,
  walk: TrackWalk,
  { codec }: TrackCodec,
  entry: number,
  faults: Mp4Faults,
): PacketWalk {
  const packets = withoutReuse(walkPackets(reader, walk, entry, faults), reader.sizeBytes, faults);
  return codec === 'amr-nb' || codec === 'amr-wb' ? amrFrames(reader, packets, familyOf(codec)) : packets;
}

async function* walkPackets(
  reader: BlockReader,
  { samples, fragments }: TrackWalk,
  entry: number,
  faults: Mp4Faults,
): PacketWalk {
  if (samples && entry < samples.tables.sizes.count) yield* walkSamples(reader, samples, entry, faults);
  if (fragments) yield* walkFragments(reader, fragments, entry, faults);
}

async function findMovie(reader: BlockReader, startByte: number): Promise<AudioResult<{ movie: Movie; end: number }>> {
  let last: Box | undefined;
  let isImage = false;
  for await (const box of boxesOf(reader, startByte, reader.sizeBytes)) {
    last = box;
    // Without seeking, an index after the packets would be found only by reading all packets first.
    if (box.type === 'mdat' && reader.isOneWay(box.start, box.end))
      throw new SeekNeeded('the index is after the packets');
    if (box.type === 'ftyp') isImage = IMAGE_BRANDS.has(ascii(await readBody(reader, box, 4), 0, 4));
    if (box.type === 'moof') {
      return fail('corrupt', 'The MP4 file is a fragment without its header (moov), so it cannot be read.');
    }
    if (box.type !== 'moov') continue;
    isImage = false;
    if (box.isCut) break;
    return ok({ movie: await readMovie(reader, box), end: box.end });
  }
  if (isImage) return fail('not_audio', 'The file is a HEIC or AVIF image, not audio.');
  const why = last?.isCut ? 'the end of the file is missing' : 'the recording was not finished';
  return fail('corrupt', `The MP4 file has no index (moov), so it cannot be read; ${why}.`);
}

async function openMovie(
  reader: BlockReader,
  decoders: DecoderPort,
  movie: Movie,
  track: Mp4Track,
  movieEnd: number,
): Promise<AudioResult<Part>> {
  const described = await readDescriptions(reader, track, movie.defaults.get(track.id)?.description);
  if (!described.ok) return described;
  const { codec, excluded } = described.value;
  const walk = walkOf(movie, track, movieEnd, codec.pcm ? codec.pcm.bytesPerSample * codec.channels : 0, excluded);
  if (!walk) return fail('corrupt', 'The MP4 file lacks the tables of its audio track.');
  const { samples, fragments } = walk;
  const boxesEnd = await nearBoxesEnd(reader, movieEnd);
  const starts: FragmentStarts = fragments ? await fragmentStarts(reader, fragments, movie.clocks.length) : new Map();
  const opened = await openTrack(reader, decoders, {
    format: 'mp4',
    displayName: DISPLAY_NAME,
    track: codec,
    walk: (faults: Mp4Faults, entry = 0) => walkTrack(reader, walk, codec, entry, faults),
  });
  if (!opened.ok) return opened;
  const { sampleRateHz: rateHz } = opened.value;
  const tabled = fragments ? undefined : samples?.tables.sizes.count;
  const edits = track.edits && movie.isFragmented ? openEnded(track.edits, track) : track.edits;
  return ok({
    ...opened.value,
    playedSpans(start: PartStart, faults: Mp4Faults): readonly PlayedSpan[] {
      if (edits?.kind === 'edits') {
        const played = playEdits(edits, track.timescale, rateHz, start);
        if (!('fault' in played)) return played;
        faults.editFault = played.fault;
      } else if (edits?.kind === 'unusable') faults.editFault = edits.fault;
      const gapless = movie.gapless && tabled && gaplessSpans(movie.gapless, tabled * start.packetSamples);
      faults.isGapless = Boolean(gapless);
      const lead = Math.round(lateSeconds(clockOf(track), movie.clocks, starts) * rateHz);
      return joined([{ samples: lead }, ...(gapless || oneSpan(preSkipOf(codec)))]);
    },
    // A last packet whose duration is shorter than its decoded samples ends in padding.
    paddingOf: ({ endPadding }, faults: Mp4Faults) =>
      faults.isGapless ? 0 : Math.min(endPadding, MAX_PADDING_SECONDS * rateHz),
    async warnings(faults: Mp4Faults) {
      const lacksPackets = samples !== undefined && (faults.tableEnd ?? 0) < samples.tables.sizes.count;
      const isCut = !faults.isEndless && (faults.isCut === true || lacksPackets);
      const hasAnother = faults.hasAnother || (!fragments && (await hasIndexAfter(reader, boxesEnd)));
      return [
        ...(isCut ? [`${DISPLAY_NAME} is incomplete; the available part was used.`] : []),
        ...(faults.isEndless ? [ENDLESS] : []),
        ...(faults.isDamaged ? [DAMAGED] : []),
        ...(faults.hasOthers ? [OTHERS] : []),
        ...(hasAnother ? [trailingFileWarning(DISPLAY_NAME)] : []),
        ...(faults.editFault === undefined
          ? []
          : [`The edit list of the MP4 file ${faults.editFault}; it was ignored, and all of the audio was read.`]),
      ];
    },
  });
}

/**
 * End of the boxes that follow `from` within a block, mostly packets, so that they are read in the same pass. Ends at
 * another index.
 */
async function nearBoxesEnd(reader: BlockReader, from: number): Promise<number> {
  let end = from;
  for await (const box of boxesOf(reader, from, reader.sizeBytes)) {
    if (box.type === 'moov') break;
    end = box.end;
    if (end > from + BLOCK_BYTES) break;
  }
  return end;
}

/** Whether there is a second index at or after `from`, as in concatenated files. */
async function hasIndexAfter(reader: BlockReader, from: number): Promise<boolean> {
  let count = 0;
  for await (const box of boxesOf(reader, from, reader.sizeBytes)) {
    if (box.type === 'moov') return true;
    if (box.isCut || ++count > MAX_BOXES_AFTER_INDEX) return false;
  }
  return false;
}

function walkOf(
  movie: Movie,
  track: Mp4Track,
  movieEnd: number,
  frameBytes: number,
  excludedDescriptions: readonly number[],
): TrackWalk | undefined {
  const { tables, timescale, id } = track;
  const tabled = tables?.sizes.count ?? 0;
  const defaults = movie.defaults.get(id) ?? { description: 1, duration: 0, size: 0 };
  const excluded = excludedDescriptions.length > 0 ? { excludedDescriptions } : {};
  const fragments = movie.isFragmented
    ? { trackId: id, timescale, defaults, firstByte: movieEnd, pcmFrameBytes: frameBytes, tabled, ...excluded }
    : undefined;
  if (fragments && tabled === 0) return { fragments };
  if (!tables) return undefined;
  // Uncompressed audio has an entry of constant size for each sample frame; some writers state 1 byte. Entries of
  // several frames are packets.
  const { constant } = tables.sizes;
  const pcmFrameBytes = constant > 0 && constant < 2 * frameBytes ? frameBytes : 0;
  const samples = { tables, timescale, pcmFrameBytes, ...excluded };
  return fragments ? { samples, fragments } : { samples };
}

const preSkipOf = ({ codec, extraData }: TrackCodec): number =>
  codec === 'opus' ? (parseOpusHead(extraData)?.preSkip ?? 0) : 0;

/** The span of the comment, if its total equals the decoded samples, at the stated rate or twice that (HE-AAC). */
function gaplessSpans(comment: GaplessComment, endPosition: number): readonly PlayedSpan[] | undefined {
  const { delaySamples, paddingSamples, recordingSamples } = comment;
  const counted = delaySamples + recordingSamples + paddingSamples;
  const scale = [1, 2].find((factor) => counted * factor === endPosition);
  if (scale === undefined) return undefined;
  return oneSpan(delaySamples * scale, (delaySamples + recordingSamples) * scale);
}
