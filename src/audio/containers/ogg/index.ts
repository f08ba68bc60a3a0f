import type { BlockReader } from '../../block-reader.ts';
import { hasAscii } from '../../bytes.ts';
import type { Container, Part, PartStart, Piece } from '../../container.ts';
import { MAX_GAP_SECONDS } from '../../packets/clock.ts';
import { parseOpusHead } from '../../packets/opus.ts';
import { openTrack } from '../../packets/track.ts';
import { onePiece } from '../../pieces.ts';
import { type AudioResult, fail, ok } from '../../result.ts';
import { withoutEnd } from '../../step-budget.ts';
import type { DecoderPort } from '../../types.ts';
import { type OggStream, readStream } from './headers.ts';
import { type OggFaults, walkOgg } from './packets.ts';
import { MAX_FALSE_PAGES, type PagesEnd } from './pages.ts';
import { videoStart } from './theora.ts';

const WHERE = 'The OGG file';
const DAMAGED = 'Pages of the OGG file whose checksums are wrong were left out.';
const LATER_PART = 'A later part of the OGG file could not be read and was left out.';
const OTHER_RATE = 'A later part of the OGG file has another sample rate and was left out.';
/** Recordings in one file: a day of internet radio with one for each song has some 400. */
const MAX_LINKS = 1024;
const TOO_MANY = `${WHERE} holds more than ${MAX_LINKS} recordings behind one another; the rest was left out.`;

/** What all recordings of a file have in common. */
interface OggFile {
  readonly reader: BlockReader;
  readonly decoders: DecoderPort;
  /** Rate of the first recording. */
  rateHz?: number;
  links: number;
  falsePages: number;
}

/** OGG with Vorbis, Opus or FLAC, also several recordings one after another; of a video its sound. */
export const ogg: Container = {
  format: 'ogg',
  hasMagic: true,
  detect: (head) => hasAscii(head, 0, 'OggS'),
  open: (reader, startByte, decoders) => openLink({ reader, decoders, links: 0, falsePages: 0 }, startByte, {}),
};

/**
 * Opens the recording at `from`, or the first after it that has samples: a station that changes its title twice in a
 * moment writes headers alone.
 *
 * @param met what was met on the way: `isLost` says that samples were
 */
async function openLink(file: OggFile, from: number, met: { isLost?: boolean }): Promise<AudioResult<Part>> {
  const { reader, decoders } = file;
  let empty = fail('no_samples', `${WHERE} has no samples in it.`);
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
      where: WHERE,
      track,
      walk,
      trial,
    });
    if (opened.ok) return ok(await linkOf(file, stream.value, startByte, opened.value));
    if (opened.error.kind !== 'no_samples') return opened;
    met.isLost ||= (trial.isCut || trial.isDamaged || trial.isEndless) === true;
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
    heard: (start, faults) => heardOf(stream, start, rateHz, videoSeconds, faults),
    paddingOf: ({ endPadding }, faults: OggFaults) => faults.onlyPadding ?? endPadding,
    warnings: (faults) => warningsOf(faults, rateHz),
    next: (faults) => nextLink(file, faults),
    reopen: async (byte) => {
      const link = await openLink(file, byte, {});
      return link.ok ? link.value : undefined;
    },
  };
}

/** The next recording of a chained file, after one that was read. */
async function nextLink(file: OggFile, faults: OggFaults): Promise<{ part?: Part; warning?: string }> {
  const from = faults.nextRecording;
  file.links = faults.links ?? file.links;
  file.falsePages = (faults.earlierFalsePages ?? 0) + (faults.falsePages ?? 0);
  if (from === undefined) return {};
  if (file.falsePages > MAX_FALSE_PAGES) return { warning: LATER_PART };
  const met: { isLost?: boolean } = {};
  const link = await openLink(file, from, met);
  const warning = file.links > MAX_LINKS ? TOO_MANY : met.isLost ? LATER_PART : undefined;
  if (!link.ok) return { warning: warning ?? (link.error.kind === 'no_samples' ? undefined : LATER_PART) };
  if (link.value.sampleRateHz !== file.rateHz) return { warning: OTHER_RATE };
  return { part: link.value, warning };
}

/**
 * The last page says where the recording ends; in Vorbis the first one says where it begins (Vorbis I, appendix A.2).
 * Of a video it also says how late the sound is; without pictures a start above 0 is that of a stream somebody tuned
 * into, unless pages in front of it are lost.
 */
function heardOf(
  { codec }: OggStream,
  start: PartStart,
  rateHz: number,
  videoSeconds: number | undefined,
  faults: OggFaults,
): readonly Piece[] {
  const { startPadding, isOneRun } = start;
  const preSkip = codec.codec === 'opus' ? (parseOpusHead(codec.extraData)?.preSkip ?? 0) : 0;
  // Of one page alone, what it has too much is at its end.
  if (isOneRun) faults.onlyPadding = Math.max(0, startPadding);
  const delay = codec.codec === 'vorbis' && !isOneRun ? Math.max(0, startPadding) : preSkip;
  const beginSeconds = videoSeconds ?? (faults.isLateStart ? 0 : undefined);
  const lateSamples = beginSeconds === undefined ? 0 : Math.round(-startPadding - beginSeconds * rateHz);
  const lead = lateSamples > 0 && lateSamples <= MAX_GAP_SECONDS * rateHz ? lateSamples : 0;
  if (faults.isLateStart) faults.lostSamples = lead;
  return onePiece(delay, undefined, lead);
}

function warningsOf(faults: OggFaults, rateHz: number): readonly string[] {
  const lostSeconds = ((faults.lostSamples ?? 0) / rateHz).toFixed(1);
  return [
    ...(faults.isCut ? [`${WHERE} ends before it should; the part that is there was used.`] : []),
    ...(faults.isDamaged ? [DAMAGED] : []),
    ...(faults.isEndless ? [withoutEnd(WHERE)] : []),
    ...(faults.lostSamples
      ? [`The beginning of the OGG file, ${lostSeconds} s of it, is damaged and was taken as silence.`]
      : []),
  ];
}
