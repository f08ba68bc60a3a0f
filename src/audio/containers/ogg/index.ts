import type { BlockReader } from '../../block-reader.ts';
import { fromHex, hasAscii } from '../../bytes.ts';
import { type Container, type IndexBase, MAX_SCAN_SECONDS, MONO_BLOCK_SAMPLES } from '../../container.ts';
import { MAX_GAP_SECONDS } from '../../packets/clock.ts';
import { parseOpusHead } from '../../packets/opus.ts';
import { onePiece } from '../../packets/pieces.ts';
import { jumpWarnings, type Played, probeTrack } from '../../packets/probe-track.ts';
import { readPackets } from '../../packets/read.ts';
import type { Scan } from '../../packets/scan.ts';
import { type AudioResult, fail, ok } from '../../result.ts';
import { withoutEnd } from '../../step-budget.ts';
import type { DecoderPort } from '../../types.ts';
import { type OggStream, readStream } from './headers.ts';
import { LinkList, MAX_LINKS, type OggLink, type WholeLink, wholeLink } from './links.ts';
import { type WalkEnd, walkOgg } from './packets.ts';
import { MAX_FALSE_PAGES, type PagesEnd } from './pages.ts';
import { videoStart } from './theora.ts';

export interface OggIndex extends IndexBase {
  readonly format: 'ogg';
  readonly links: readonly OggLink[];
}

const WHERE = 'The OGG file';
const DAMAGED = 'Pages of the OGG file whose checksums are wrong were left out.';
const LATER_PART = 'A later part of the OGG file could not be read and was left out.';

/** OGG with Vorbis, Opus or FLAC, also several recordings behind one another; of a video its sound. */
export const ogg: Container<OggIndex> = {
  format: 'ogg',
  hasMagic: true,

  detect: (head) => hasAscii(head, 0, 'OggS'),

  async probe(reader, startByte, decoders) {
    const found = new LinkList();
    const { links } = found;
    const warnings = new Set<string>();
    let next: number | undefined = startByte;
    let falsePages = 0;
    for (let looked = 0; next !== undefined; looked++) {
      if (looked >= MAX_LINKS) {
        warnings.add(`${WHERE} holds more than ${MAX_LINKS} recordings behind one another; the rest was left out.`);
        break;
      }
      const head: PagesEnd = {};
      const end: WalkEnd = {};
      const stream: AudioResult<OggStream> = await readStream(reader, next, head);
      const link: AudioResult<WholeLink> = stream.ok ? await probeLink(reader, decoders, stream.value, end) : stream;
      falsePages += (head.falsePages ?? 0) + (end.falsePages ?? 0);
      next = falsePages > MAX_FALSE_PAGES ? undefined : end.nextRecording;
      if (falsePages > MAX_FALSE_PAGES && end.nextRecording !== undefined) warnings.add(LATER_PART);
      if (!link.ok) {
        // A station that changes its title twice in a moment writes headers alone.
        const isEmpty = stream.ok && link.error.kind === 'no_samples';
        if (isEmpty && (end.isCut || end.isDamaged || end.isEndless)) warnings.add(LATER_PART);
        if (isEmpty) continue;
        if (links.length === 0) return link;
        warnings.add(LATER_PART);
        break;
      }
      const { warning, ...plain } = link.value;
      if (links.length > 0 && plain.sampleRateHz !== links[0].sampleRateHz) {
        warnings.add('A later part of the OGG file has another sample rate and was left out.');
        break;
      }
      if (!found.add(plain)) {
        warnings.add(`${WHERE} holds too many recordings with headers of their own or pauses; the rest was left out.`);
        break;
      }
      if (warning) warnings.add(warning);
      if (found.totalSamples > MAX_SCAN_SECONDS * plain.sampleRateHz) break;
    }
    const [first] = links;
    if (!first) return fail('no_samples', `${WHERE} has no samples in it.`);
    const { totalSamples, gapSamples } = found;
    for (const warning of jumpWarnings(gapSamples, 0, first.sampleRateHz)) warnings.add(warning);
    return ok({
      format: 'ogg',
      codec: first.codec,
      sampleRateHz: first.sampleRateHz,
      channels: first.channels,
      totalSamples,
      durationSeconds: totalSamples / first.sampleRateHz,
      ...(warnings.size > 0 ? { warning: [...warnings].join(' ') } : {}),
      links,
    });
  },

  async *readMono(reader, index, decoders, startSample) {
    let firstSample = 0;
    for (const link of index.links) {
      const from = Math.max(0, startSample - firstSample);
      firstSample += link.totalSamples;
      if (from >= link.totalSamples) continue;
      let missing = link.totalSamples - from;
      const whole = wholeLink(index.links, link);
      const walkFrom = (entry: number) => walkOgg(reader, link.serial, entry);
      for await (const block of readPackets(reader, whole, decoders, from, walkFrom)) {
        missing -= block.length;
        yield block;
      }
      // What a damaged end lacks, so that the next recording stands at its time.
      if (link !== index.links.at(-1)) yield* silence(missing);
    }
  },
};

