import type { BlockReader } from '../../block-reader.ts';
import { hasAscii } from '../../bytes.ts';
import type { Container, IndexBase } from '../../container.ts';
import { fail, ok } from '../../result.ts';
import { readWavHeader } from './header.ts';
import { monoConverter, type PcmEncoding } from './pcm.ts';

export interface WavIndex extends IndexBase {
  readonly format: 'wav';
  readonly codec: 'pcm';
  readonly encoding: PcmEncoding;
  readonly bytesPerSample: number;
  readonly dataOffset: number;
}

/** Bytes converted at a time. */
const READ_BYTES = 1 << 16;

/** WAV, RF64 and BW64 with uncompressed, A-law or µ-law samples: a sample's place is plain arithmetic. */
export const wav: Container<WavIndex> = {
  format: 'wav',
  hasMagic: true,

  detect: (head) =>
    (hasAscii(head, 0, 'RIFF') || hasAscii(head, 0, 'RF64') || hasAscii(head, 0, 'BW64')) && hasAscii(head, 8, 'WAVE'),

  async probe(reader, startByte) {
    const header = await readWavHeader(reader, startByte);
    if (!header.ok) return header;
    const { dataBytes, warning, ...format } = header.value;
    const totalSamples = Math.floor(dataBytes / (format.bytesPerSample * format.channels));
    if (totalSamples === 0) return fail('no_samples', 'The WAV file has no samples in it.');
    return ok({
      format: 'wav',
      codec: 'pcm',
      ...format,
      totalSamples,
      durationSeconds: totalSamples / format.sampleRateHz,
      ...(warning === undefined ? {} : { warning }),
    });
  },

  async *readMono(reader: BlockReader, index: WavIndex, _decoder, startSample: number) {
    const frameBytes = index.bytesPerSample * index.channels;
    const convert = monoConverter(index.encoding, index.bytesPerSample, index.channels);
    const framesAtOnce = Math.max(1, Math.floor(READ_BYTES / frameBytes));
    const out = new Float32Array(framesAtOnce);
    for (let sample = startSample; sample < index.totalSamples; ) {
      const frames = Math.min(framesAtOnce, index.totalSamples - sample);
      const bytes = await reader.peek(index.dataOffset + sample * frameBytes, frames * frameBytes);
      convert(bytes, frames, out);
      yield out.subarray(0, frames);
      sample += frames;
    }
  },
};
