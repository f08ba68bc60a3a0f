import { BLOCK_BYTES, type BlockReader } from '../../block-reader.ts';
import { ascii } from '../../bytes.ts';
import type { Container, Part, PartStart, Piece } from '../../container.ts';
import { anotherBehind } from '../../joined.ts';
import { firstReadable } from '../../packets/first-readable.ts';
import { parseOpusHead } from '../../packets/opus.ts';
import type { PacketWalk, TrackCodec } from '../../packets/packet.ts';
import { openTrack } from '../../packets/track.ts';
import { joined, onePiece } from '../../pieces.ts';
import { type AudioResult, fail, ok } from '../../result.ts';
import { type DecoderPort, SeekNeeded } from '../../types.ts';
import { familyOf } from '../amr/frames.ts';
import { amrFrames } from './amr-frames.ts';
import { type Box, boxesOf, readBody } from './boxes.ts';
import { readDescriptions } from './descriptions.ts';
import { type GaplessComment, openEnded, playEdits } from './edits.ts';
import type { FragmentFaults } from './fragment-boxes.ts';
import { type FragmentStarts, lateSeconds } from './fragment-starts.ts';
import { type FragmentWalk, fragmentStarts, walkFragments } from './fragments.ts';
import { clockOf, type Movie, type Mp4Track, readMovie } from './movie.ts';
import { type Reuse, withoutReuse } from './reuse.ts';
import { type SampleWalk, type TableFaults, walkSamples } from './sample-table.ts';

/** How the packets of the track are found: by tables, fragment by fragment, or first the one and then the other. */
interface TrackWalk {
  readonly samples?: SampleWalk;
  readonly fragments?: FragmentWalk;
}

/** What a walk met. */
type Mp4Faults = FragmentFaults &
  TableFaults &
  Reuse & {
    /** The end is that of iTunes' comment. */
    isGapless?: boolean;
    /** Why the edit list was not followed. */
    editFault?: string;
  };

/** Boxes that a file of this family begins with: names of its own, and words that may stand in a text. */
const FIRST_BOXES = new Set(['ftyp', 'styp', 'moov', 'mdat', 'moof', 'sidx']);
const FIRST_WORDS = new Set(['free', 'skip', 'wide', 'pnot']);

/** Padding after the recording that the times of the packets may state. */
const MAX_PADDING_SECONDS = 1;

/** Photos come in boxes of the same kind; a moving one has an index like any recording. */
const IMAGE_BRANDS = new Set(['heic', 'heix', 'heim', 'heis', 'hevc', 'hevx', 'mif1', 'msf1', 'avif', 'avis']);

const WHERE = 'The MP4 file';
const OTHERS = 'Parts of the sound of the MP4 file are coded in another way than its beginning; they were left out.';
const DAMAGED = 'Parts of the MP4 file are damaged and were left out.';
const ENDLESS = 'The MP4 file plays the same bytes again and again; what is behind was left out.';
/** Boxes looked at after the index; some writers put down a box for each chunk. */
const MAX_BOXES_BEHIND = 1000;

