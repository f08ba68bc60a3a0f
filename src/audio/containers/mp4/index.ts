import type { BlockReader } from '../../block-reader.ts';
import { ascii, fromHex } from '../../bytes.ts';
import type { Container } from '../../container.ts';
import { anotherBehind } from '../../joined.ts';
import { firstReadable } from '../../packets/first-readable.ts';
import { parseOpusHead } from '../../packets/opus.ts';
import type { PacketIndex, PacketWalk, TrackCodec } from '../../packets/packet.ts';
import { joined, onePiece, type Piece } from '../../packets/pieces.ts';
import { type Played, probeTrack } from '../../packets/probe-track.ts';
import { readPackets } from '../../packets/read.ts';
import type { Scan } from '../../packets/scan.ts';
import { type AudioResult, fail, ok } from '../../result.ts';
import type { DecoderPort } from '../../types.ts';
import { familyOf } from '../amr/frames.ts';
import { amrFrames } from './amr-frames.ts';
import { type Box, boxesOf, readBody } from './boxes.ts';
import { readDescriptions } from './descriptions.ts';
import { type GaplessComment, openEnded, playEdits } from './edits.ts';
import type { FragmentFaults } from './fragment-boxes.ts';
import { type FragmentStarts, lateSeconds } from './fragment-starts.ts';
import { type FragmentWalk, walkFragments } from './fragments.ts';
import { clockOf, type Movie, type Mp4Track, readMovie } from './movie.ts';
import { type Reuse, withoutReuse } from './reuse.ts';
import { SampleMarks } from './sample-marks.ts';
import { type SampleWalk, walkSamples } from './sample-table.ts';

/** How the packets of the track are found: by tables, fragment by fragment, or first the one and then the other. */
interface TrackWalk {
  readonly samples?: SampleWalk;
  readonly fragments?: FragmentWalk;
}

export interface Mp4Index extends PacketIndex {
  readonly format: 'mp4';
  readonly walk: TrackWalk;
}

/** Boxes that a file of this family begins with: names of its own, and words that may stand in a text. */
const FIRST_BOXES = new Set(['ftyp', 'styp', 'moov', 'mdat', 'moof', 'sidx']);
const FIRST_WORDS = new Set(['free', 'skip', 'wide', 'pnot']);

/** Padding behind the recording that the times of the packets may state. */
const MAX_PADDING_SECONDS = 1;

/** Photos come in boxes of the same kind; a moving one has an index like any recording. */
const IMAGE_BRANDS = new Set(['heic', 'heix', 'heim', 'heis', 'hevc', 'hevx', 'mif1', 'msf1', 'avif', 'avis']);

const WHERE = 'The MP4 file';
const OTHERS = 'Parts of the sound of the MP4 file are coded in another way than its beginning; they were left out.';
const DAMAGED = 'Parts of the MP4 file are damaged and were left out.';
const ENDLESS = 'The MP4 file plays the same bytes again and again; what is behind was left out.';
/** Boxes looked at behind the index; some writers put down a box for each chunk. */
const MAX_BOXES_BEHIND = 1000;

/** MP4, M4A, QuickTime and 3GP, also in fragments; of a video its sound. */
export const mp4: Container<Mp4Index> = {
  format: 'mp4',
  hasMagic: true,

  detect(head) {
    const type = ascii(head, 4, 8);
    // Four letters in front of the word would be a length of more than 512 MB.
    return FIRST_BOXES.has(type) || (FIRST_WORDS.has(type) && head[0] < 0x20);
  },

  async probe(reader, startByte, decoders) {
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
    return firstReadable([preferred, ...others], (track) => probeMovie(reader, decoders, movie, track, end));
  },

  readMono: (reader, index, decoders, startSample) =>
    readPackets(reader, index, decoders, startSample, (entry) => walkTrack(reader, index.walk, index.track, entry)),
};

/** What a walk from the first packet on tells beside the packets. */
class Found {
  readonly marks = new SampleMarks();
  readonly faults: FragmentFaults = {};
  readonly starts: FragmentStarts = new Map();
  readonly reuse: Reuse = {};
}

/** @param entry a packet's number in the tables; behind the last of them a fragment (`FragmentWalk.tabled`) */
function walkTrack(
  reader: BlockReader,
  walk: TrackWalk,
  { codec }: TrackCodec,
  entry: number,
  found?: Found,
): PacketWalk {
  const packets = withoutReuse(walkPackets(reader, walk, entry, found), reader.sizeBytes, found?.reuse ?? {});
  return codec === 'amr-nb' || codec === 'amr-wb' ? amrFrames(reader, packets, familyOf(codec)) : packets;
}

async function* walkPackets(
  reader: BlockReader,
  { samples, fragments }: TrackWalk,
  entry: number,
  found?: Found,
): PacketWalk {
  if (samples && entry < samples.tables.sizes.count) yield* walkSamples(reader, samples, entry, found?.marks);
  if (fragments) yield* walkFragments(reader, fragments, entry, found?.faults, found?.starts);
}

