import type { BlockReader } from '../../block-reader.ts';
import type { Container, IndexBase } from '../../container.ts';
import { decodeFrames, scanFrames, scannedFrames, scanWarning } from '../../frame-stream.ts';
import { type AudioResult, fail, ok } from '../../result.ts';
import type { SeekTable } from '../../seek-table.ts';
import { tailTagsStart } from '../../tags.ts';
import type { DecoderPort } from '../../types.ts';
import { mpegSyntax, sideInfoBytes } from './header.ts';
import { playedRange, readInfoTag } from './info-tag.ts';
import { findMpegSync, goesOnWarning, type MpegFamily, SYNC_BYTES } from './sync.ts';

export interface Mp3Index extends IndexBase {
  readonly format: 'mp3';
  /** 'mp2' for layer II. */
  readonly codec: 'mp3' | 'mp2';
  /** Bits that all frame headers share. */
  readonly lock: number;
  readonly frameSamples: number;
  /** Decoded samples in front of the recording: encoder and decoder delay. */
  readonly skipSamples: number;
  /** Frames decoded and thrown away when reading starts in the middle. */
  readonly warmUpFrames: number;
  readonly endByte: number;
  /** Sample numbers count decoded samples, delay included. */
  readonly seek: SeekTable;
}

/** A frame's data may begin up to this many bytes before it ('bit reservoir', main_data_begin has 9 bits). */
const RESERVOIR_BYTES = 511;
const MIN_WARM_UP_FRAMES = 10;
/** Bound for streams whose frames hold next to nothing. */
const MAX_WARM_UP_FRAMES = 600;

const REJECTED: Readonly<Record<Exclude<MpegFamily, 'mp3' | 'layer2'>, string>> = {
  'free-format': 'The file is an MP3 file in free format, which is not supported.',
  layer1: 'The file is an MPEG layer I file (MP1), which is not supported.',
  adts: 'The file holds AAC where MP3 should be, which is not supported.',
};

/** MPEG-1, 2 and 2.5 layer III, and layer II, constant and variable bit rate. */
export const mp3: Container<Mp3Index> = {
  format: 'mp3',
  hasMagic: false,

  detect: (head) => findMpegSync(head, head.length < SYNC_BYTES) !== undefined,

  probe: async (reader, startByte) => probeMpeg(reader, startByte, await tailTagsStart(reader, startByte)),

  readMono(reader: BlockReader, index: Mp3Index, decoders: DecoderPort, startSample: number) {
    const { codec, sampleRateHz, channels } = index;
    const frames = scannedFrames(reader, mpegSyntax(index.lock), index);
    return decodeFrames(index, frames, () => decoders.open({ codec, sampleRateHz, channels }), startSample);
  },
};

/** Measures the MPEG audio that fills `[startByte, endByte)`. */
export async function probeMpeg(
  reader: BlockReader,
  startByte: number,
  endByte: number,
): Promise<AudioResult<Mp3Index>> {
  const wanted = Math.min(SYNC_BYTES, endByte - startByte);
  const head = (await reader.peek(startByte, wanted)).slice(0, wanted);
  const sync = findMpegSync(head, startByte + head.length >= endByte);
  if (!sync) return fail('corrupt', 'The MP3 file has no whole frame in it.');
  const { family, header } = sync;
  if ((family !== 'mp3' && family !== 'layer2') || !header) {
    return fail('unsupported', REJECTED[family as keyof typeof REJECTED]);
  }
  const [name, codec] = family === 'mp3' ? (['MP3', 'mp3'] as const) : (['MP2', 'mp2'] as const);
  const tag = codec === 'mp3' ? readInfoTag(head.subarray(sync.at, sync.at + header.frameBytes), header) : undefined;
  const firstByte = startByte + sync.at + (tag ? header.frameBytes : 0);
  const scan = await scanFrames(reader, mpegSyntax(header.lock), { startByte: firstByte, endByte }, header);
  const { skipSamples, endSample } = playedRange(tag, scan.frames * header.frameSamples, header.frameSamples);
  const totalSamples = endSample - skipSamples;
  if (totalSamples <= 0) return fail('no_samples', `The ${name} file has no samples in it.`);
  // Where bytes were left out, the frames that the tag knows of were in them.
  const hasTooFew = scan.skippedBytes === 0 && tag?.frames !== undefined && tag.frames > scan.frames + 1;
  const isTruncated = scan.isTruncated || hasTooFew;
  const rest = { startByte: scan.framesEnd, endByte };
  const goesOn = await goesOnWarning(name, reader, rest, totalSamples / header.sampleRateHz);
  const warning = scanWarning(name, { isTruncated, skippedBytes: scan.skippedBytes }, goesOn);
  const dataBytesMin = scan.minFrameBytes - 6 - sideInfoBytes({ ...header, channels: 2 });
  return ok({
    format: 'mp3',
    codec,
    sampleRateHz: header.sampleRateHz,
    channels: header.channels,
    totalSamples,
    durationSeconds: totalSamples / header.sampleRateHz,
    ...(warning === undefined ? {} : { warning }),
    lock: header.lock,
    frameSamples: header.frameSamples,
    skipSamples,
    warmUpFrames: codec === 'mp3' ? warmUpFrames(dataBytesMin) : MIN_WARM_UP_FRAMES,
    endByte,
    seek: scan.seek,
  });
}

/** Frames after which the reservoir is full again, whatever the encoder did, and two more for overlap and filterbank. */
function warmUpFrames(minDataBytes: number): number {
  const forReservoir = Math.ceil(RESERVOIR_BYTES / Math.max(1, minDataBytes)) + 2;
  return Math.min(MAX_WARM_UP_FRAMES, Math.max(MIN_WARM_UP_FRAMES, forReservoir));
}
