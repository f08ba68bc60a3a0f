import type { BlockReader } from '../../block-reader.ts';
import type { Container } from '../../container.ts';
import { framePackets, frameWarnings } from '../../frames.ts';
import { fail, ok } from '../../result.ts';
import type { CodecSpec, DecoderPort } from '../../types.ts';
import { findMpegSync, goesOnWarning, SYNC_BYTES } from '../mp3/sync.ts';
import { adtsLockAt, adtsSyntax, BLOCK_SAMPLES, parseAdtsHeader } from './header.ts';

/** Frames that are decoded to learn the rate of the sound: the first ones may be without bandwidth extension. */
const TRIAL_FRAMES = 24;

/**
 * Raw AAC with ADTS headers: AAC-LC, HE-AAC and HE-AAC v2. The encoder's delay is not written anywhere, so nothing is
 * cut.
 */
export const adts: Container = {
  format: 'adts',
  hasMagic: false,

  detect: (head) => findMpegSync(head, head.length < SYNC_BYTES)?.family === 'adts',

  async open(reader, startByte, decoders) {
    const endByte = reader.sizeBytes;
    const wanted = Math.min(SYNC_BYTES, endByte - startByte);
    const head = (await reader.peek(startByte, wanted)).slice(0, wanted);
    const sync = findMpegSync(head, startByte + head.length >= endByte);
    if (sync?.family !== 'adts') return fail('corrupt', 'The AAC file has no whole frame in it.');
    const header = parseAdtsHeader(head, sync.at);
    if (header.blocks > 1)
      return fail('unsupported', 'AAC files with several blocks in an ADTS frame are not supported.');
    const lock = adtsLockAt(head, sync.at);
    const firstByte = startByte + sync.at;
    const { coreRateHz } = header;
    const channels = Math.max(1, header.channels);
    const factor = await rateFactor(reader, decoders, lock, { coreRateHz, channels }, firstByte);
    if (factor === undefined) return fail('unsupported', 'The AAC file is coded in a way that is not supported.');
    const sampleRateHz = factor * coreRateHz;
    return ok({
      format: 'adts',
      where: 'The AAC file',
      codec: 'aac',
      sampleRateHz,
      channels,
      openDecoder: () => decoders.open(specOf(sampleRateHz, channels)),
      walk: (faults, entry = firstByte) =>
        framePackets(reader, adtsSyntax(lock), { startByte: entry, endByte }, factor * BLOCK_SAMPLES, faults),
      async warnings(faults, { position }) {
        const rest = { startByte: Number(faults.framesEnd ?? firstByte), endByte };
        return [
          ...frameWarnings('AAC', faults),
          ...(await goesOnWarning('AAC', reader, rest, position / sampleRateHz)),
        ];
      },
    });
  },
};

/** Every packet has its own header, which says all. */
const specOf = (sampleRateHz: number, channels: number): CodecSpec => ({ codec: 'aac', sampleRateHz, channels });

/**
 * How much higher the rate of the sound is than that of the headers: only the coded data say whether there is bandwidth
 * extension.
 */
async function rateFactor(
  reader: BlockReader,
  decoders: DecoderPort,
  lock: number,
  { coreRateHz, channels }: { readonly coreRateHz: number; readonly channels: number },
  startByte: number,
): Promise<number | undefined> {
  const decoder = decoders.open(specOf(coreRateHz, channels));
  const range = { startByte, endByte: reader.sizeBytes };
  let tries = 0;
  let factor = 0;
  try {
    frames: for await (const { packets } of framePackets(reader, adtsSyntax(lock), range, BLOCK_SAMPLES, {})) {
      for (const { offset, length } of packets) {
        const frame = (await reader.peek(offset, length)).subarray(0, length);
        if (decoder.decode(frame).length > 0) factor = Math.max(factor, Math.round(decoder.sampleRateHz / coreRateHz));
        if (++tries === TRIAL_FRAMES) break frames;
      }
    }
  } finally {
    decoder.close();
  }
  return factor === 1 || factor === 2 ? factor : undefined;
}
