import type { BlockReader } from '../../block-reader.ts';
import { fromHex, hasAscii, toHex } from '../../bytes.ts';
import { type Container, type IndexBase, MAX_SCAN_SECONDS, MONO_BLOCK_SAMPLES } from '../../container.ts';
import { fail, ok } from '../../result.ts';
import { findSeekPoint, type SeekTable, SeekTableBuilder } from '../../seek-table.ts';
import { tailTagsStart } from '../../tags.ts';
import type { DecoderPort } from '../../types.ts';
import { goesOn, hasStreamBehind } from './behind.ts';
import { parseStreamInfo, readMetadata } from './stream-info.ts';
import { walkFlacFrames } from './walker.ts';

export interface FlacIndex extends IndexBase {
  readonly format: 'flac';
  readonly codec: 'flac';
  /** The 34 bytes of STREAMINFO, hexadecimal. */
  readonly streamInfo: string;
  readonly endByte: number;
  readonly seek: SeekTable;
}

const SEEK_SECONDS = 10;

/** Native FLAC, fixed and variable block size. */
export const flac: Container<FlacIndex> = {
  format: 'flac',
  hasMagic: true,

  detect: (head) => hasAscii(head, 0, 'fLaC'),

  async probe(reader, startByte) {
    const metadata = await readMetadata(reader, startByte);
    if (!metadata.ok) return metadata;
    const { info, raw, firstByte } = metadata.value;
    const endByte = await tailTagsStart(reader, startByte);
    const seek = new SeekTableBuilder(SEEK_SECONDS * info.sampleRateHz);
    let totalSamples = 0;
    let gaps = 0;
    let isCut = false;
    let lastFrame = firstByte;
    for await (const frame of walkFlacFrames(reader, info, firstByte, endByte, 0)) {
      isCut ||= frame.samples === 0;
      lastFrame = frame.offset;
      if (frame.samples > 0) seek.add(frame.offset, totalSamples + frame.gapSamples);
      totalSamples += frame.gapSamples + frame.samples;
      gaps += frame.gapSamples;
      if (totalSamples > MAX_SCAN_SECONDS * info.sampleRateHz) break;
    }
    if (totalSamples === 0) return fail('no_samples', 'The FLAC file has no samples in it.');
    const gapSeconds = (gaps / info.sampleRateHz).toFixed(1);
    const warnings = [
      ...(isCut || totalSamples < info.totalSamples
        ? ['The FLAC file ends before it should; the part that is there was used.']
        : []),
      ...((await hasStreamBehind(reader, lastFrame, endByte)) ? [goesOn(totalSamples / info.sampleRateHz)] : []),
      ...(gaps > 0 ? [`Damaged parts of the FLAC file, ${gapSeconds} s in all, were taken as silence.`] : []),
    ];
    return ok({
      format: 'flac',
      codec: 'flac',
      sampleRateHz: info.sampleRateHz,
      channels: info.channels,
      totalSamples,
      durationSeconds: totalSamples / info.sampleRateHz,
      ...(warnings.length > 0 ? { warning: warnings.join(' ') } : {}),
      streamInfo: toHex(raw),
      endByte,
      seek: seek.build(),
    });
  },

  async *readMono(reader: BlockReader, index: FlacIndex, decoders: DecoderPort, startSample: number) {
    const extraData = fromHex(index.streamInfo);
    const info = parseStreamInfo(extraData);
    const { sampleRateHz, channels } = info;
    const decoder = decoders.open({ codec: 'flac', sampleRateHz, channels, extraData });
    const point = findSeekPoint(index.seek, startSample);
    const out = new Float32Array(MONO_BLOCK_SAMPLES);
    let sample = point.sample;
    try {
      // Frames that are missing at the beginning.
      for (let at = startSample; at < point.sample; at += MONO_BLOCK_SAMPLES) {
        yield out.fill(0).subarray(0, Math.min(MONO_BLOCK_SAMPLES, point.sample - at));
      }
      for await (const frame of walkFlacFrames(reader, info, point.offset, index.endByte, point.sample, true)) {
        for (let gap = sample === point.sample ? 0 : frame.gapSamples; gap > 0; ) {
          const length = Math.min(gap, MONO_BLOCK_SAMPLES);
          if (sample + length > startSample) yield out.fill(0).subarray(Math.max(0, startSample - sample), length);
          sample += length;
          gap -= length;
        }
        if (sample + frame.samples > startSample) {
          const view = await reader.peek(frame.offset, frame.bytes);
          const decoded = decoder.decode(view.subarray(0, frame.bytes)).subarray(0, frame.samples);
          // A damaged frame gives less than it should: its time passes all the same.
          out.fill(0, 0, frame.samples);
          out.set(decoded);
          yield out.subarray(Math.max(0, startSample - sample), frame.samples);
        }
        sample += frame.samples;
      }
    } finally {
      decoder.close();
    }
  },
};