async function findMovie(reader: BlockReader, startByte: number): Promise<AudioResult<{ movie: Movie; end: number }>> {
  let last: Box | undefined;
  let isImage = false;
  for await (const box of boxesOf(reader, startByte, reader.sizeBytes)) {
    last = box;
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

async function probeMovie(
  reader: BlockReader,
  decoders: DecoderPort,
  movie: Movie,
  track: Mp4Track,
  movieEnd: number,
): Promise<AudioResult<Mp4Index>> {
  const described = await readDescriptions(reader, track, movie.defaults.get(track.id)?.description);
  if (!described.ok) return described;
  const { codec, others } = described.value;
  const walk = walkOf(movie, track, movieEnd, codec.pcm ? codec.pcm.bytesPerSample * codec.channels : 0, others);
  if (!walk) return fail('corrupt', 'The MP4 file lacks the tables of its audio track.');
  const { samples } = walk;
  const hasAnother = !walk.fragments && (await hasIndexBehind(reader, movieEnd));
  let found = new Found();
  const probed = await probeTrack(reader, decoders, {
    where: WHERE,
    track: codec,
    walk() {
      found = new Found();
      return walkTrack(reader, walk, codec, 0, found);
    },
    played: (scan, rateHz) => playedOf(movie, track, codec, scan, rateHz, found.starts),
    isCut: () =>
      !found.reuse.isEndless &&
      (found.faults.isCut === true || (samples !== undefined && found.marks.end < samples.tables.sizes.count)),
    warnings: () => [
      ...(found.reuse.isEndless ? [ENDLESS] : []),
      ...(found.faults.isDamaged ? [DAMAGED] : []),
      ...(found.marks.hasOthers || found.faults.hasOthers ? [OTHERS] : []),
      ...(hasAnother || found.faults.hasAnother ? [anotherBehind(WHERE)] : []),
    ],
  });
  if (!probed.ok) return probed;
  const { marks } = found.marks;
  return ok({
    format: 'mp4',
    ...probed.value,
    walk: samples ? { ...walk, samples: { ...samples, marks } } : walk,
  });
}

/** Whether a second index stands behind the first: files were put behind one another. */
async function hasIndexBehind(reader: BlockReader, movieEnd: number): Promise<boolean> {
  let count = 0;
  for await (const box of boxesOf(reader, movieEnd, reader.sizeBytes)) {
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
  // Uncompressed sound has an entry of one constant size for each sample frame, and some writers say 1 byte. Entries of several frames are packets.
  const { constant } = tables.sizes;
  const pcmFrameBytes = constant > 0 && constant < 2 * frameBytes ? frameBytes : 0;
  const samples = { tables, timescale, pcmFrameBytes, marks: [], ...others };
  return fragments ? { samples, fragments } : { samples };
}

/** The recording by the edit list; else by iTunes' comment, else by Opus' own header; else all that is there, and silence in front of a late track. */
function playedOf(
  movie: Movie,
  track: Mp4Track,
  codec: TrackCodec,
  scan: Scan,
  rateHz: number,
  starts: FragmentStarts,
): Played {
  // A last packet that lasts less than it decodes to ends in padding.
  const mediaEnd = scan.endPosition - Math.max(0, Math.min(scan.endPadding, MAX_PADDING_SECONDS * rateHz));
  const { timescale } = track;
  const edits = track.edits && movie.isFragmented ? openEnded(track.edits, track) : track.edits;
  let fault = edits?.kind === 'unusable' ? edits.fault : undefined;
  if (edits?.kind === 'edits') {
    const { seek, emptyPackets, roundedSamples } = scan;
    const media = { timescale, rateHz, endPosition: mediaEnd, roundedSamples, seek, emptyPackets };
    const played = playEdits(edits, media);
    if (!('fault' in played)) return { pieces: played };
    fault = played.fault;
  }
  const heard =
    (movie.gapless && gaplessPieces(movie.gapless, scan.endPosition)) ?? onePiece(preSkipOf(codec), mediaEnd);
  const lead = Math.round(lateSeconds(clockOf(track), movie.clocks, starts) * rateHz);
  const pieces = joined([{ samples: lead }, ...heard]);
  const warning = `The edit list of the MP4 file ${fault}; it was not followed, and all of the sound was read.`;
  return fault === undefined ? { pieces } : { pieces, warning };
}

const preSkipOf = ({ codec, extraData }: TrackCodec): number =>
  codec === 'opus' ? (parseOpusHead(fromHex(extraData))?.preSkip ?? 0) : 0;

/** What the comment says, if it is about as many samples as there are. */
function gaplessPieces(comment: GaplessComment, endPosition: number): readonly Piece[] | undefined {
  const { delaySamples, paddingSamples, recordingSamples } = comment;
  const counted = delaySamples + recordingSamples + paddingSamples;
  const scale = [1, 2].find((factor) => counted * factor === endPosition);
  if (scale === undefined) return undefined;
  return onePiece(delaySamples * scale, (delaySamples + recordingSamples) * scale);
}
