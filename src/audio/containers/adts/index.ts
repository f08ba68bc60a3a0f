import type { BlockReader } from '../../block-reader.ts';
import type { Container, IndexBase } from '../../container.ts';
import { decodeFrames, scanFrames, scannedFrames, scanWarning } from '../../frame-stream.ts';
import { fail, ok } from '../../result.ts';
import type { SeekTable } from '../../seek-table.ts';
import { steady } from '../../steady-decoder.ts';
import { tailTagsStart } from '../../tags.ts';
import type { CodecSpec, DecoderPort } from '../../types.ts';
import { findMpegSync, goesOnWarning, SYNC_BYTES } from '../mp3/sync.ts';
import { adtsLockAt, adtsSyntax, BLOCK_SAMPLES, parseAdtsHeader } from './header.ts';

export interface AdtsIndex extends IndexBase {
  readonly format: 'adts';
  readonly codec: 'aac';
  /** Bits that all frame headers share. */
  readonly lock: number;
  readonly frameSamples: number;
  readonly endByte: number;
  readonly seek: SeekTable;
}

/**
 * The overlap of the transform needs one frame, bandwidth extension the last of its own headers, which come about twice a second.
 */
const WARM_UP_FRAMES = 24;

/** Frames that are decoded to learn the rate of the sound: the first ones may be without bandwidth extension. */
const TRIAL_FRAMES = 24;

/** Raw AAC with ADTS headers: AAC-LC, HE-AAC and HE-AAC v2. The encoder's delay is not written anywhere, so nothing is cut. */
export const adts: Container<AdtsIndex> = {
  format: 'adts',
  hasMagic: false,

  detect: (head) => findMpegSync(head, head.length < SYNC_BYTES)?.family === 'adts',

  async probe(reader, startByte, decoders) {
    const endByte = await tailTagsStart(reader, startByte);
    const wanted = Math.min(SYNC_BYTES, endByte - startByte);
    const head = (await reader.peek(startByte, wanted)).slice(0, wanted);
    const sync = findMpegSync(head, startByte + head.length >= endByte);
    if (sync?.family !== 'adts') return fail('corrupt', 'The AAC file has no whole frame in it.');
    const header = parseAdtsHeader(head, sync.at);
    if (header.blocks > 1)
      return fail('unsupported', 'AAC files with several blocks in an ADTS frame are not supported.');
    const lock = adtsLockAt(head, sync.at);
    const range = { startByte: startByte + sync.at, endByte };
    const sound = await tryDecoding(reader, decoders, lock, header, range);
    if (!sound) return fail('unsupported', 'The AAC file is coded in a way that is not supported.');
    const { frameSamples, sampleRateHz } = sound;
    const scan = await scanFrames(reader, adtsSyntax(lock), range, sound);
    const totalSamples = scan.frames * frameSamples;
    if (totalSamples === 0) return fail('no_samples', 'The AAC file has no samples in it.');
    const rest = await goesOnWarning(
      'AAC',
      reader,
      { startByte: scan.framesEnd, endByte },
      totalSamples / sampleRateHz,
    );
    const warning = scanWarning('AAC', scan, rest);
    return ok({
      format: 'adts',
      codec: 'aac',
      sampleRateHz,
      channels: Math.max(1, header.channels),
      totalSamples,
      durationSeconds: totalSamples / sampleRateHz,
      ...(warning === undefined ? {} : { warning }),
      lock,
      frameSamples,
      endByte,
      seek: scan.seek,
    });
  },

  readMono(reader: BlockReader, index: AdtsIndex, decoders: DecoderPort, startSample: number) {
    const timing = { ...index, skipSamples: 0, warmUpFrames: WARM_UP_FRAMES };
    const frames = scannedFrames(reader, adtsSyntax(index.lock), index);
    // Stations join recordings with and without bandwidth extension, whose headers are the same.
    const open = () => steady(decoders.open(specOf(index.sampleRateHz, index.channels)), index.sampleRateHz);
    return decodeFrames(timing, frames, open, startSample);
  },
};

/** Every packet has its own header, which says all. */
const specOf = (sampleRateHz: number, channels: number): CodecSpec => ({ codec: 'aac', sampleRateHz, channels });

/** Rate and frame length of the sound: only the coded data say whether there is bandwidth extension. */
async function tryDecoding(
  reader: BlockReader,
  decoders: DecoderPort,
  lock: number,
  header: { readonly coreRateHz: number; readonly channels: number },
  range: { readonly startByte: number; readonly endByte: number },
): Promise<{ sampleRateHz: number; frameSamples: number } | undefined> {
  const decoder = decoders.open(specOf(header.coreRateHz, Math.max(1, header.channels)));
  const start = { seek: { deltas: [range.startByte, 0] }, frameSamples: BLOCK_SAMPLES, endByte: range.endByte };
  let tries = 0;
  let factor = 0;
  try {
    frames: for await (const packets of scannedFrames(reader, adtsSyntax(lock), start)(0)) {
      for (const packet of packets) {
        if (decoder.decode(packet).length > 0)
          factor = Math.max(factor, Math.round(decoder.sampleRateHz / header.coreRateHz));
        if (++tries === TRIAL_FRAMES) break frames;
      }
    }
  } finally {
    decoder.close();
  }
  if (factor !== 1 && factor !== 2) return undefined;
  return { sampleRateHz: factor * header.coreRateHz, frameSamples: factor * BLOCK_SAMPLES };
}
