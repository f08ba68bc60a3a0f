import type { BlockReader } from '../../block-reader.ts';
import { type Container, type IndexBase, MAX_SCAN_SECONDS } from '../../container.ts';
import { fail, ok } from '../../result.ts';
import { findSeekPoint, type SeekTable, SeekTableBuilder } from '../../seek-table.ts';
import { tailTagsStart } from '../../tags.ts';
import type { DecoderPort } from '../../types.ts';
import { sideInfoBytes } from './header.ts';
import { playedRange, readInfoTag } from './info-tag.ts';
import { findMpegSync, type MpegFamily } from './sync.ts';
import { walkFrames } from './walker.ts';

export interface Mp3Index extends IndexBase {
  readonly format: 'mp3';
  readonly codec: 'mp3';
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

const HEAD_BYTES = 1 << 16;
const SEEK_SECONDS = 10;

/** A frame's data may begin up to this many bytes before it ('bit reservoir', main_data_begin has 9 bits). */
const RESERVOIR_BYTES = 511;
const MIN_WARM_UP_FRAMES = 10;
/** Bound for streams whose frames hold next to nothing. */
const MAX_WARM_UP_FRAMES = 600;

const REJECTED: Readonly<Record<Exclude<MpegFamily, 'mp3'>, string>> = {
  'free-format': 'The file is an MP3 file in free format, which is not supported.',
  layer1: 'The file is an MPEG layer I file (MP1), which is not supported.',
  layer2: 'The file is an MPEG layer II file (MP2), which is not supported.',
  adts: 'The file is an AAC file (ADTS), which is not supported yet.',
};

/** MPEG-1, 2 and 2.5 layer III, constant and variable bit rate. */
export const mp3: Container<Mp3Index> = {
  format: 'mp3',
  hasMagic: false,

  detect: (head) => findMpegSync(head, head.length < HEAD_BYTES) !== undefined,

  async probe(reader, startByte) {
    const endByte = await tailTagsStart(reader, startByte);
    const wanted = Math.min(HEAD_BYTES, endByte - startByte);
    const head = (await reader.peek(startByte, wanted)).slice(0, wanted);
    const sync = findMpegSync(head, startByte + head.length >= endByte);
    if (!sync) return fail('corrupt', 'The MP3 file has no whole frame in it.');
    if (sync.family !== 'mp3' || !sync.header)
      return fail('unsupported', REJECTED[sync.family as keyof typeof REJECTED]);
    const { header } = sync;
    const tag = readInfoTag(head.subarray(sync.at, sync.at + header.frameBytes), header);
    const firstByte = startByte + sync.at + (tag ? header.frameBytes : 0);
    const scan = await scanFrames(reader, header.lock, firstByte, endByte, header.frameSamples, header.sampleRateHz);
    const { skipSamples, endSample } = playedRange(tag, scan.frames * header.frameSamples, header.frameSamples);
    const totalSamples = endSample - skipSamples;
    if (totalSamples <= 0) return fail('no_samples', 'The MP3 file has no samples in it.');
    const isTruncated = scan.isTruncated || (tag?.frames !== undefined && tag.frames > scan.frames + 1);
    const warnings = [
      ...(isTruncated ? ['The MP3 file ends before it should; the part that is there was used.'] : []),
      ...(scan.skippedBytes > 0
        ? [`${scan.skippedBytes} bytes inside the MP3 file are damaged and were left out.`]
        : []),
    ];
    const dataBytesMin = scan.minFrameBytes - 6 - sideInfoBytes({ ...header, channels: 2 });
    return ok({
      format: 'mp3',
      codec: 'mp3',
      sampleRateHz: header.sampleRateHz,
      channels: header.channels,
      totalSamples,
      durationSeconds: totalSamples / header.sampleRateHz,
      ...(warnings.length > 0 ? { warning: warnings.join(' ') } : {}),
      lock: header.lock,
      frameSamples: header.frameSamples,
      skipSamples,
      warmUpFrames: warmUpFrames(dataBytesMin),
      endByte,
      seek: scan.seek,
    });
  },

  async *readMono(reader: BlockReader, index: Mp3Index, decoders: DecoderPort, startSample: number) {
    const { frameSamples } = index;
    const from = startSample + index.skipSamples;
    const end = index.totalSamples + index.skipSamples;
    const firstWanted = Math.floor(from / frameSamples);
    const firstDecoded = Math.max(0, firstWanted - index.warmUpFrames);
    const point = findSeekPoint(index.seek, firstDecoded * frameSamples);
    let frame = point.sample / frameSamples;
    const decoder = decoders.open({ codec: 'mp3', sampleRateHz: index.sampleRateHz, channels: index.channels });
    const out = new Float32Array(frameSamples);
    try {
      for await (const run of walkFrames(reader, index.lock, point.offset, index.endByte)) {
        for (let i = 0; i < run.offsets.length; i++, frame++) {
          if (frame < firstDecoded) continue;
          const first = frame * frameSamples;
          if (first >= end) return;
          const packet = await reader.peek(run.offsets[i], run.lengths[i]);
          const decoded = decoder.decode(packet.subarray(0, run.lengths[i])).subarray(0, frameSamples);
          if (frame < firstWanted) continue;
          // A damaged frame gives less than it should: its time passes all the same.
          out.fill(0);
          out.set(decoded);
          yield out.subarray(Math.max(0, from - first), Math.min(frameSamples, end - first));
        }
      }
    } finally {
      decoder.close();
    }
  },
};

/** Frames after which the reservoir is full again, whatever the encoder did, and two more for overlap and filterbank. */
function warmUpFrames(minDataBytes: number): number {
  const forReservoir = Math.ceil(RESERVOIR_BYTES / Math.max(1, minDataBytes)) + 2;
  return Math.min(MAX_WARM_UP_FRAMES, Math.max(MIN_WARM_UP_FRAMES, forReservoir));
}

async function scanFrames(
  reader: BlockReader,
  lock: number,
  startByte: number,
  endByte: number,
  frameSamples: number,
  sampleRateHz: number,
) {
  const seek = new SeekTableBuilder(SEEK_SECONDS * sampleRateHz);
  let frames = 0;
  let skippedBytes = 0;
  let isTruncated = false;
  let minFrameBytes = Number.POSITIVE_INFINITY;
  for await (const run of walkFrames(reader, lock, startByte, endByte)) {
    for (let i = 0; i < run.offsets.length; i++) {
      seek.add(run.offsets[i], frames * frameSamples);
      if (run.lengths[i] < minFrameBytes) minFrameBytes = run.lengths[i];
      frames++;
    }
    skippedBytes += run.skippedBytes;
    isTruncated = run.isTruncated;
    if (frames * frameSamples > MAX_SCAN_SECONDS * sampleRateHz) break;
  }
  return { frames, skippedBytes, isTruncated, minFrameBytes, seek: seek.build() };
}
