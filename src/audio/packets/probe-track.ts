import type { BlockReader } from '../block-reader.ts';
import { isUsableRate, MAX_CHANNELS } from '../container.ts';
import { type AudioResult, fail, ok } from '../result.ts';
import type { DecoderPort } from '../types.ts';
import { packetCounter } from './count.ts';
import { MAX_PRIVATE_BYTES, type PacketIndex, type PacketWalk, type TrackCodec } from './packet.ts';
import { type Piece, samplesOf } from './pieces.ts';
import { type Scan, scanPackets } from './scan.ts';
import { tryDecoder } from './track-decoder.ts';

/** Which of the decoded samples are the recording. */
export interface Played {
  readonly pieces: readonly Piece[];
  readonly warning?: string;
}

export interface TrackToProbe {
  /** 'The MP4 file', for messages. */
  readonly where: string;
  readonly track: TrackCodec;
  /** One of several recordings in a file: the jumps of all their times are told together, by who asks. */
  readonly isPart?: boolean;
  /** Walks the packets from the first on, with times. */
  walk(): PacketWalk;
  /** What is cut off at both ends, or how late the track begins. */
  played(scan: Scan, rateHz: number): Played;
  /** Whether the walk ended before the container says it should. */
  isCut?(scan: Scan): boolean;
  /** What else is to be said, behind the walk. */
  warnings?(): readonly string[];
}

/** Pauses and overlaps shorter than this in all are not worth a word. */
const WORTH_A_WARNING_SECONDS = 1;

/** What to say of the jumps of the times that were followed. */
export function jumpWarnings(gapSamples: number, overlapSamples: number, rateHz: number): readonly string[] {
  const seconds = (samples: number) => (samples / rateHz).toFixed(1);
  const isWorth = (samples: number) => samples >= WORTH_A_WARNING_SECONDS * rateHz;
  return [
    ...(isWorth(gapSamples)
      ? [`Pauses in the times of the packets, ${seconds(gapSamples)} s in all, were taken as silence.`]
      : []),
    ...(isWorth(overlapSamples)
      ? [
          `Packets overlap in their times, by ${seconds(overlapSamples)} s in all; that much of their sound was left out.`,
        ]
      : []),
  ];
}

/** Decoders of Opus with more channels take up to 15 MB each, and two are open where decoding starts anew: the module has 32 MB for all that an isolate decodes. */
const MAX_OPUS_CHANNELS = 32;

/** All of an index but the container's own part. */
export async function probeTrack(
  reader: BlockReader,
  decoders: DecoderPort,
  source: TrackToProbe,
): Promise<AudioResult<Omit<PacketIndex, 'format'>>> {
  const { track, where } = source;
  if (track.channels < 1 || track.channels > MAX_CHANNELS) {
    return fail('unsupported', `${where} has ${track.channels} channels; 1 to ${MAX_CHANNELS} are supported.`);
  }
  if (track.codec === 'opus' && track.channels > MAX_OPUS_CHANNELS) {
    return fail(
      'unsupported',
      `${where} has ${track.channels} channels; of Opus, 1 to ${MAX_OPUS_CHANNELS} are supported.`,
    );
  }
  if (!isUsableRate(track.sampleRateHz)) {
    return fail('unsupported', `${where} has a sample rate of ${track.sampleRateHz} Hz, which is not supported.`);
  }
  if (track.extraData.length > 2 * MAX_PRIVATE_BYTES) {
    return fail('corrupt', `${where} has a damaged header: what it says about its codec is too long.`);
  }
  const trial = await tryDecoder(reader, track, decoders, source.walk(), where);
  if (!trial.ok) return trial;
  const { sampleRateHz, packetSamples } = trial.value;
  const scan = await scanPackets(reader, source.walk(), packetCounter(track, packetSamples, true), sampleRateHz);
  const { pieces, warning } = source.played(scan, sampleRateHz);
  const totalSamples = samplesOf(pieces);
  if (totalSamples <= 0) return fail('no_samples', `${where} has no samples in it.`);
  const warnings = [
    ...(source.isCut?.(scan) ? [`${where} ends before it should; the part that is there was used.`] : []),
    ...(source.isPart ? [] : jumpWarnings(scan.gapSamples, scan.overlapSamples, sampleRateHz)),
    ...(scan.brokenTimes > 0 ? ['The times of the packets jump; where they do the samples were counted instead.'] : []),
    ...(scan.hasTooMany ? [`${where} has more than ${scan.packets} packets; what is behind them was left out.`] : []),
    ...(source.warnings?.() ?? []),
    ...(warning === undefined ? [] : [warning]),
  ];
  return ok({
    codec: track.codec,
    sampleRateHz,
    channels: track.channels,
    totalSamples,
    durationSeconds: totalSamples / sampleRateHz,
    ...(warnings.length > 0 ? { warning: warnings.join(' ') } : {}),
    track,
    packetSamples,
    pieces,
    seek: scan.seek,
    gaps: scan.gaps,
  });
}
