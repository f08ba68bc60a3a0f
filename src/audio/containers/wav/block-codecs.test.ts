import { describe, expect, it } from 'vitest';
import { audioPorts, concat, memorySource, readSourceRate, worstDifference } from '../../../../test/helpers/audio.ts';
import { find } from '../../../../test/helpers/bytes.ts';
import { formatFixture, indexOf } from '../../../../test/helpers/indexes.ts';
import { wavFile } from '../../../../test/helpers/wav.ts';
import { BlockReader } from '../../block-reader.ts';
import { MAX_BLOCK_SAMPLES } from '../../container.ts';
import { Decoding } from '../../decode.ts';
import { openPart } from '../../open.ts';
import { blockSamples } from './block-codecs.ts';

const ports = audioPorts();

const u32 = (value: number) => Uint8Array.of(value & 255, (value >> 8) & 255, (value >> 16) & 255, value >>> 24);

describe('blocks', () => {
  it.each([
    // The formulas of Microsoft's WAVE documentation for wSamplesPerBlock.
    ['adpcm-ima-wav', 1, 4, 256, 505],
    ['adpcm-ima-wav', 2, 4, 1024, 1017],
    ['adpcm-ima-wav', 1, 3, 256, 673],
    ['adpcm-ms', 1, 4, 256, 500],
    ['adpcm-ms', 2, 4, 1024, 1012],
    ['gsm-ms', 1, 0, 65, 320],
    ['adpcm-ima-wav', 1, 4, 3, 0],
    ['adpcm-ms', 2, 4, 13, 0],
    ['gsm-ms', 1, 0, 64, 0],
  ] as const)(
    '%s, %i channels, %i bits, %i bytes: %i samples',
    (codec, channels, bitsPerCodedSample, bytes, samples) => {
      const format = { codec, channels, bitsPerCodedSample, blockBytes: bytes, sampleRateHz: 8000 };
      expect(blockSamples(format, bytes)).toBe(samples);
    },
  );

  it('a fact chunk that cannot be is not believed', async () => {
    const base = { sampleRateHz: 8000, channels: 1, tag: 17, bits: 4, blockAlign: 256 };
    const data = new Uint8Array(3 * 256);
    for (const [fact, totalSamples] of [
      [1011, 1011],
      [1515, 1515],
      [1010, 1515],
      [5, 1515],
      [99_999, 1515],
    ]) {
      expect(await indexOf(wavFile({ ...base, extra: [['fact', u32(fact)]] }, data))).toMatchObject({ totalSamples });
    }
  });

  it('a last block that is cut short holds fewer samples', async () => {
    const file = wavFile(
      { sampleRateHz: 8000, channels: 1, tag: 17, bits: 4, blockAlign: 256 },
      new Uint8Array(256 + 12),
    );
    const index = await indexOf(file);
    expect(index).toMatchObject({ totalSamples: 505 + 17 });
    expect(await readSourceRate(file, index, ports)).toHaveLength(522);
  });
});

it('GSM continues where a decoder starts again: what it decoded before is in what it predicts from', async () => {
  const piece = formatFixture('wav-gsm-8000-mono.wav');
  const dataOffset = find(piece, 'data') + 8;
  const dataBytes = new DataView(piece.buffer, piece.byteOffset).getUint32(dataOffset - 4, true);
  const blocks = concat(...Array.from({ length: 12 }, () => piece.subarray(dataOffset, dataOffset + dataBytes)));
  const options = { sampleRateHz: 8000, channels: 1, tag: 49, bits: 0, blockAlign: 65 };
  const file = wavFile(options, blocks);
  const samples = await readSourceRate(file, await indexOf(file), ports);
  const decoder = ports.decoder.open({ codec: 'gsm-ms', sampleRateHz: 8000, channels: 1 });
  const once = new Float32Array(samples.length);
  for (let at = 0; at < blocks.length; at += 65)
    once.set(decoder.decode(blocks.subarray(at, at + 65)), (at / 65) * 320);
  decoder.close();
  expect(samples.length).toBeGreaterThan(20 * 8000);
  expect(worstDifference(samples, once)).toBeLessThan(1e-3);
});

it('MP3 in WAV is read as the MP3 in it', async () => {
  const mp3 = formatFixture('mp3-8000-mono.mp3');
  const file = wavFile(
    { sampleRateHz: 8000, channels: 1, tag: 85, bits: 0, blockAlign: 1, tail: new Uint8Array(50) },
    mp3,
  );
  const [inside, plain] = [await indexOf(file), await indexOf(mp3)];
  expect(inside).toMatchObject({ format: 'wav', codec: 'mp3', totalSamples: plain.totalSamples });
  const samples = await readSourceRate(file, inside, ports);
  expect(worstDifference(samples, await readSourceRate(mp3, plain, ports))).toBe(0);
  const cut = concat(file.slice(0, 3000));
  expect(await indexOf(cut)).toMatchObject({ warning: expect.stringMatching(/ends before/) });
});

it('MPEG audio in WAV keeps its own warnings beside those of the header', async () => {
  const mp3 = formatFixture('mp3-8000-mono.mp3');
  const middle = Math.floor(mp3.length / 2);
  const damaged = concat(mp3.subarray(0, middle), new Uint8Array(3000), mp3.subarray(middle));
  const options = { sampleRateHz: 8000, channels: 1, tag: 85, bits: 0, blockAlign: 1, declaredBytes: 0xffffffff };
  const { warning } = await indexOf(wavFile(options, damaged));
  expect(warning).toMatch(
    /^The header of the WAV file does not say how long .* \d+ bytes inside the MP3 file are damaged/,
  );
});

it('blocks of ADPCM longer than a reader may give come in parts', async () => {
  const options = { sampleRateHz: 8000, channels: 1, tag: 17, bits: 4, blockAlign: 65_532 };
  const data = new Uint8Array(2 * 65_532).fill(0x35);
  data.fill(0, 0, 4).fill(0, 65_532, 65_536);
  const file = wavFile(options, data);
  const index = await indexOf(file);
  expect(index.totalSamples).toBe(2 * 131_057);
  const reader = new BlockReader(memorySource(file));
  const part = await openPart(reader, ports.decoder);
  if (!part.ok) throw new Error(part.error.message);
  const samples: number[] = [];
  for await (const block of (await Decoding.open(reader, part.value)).blocks(131_000)) {
    expect(block.length).toBeLessThanOrEqual(MAX_BLOCK_SAMPLES);
    samples.push(...block);
  }
  expect(samples).toEqual([...(await readSourceRate(file, index, ports)).subarray(131_000)]);
});