function* silence(samples: number): Generator<Float32Array> {
  for (let left = samples; left > 0; left -= MONO_BLOCK_SAMPLES) {
    yield new Float32Array(Math.min(left, MONO_BLOCK_SAMPLES));
  }
}

async function probeLink(
  reader: BlockReader,
  decoders: DecoderPort,
  stream: OggStream,
  end: WalkEnd,
): Promise<AudioResult<WholeLink>> {
  const { serial, codec, startByte, firstByte } = stream;
  const videoSeconds = await videoStart(reader, startByte);
  const probed = await probeTrack(reader, decoders, {
    where: WHERE,
    track: codec,
    isPart: true,
    walk: () => walkOgg(reader, serial, firstByte, end),
    played: (scan, rateHz) => playedRange(stream, scan, rateHz, videoSeconds, end.isLateStart === true),
    isCut: () => end.isCut === true,
    warnings: () => [...(end.isDamaged ? [DAMAGED] : []), ...(end.isEndless ? [withoutEnd(WHERE)] : [])],
  });
  return probed.ok ? ok({ format: 'ogg', ...probed.value, serial }) : probed;
}

/**
 * The last page says where the recording ends; in Vorbis the first one says where it begins (Vorbis I, appendix A.2). Of a video it also says how
 * late the sound is; without pictures a start above 0 is that of a stream somebody tuned into, unless pages in front of it are lost.
 *
 * @param isLateStart whether they are
 */
function playedRange(
  { codec }: OggStream,
  scan: Scan,
  rateHz: number,
  videoSeconds: number | undefined,
  isLateStart: boolean,
): Played {
  const preSkip = codec.codec === 'opus' ? (parseOpusHead(fromHex(codec.extraData))?.preSkip ?? 0) : 0;
  const delay = codec.codec === 'vorbis' && scan.runs > 1 ? Math.max(0, scan.startPadding) : preSkip;
  // One page alone: what it has too much is at its end.
  const padding = scan.runs > 1 ? Math.max(0, scan.endPadding) : Math.max(0, scan.startPadding);
  const beginSeconds = videoSeconds ?? (isLateStart ? 0 : undefined);
  const lateSamples = beginSeconds === undefined ? 0 : Math.round(-scan.startPadding - beginSeconds * rateHz);
  const lead = lateSamples > 0 && lateSamples <= MAX_GAP_SECONDS * rateHz ? lateSamples : 0;
  const pieces = onePiece(delay, scan.endPosition - padding, lead);
  if (lead === 0 || !isLateStart) return { pieces };
  const seconds = (lead / rateHz).toFixed(1);
  return { pieces, warning: `The beginning of the OGG file, ${seconds} s of it, is damaged and was taken as silence.` };
}
