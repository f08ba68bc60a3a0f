import type { BlockReader } from '../../block-reader.ts';
import { fromHex, hasAscii } from '../../bytes.ts';
import { type Container, type IndexBase, MAX_SCAN_SECONDS, MONO_BLOCK_SAMPLES } from '../../container.ts';
import { MAX_GAP_SECONDS } from '../../packets/clock.ts';
import { parseOpusHead } from '../../packets/opus.ts';
import type { PacketIndex } from '../../packets/packet.ts';
import { onePiece } from '../../packets/pieces.ts';
import { type Played, probeTrack } from '../../packets/probe-track.ts';
import { readPackets } from '../../packets/read.ts';
import type { Scan } from '../../packets/scan.ts';
import { type AudioResult, fail, ok } from '../../result.ts';
import { withoutEnd } from '../../step-budget.ts';
import type { DecoderPort } from '../../types.ts';
import { type OggStream, readStream } from './headers.ts';
import { type WalkEnd, walkOgg } from './packets.ts';
import { videoStart } from './theora.ts';

/** One of the recordings that stand behind one another in a file. */
interface OggLink extends PacketIndex {
  readonly serial: number;
}

export interface OggIndex extends IndexBase {
  readonly format: 'ogg';
  readonly links: readonly OggLink[];
}

const WHERE = 'The OGG file';
const DAMAGED = 'Pages of the OGG file whose checksums are wrong were left out.';
/** Recordings behind one another in one file, as internet radio makes them. */
const MAX_LINKS = 64;

/** OGG with Vorbis, Opus or FLAC, also several recordings behind one another; of a video its sound. */
export const ogg: Container<OggIndex> = {
  format: 'ogg',
  hasMagic: true,

  detect: (head) => hasAscii(head, 0, 'OggS'),

  async probe(reader, startByte, decoders) {
    const links: OggLink[] = [];
    const warnings = new Set<string>();
    let next: number | undefined = startByte;
    let totalSamples = 0;
    while (next !== undefined) {
      if (links.length >= MAX_LINKS) {
        warnings.add(`${WHERE} holds more than ${MAX_LINKS} recordings behind one another; the rest was left out.`);
        break;
      }
      const end: WalkEnd = {};
      const link: AudioResult<OggLink> = await probeLink(reader, decoders, next, end);
      if (!link.ok) {
        if (links.length === 0) return link;
        warnings.add(`A later part of the OGG file could not be read and was left out.`);
        break;
      }
      const { warning, ...plain } = link.value;
      if (links.length > 0 && plain.sampleRateHz !== links[0].sampleRateHz) {
        warnings.add('A later part of the OGG file has another sample rate and was left out.');
        break;
      }
      if (warning) warnings.add(warning);
      links.push(plain);
      totalSamples += plain.totalSamples;
      next = totalSamples > MAX_SCAN_SECONDS * plain.sampleRateHz ? undefined : end.nextRecording;
    }
    const [first] = links;
    if (!first) return fail('no_samples', `${WHERE} has no samples in it.`);
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
      for await (const block of readPackets(reader, link, decoders, from, (entry) =>
        walkOgg(reader, link.serial, entry),
      )) {
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
  startByte: number,
  end: WalkEnd,
): Promise<AudioResult<OggLink>> {
  const stream = await readStream(reader, startByte);
  if (!stream.ok) return stream;
  const { serial, codec, firstByte } = stream.value;
  const videoSeconds = await videoStart(reader, startByte);
  const probed = await probeTrack(reader, decoders, {
    where: WHERE,
    track: codec,
    walk: () => walkOgg(reader, serial, firstByte, end),
    played: (scan, rateHz) => playedRange(stream.value, scan, rateHz, videoSeconds),
    isCut: () => end.isCut === true,
    warnings: () => [...(end.isDamaged ? [DAMAGED] : []), ...(end.isEndless ? [withoutEnd(WHERE)] : [])],
  });
  return probed.ok ? ok({ format: 'ogg', ...probed.value, serial }) : probed;
}

/**
 * The last page says where the recording ends; in Vorbis the first one says where it begins (Vorbis I, appendix A.2). Of a video it also says how
 * late the sound is; without pictures a start above 0 is that of a stream somebody tuned into.
 */
function playedRange({ codec }: OggStream, scan: Scan, rateHz: number, videoSeconds: number | undefined): Played {
  const preSkip = codec.codec === 'opus' ? (parseOpusHead(fromHex(codec.extraData))?.preSkip ?? 0) : 0;
  const delay = codec.codec === 'vorbis' && scan.runs > 1 ? Math.max(0, scan.startPadding) : preSkip;
  // One page alone: what it has too much is at its end.
  const padding = scan.runs > 1 ? Math.max(0, scan.endPadding) : Math.max(0, scan.startPadding);
  const lateSamples = videoSeconds === undefined ? 0 : Math.round(-scan.startPadding - videoSeconds * rateHz);
  const lead = lateSamples > 0 && lateSamples <= MAX_GAP_SECONDS * rateHz ? lateSamples : 0;
  return { pieces: onePiece(delay, scan.endPosition - padding, lead) };
}