/** MP4, M4A, QuickTime and 3GP, also in fragments; of a video its sound. */
export const mp4: Container = {
  format: 'mp4',
  hasMagic: true,

  detect(head) {
    const type = ascii(head, 4, 8);
    // Four letters in front of the word would be a length of more than 512 MB.
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

/** @param entry a packet's number in the tables; after the last of them a fragment (`FragmentWalk.tabled`) */
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
    // The index after the packets would be found by reading all of them for nothing.
    if (box.type === 'mdat' && reader.isOneWay(box.start, box.end))
      throw new SeekNeeded('the index is behind the packets');
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
  const { codec, others } = described.value;
  const walk = walkOf(movie, track, movieEnd, codec.pcm ? codec.pcm.bytesPerSample * codec.channels : 0, others);
  if (!walk) return fail('corrupt', 'The MP4 file lacks the tables of its audio track.');
  const { samples, fragments } = walk;
  const behind = await closeEnd(reader, movieEnd);
  const starts: FragmentStarts = fragments ? await fragmentStarts(reader, fragments, movie.clocks.length) : new Map();
  const opened = await openTrack(reader, decoders, {
    format: 'mp4',
    where: WHERE,
    track: codec,
    walk: (faults: Mp4Faults, entry = 0) => walkTrack(reader, walk, codec, entry, faults),
  });
  if (!opened.ok) return opened;
  const { sampleRateHz: rateHz } = opened.value;
  const tabled = fragments ? undefined : samples?.tables.sizes.count;
  const edits = track.edits && movie.isFragmented ? openEnded(track.edits, track) : track.edits;
  return ok({
    ...opened.value,
    heard(start: PartStart, faults: Mp4Faults): readonly Piece[] {
      if (edits?.kind === 'edits') {
        const played = playEdits(edits, track.timescale, rateHz, start);
        if (!('fault' in played)) return played;
        faults.editFault = played.fault;
      } else if (edits?.kind === 'unusable') faults.editFault = edits.fault;
      const gapless = movie.gapless && tabled && gaplessPieces(movie.gapless, tabled * start.packetSamples);
      faults.isGapless = Boolean(gapless);
      const lead = Math.round(lateSeconds(clockOf(track), movie.clocks, starts) * rateHz);
      return joined([{ samples: lead }, ...(gapless || onePiece(preSkipOf(codec)))]);
    },
    // A last packet that lasts less than it decodes to ends in padding.
    paddingOf: ({ endPadding }, faults: Mp4Faults) =>
      faults.isGapless ? 0 : Math.min(endPadding, MAX_PADDING_SECONDS * rateHz),
    async warnings(faults: Mp4Faults) {
      const lacksPackets = samples !== undefined && (faults.tableEnd ?? 0) < samples.tables.sizes.count;
      const isCut = !faults.isEndless && (faults.isCut === true || lacksPackets);
      const hasAnother = faults.hasAnother || (!fragments && (await hasIndexBehind(reader, behind)));
      return [
        ...(isCut ? [`${WHERE} ends before it should; the part that is there was used.`] : []),
        ...(faults.isEndless ? [ENDLESS] : []),
        ...(faults.isDamaged ? [DAMAGED] : []),
        ...(faults.hasOthers ? [OTHERS] : []),
        ...(hasAnother ? [anotherBehind(WHERE)] : []),
        ...(faults.editFault === undefined
          ? []
          : [`The edit list of the MP4 file ${faults.editFault}; it was not followed, and all of the sound was read.`]),
      ];
    },
  });
}

/**
 * End of the boxes that follow closely after `from`, mostly packets, so that they are read in the same pass. Boxes
 * after an index are not included.
 */
async function closeEnd(reader: BlockReader, from: number): Promise<number> {
  let end = from;
  for await (const box of boxesOf(reader, from, reader.sizeBytes)) {
    if (box.type === 'moov') break;
    end = box.end;
    if (end > from + BLOCK_BYTES) break;
  }
  return end;
}

/** Whether a second index stands at or behind `from`: files were concatenated. */
async function hasIndexBehind(reader: BlockReader, from: number): Promise<boolean> {
  let count = 0;
  for await (const box of boxesOf(reader, from, reader.sizeBytes)) {
    if (box.type === 'moov') return true;
    if (box.isCut || ++count > MAX_BOXES_BEHIND) return false;
  }
  return false;
}

function walkOf(
  movie: Movie,
  track: Mp4Track,
  movieEnd: number,
  frameBytes: number,
  otherDescriptions: readonly number[],
): TrackWalk | undefined {
  const { tables, timescale, id } = track;
  const tabled = tables?.sizes.count ?? 0;
  const defaults = movie.defaults.get(id) ?? { description: 1, duration: 0, size: 0 };
  const others = otherDescriptions.length > 0 ? { others: otherDescriptions } : {};
  const fragments = movie.isFragmented
    ? { trackId: id, timescale, defaults, firstByte: movieEnd, pcmFrameBytes: frameBytes, tabled, ...others }
    : undefined;
  if (fragments && tabled === 0) return { fragments };
  if (!tables) return undefined;
  // Uncompressed sound has an entry of one constant size for each sample frame, and some writers say 1 byte. Entries of
  // several frames are packets.
  const { constant } = tables.sizes;
  const pcmFrameBytes = constant > 0 && constant < 2 * frameBytes ? frameBytes : 0;
  const samples = { tables, timescale, pcmFrameBytes, ...others };
  return fragments ? { samples, fragments } : { samples };
}

const preSkipOf = ({ codec, extraData }: TrackCodec): number =>
  codec === 'opus' ? (parseOpusHead(extraData)?.preSkip ?? 0) : 0;

/** What the comment says, if it is about as many samples as there are. */
function gaplessPieces(comment: GaplessComment, endPosition: number): readonly Piece[] | undefined {
  const { delaySamples, paddingSamples, recordingSamples } = comment;
  const counted = delaySamples + recordingSamples + paddingSamples;
  const scale = [1, 2].find((factor) => counted * factor === endPosition);
  if (scale === undefined) return undefined;
  return onePiece(delaySamples * scale, (delaySamples + recordingSamples) * scale);
}
