import { describe, expect, it } from 'vitest';
import {
  audioPorts,
  concat,
  memorySource,
  outputSampleCount,
  probeAudio,
  readRange,
  readSourceRate,
  worstDifference,
} from '../../../test/helpers/audio.ts';
import { find } from '../../../test/helpers/bytes.ts';
import { formatFixture, indexOf } from '../../../test/helpers/indexes.ts';
import { pcm16, type WavOptions, wavFile, wavHeader } from '../../../test/helpers/wav.ts';
import { BlockReader } from '../block-reader.ts';
import { MAX_BLOCK_SAMPLES } from '../container.ts';
import { Decoding } from '../decode.ts';
import { openPart } from '../recording.ts';
import { blockSamples } from './wav.ts';

const ports = audioPorts();
const base: WavOptions = { sampleRateHz: 16000, channels: 1, tag: 1, bits: 16 };

async function samplesOf(file: Uint8Array): Promise<number[]> {
  const index = await indexOf(file);
  return Array.from(await readSourceRate(file, index, ports));
}

const bytesOf = (array: Int16Array | Int32Array | Float32Array | Float64Array) => new Uint8Array(array.buffer);

describe('decodes WAV sample formats', () => {
  it('PCM, 8 bits unsigned', async () => {
    const file = wavFile({ ...base, bits: 8 }, Uint8Array.of(0, 64, 128, 255));
    expect(await samplesOf(file)).toEqual([-1, -0.5, 0, 127 / 128]);
  });

  it('PCM, 16 bits', async () => {
    const file = wavFile(base, bytesOf(Int16Array.of(-32768, -1, 0, 16384, 32767)));
    expect(await samplesOf(file)).toEqual([-1, -1 / 32768, 0, 0.5, 32767 / 32768]);
  });

  it('PCM, 24 bits', async () => {
    const file = wavFile({ ...base, bits: 24 }, Uint8Array.of(0, 0, 0x80, 0xff, 0xff, 0xff, 0, 0, 0x40, 1, 0, 0));
    expect(await samplesOf(file)).toEqual([-1, -1 / 8388608, 0.5, 1 / 8388608]);
  });

  it('PCM, 32 bits', async () => {
    const file = wavFile({ ...base, bits: 32 }, bytesOf(Int32Array.of(-2147483648, 1073741824, 0)));
    expect(await samplesOf(file)).toEqual([-1, 0.5, 0]);
  });

  it('PCM, 12 bits in the upper bits of 16', async () => {
    const file = wavFile({ ...base, bits: 12 }, bytesOf(Int16Array.of(0x4000, -0x8000)));
    expect(await samplesOf(file)).toEqual([0.5, -1]);
  });

  it('float, 32 and 64 bits: NaN and infinity become 0', async () => {
    const values = [0.25, -1.5, Number.NaN, Number.POSITIVE_INFINITY, 1];
    const clean = [0.25, -1.5, 0, 0, 1];
    expect(await samplesOf(wavFile({ ...base, tag: 3, bits: 32 }, bytesOf(Float32Array.from(values))))).toEqual(clean);
    expect(await samplesOf(wavFile({ ...base, tag: 3, bits: 64 }, bytesOf(Float64Array.from(values))))).toEqual(clean);
    expect(await samplesOf(wavFile({ ...base, tag: 3, bits: 64 }, bytesOf(Float64Array.of(1e300))))).toEqual([0]);
  });

  it('A-law and µ-law of ITU-T G.711', async () => {
    const aLaw = await samplesOf(wavFile({ ...base, tag: 6, bits: 8 }, Uint8Array.of(0xd5, 0x55, 0xaa, 0x2a, 0x80)));
    expect(aLaw.map((value) => value * 32768)).toEqual([8, -8, 32256, -32256, 5504]);
    const muLaw = await samplesOf(wavFile({ ...base, tag: 7, bits: 8 }, Uint8Array.of(0xff, 0x7f, 0x80, 0x00, 0xf0)));
    expect(muLaw.map((value) => value * 32768)).toEqual([0, -0, 32124, -32124, 120]);
  });

  it.each([
    [1, 4],
    [1, 1],
    [1, 16],
    [1, 0],
    [2, 2],
  ])('PCM, 16 bits, %i channels with a wrong alignment of %i', async (channels, blockAlign) => {
    const frames = [16384, -8192].flatMap((value) => Array<number>(channels).fill(value));
    const file = wavFile({ ...base, channels, blockAlign }, bytesOf(Int16Array.from(frames)));
    expect(await samplesOf(file)).toEqual([0.5, -0.25]);
  });

  it('PCM, 24 bits in three or four bytes by the alignment', async () => {
    const inFour = wavFile({ ...base, bits: 24, blockAlign: 4 }, bytesOf(Int32Array.of(0x40000000)));
    expect(await samplesOf(inFour)).toEqual([0.5]);
    const wrong = wavFile({ ...base, bits: 24, blockAlign: 2 }, Uint8Array.of(0, 0, 0x40));
    expect(await samplesOf(wrong)).toEqual([0.5]);
  });

  it('WAVE_FORMAT_EXTENSIBLE', async () => {
    const file = wavFile({ ...base, isExtensible: true }, bytesOf(Int16Array.of(16384)));
    expect(await samplesOf(file)).toEqual([0.5]);
    const float = wavFile({ ...base, tag: 3, bits: 32, isExtensible: true }, bytesOf(Float32Array.of(0.125)));
    expect(await samplesOf(float)).toEqual([0.125]);
  });

  it.each([2, 3, 6, 64])('%i channels become their mean', async (channels) => {
    const frame = Int16Array.from({ length: channels }, (_, c) => (c === 0 ? 16384 : 0));
    const file = wavFile({ ...base, channels }, bytesOf(Int16Array.from([...frame, ...frame])));
    const expected = Math.fround(0.5 / channels);
    expect(await samplesOf(file)).toEqual([expected, expected]);
  });
});

describe('sizes in the WAV header', () => {
  const data = pcm16(Float32Array.from({ length: 1000 }, (_, i) => Math.sin(i / 5)));

  it('are used in a valid file', async () => {
    const index = await indexOf(wavFile(base, data));
    expect(index).toMatchObject({ totalSamples: 1000, durationSeconds: 1000 / 16000, channels: 1, codec: 'pcm' });
    expect(index.warning).toBeUndefined();
  });

  it.each([0, 0xffffffff, 0x7ffff000])(
    'may be unknown (%i): the file is used to its end, with a warning',
    async (declaredBytes) => {
      const index = await indexOf(wavFile({ ...base, declaredBytes }, data));
      expect(index.totalSamples).toBe(1000);
      expect(index.warning).toMatch(/does not say how long/);
    },
  );

  it('may exceed the file: it is used to its end, with a warning', async () => {
    const complete = wavFile(base, data);
    const index = await indexOf(complete.subarray(0, complete.length - 501));
    expect(index.totalSamples).toBe(749);
    expect(index.warning).toMatch(/is incomplete|is shorter than/);
    const samples = await readRange(complete.subarray(0, complete.length - 501), index, ports, 0, 749);
    expect(samples[748]).toBe(Math.round(Math.sin(748 / 5) * 32768) / 32768);
  });

  it('exclude chunks after the data', async () => {
    const tail = Uint8Array.of(0x4c, 0x49, 0x53, 0x54, 4, 0, 0, 0, 1, 2, 3, 4);
    const index = await indexOf(wavFile({ ...base, tail }, data));
    expect(index.totalSamples).toBe(1000);
    expect(index.warning).toBeUndefined();
  });

  it('cause a warning for audio after the data, but not for zeros', async () => {
    const audio = Uint8Array.from({ length: 20_000 }, (_, i) => 128 + (i % 90));
    for (const zeros of [0, 18, 5000, 300_000]) {
      const tail = new Uint8Array(zeros + audio.length);
      tail.set(audio, zeros);
      const index = await indexOf(wavFile({ ...base, tail }, data));
      expect(index).toMatchObject({
        totalSamples: 1000,
        warning: expect.stringMatching(/^\d+ bytes after the samples/),
      });
      expect((await indexOf(wavFile({ ...base, tail: new Uint8Array(tail.length) }, data))).warning).toBeUndefined();
    }
  });

  it('of a chunk may be odd without a padding byte', async () => {
    const padded = wavFile({ ...base, extra: [['note', Uint8Array.of(1, 2, 3)]] }, data);
    const at = Buffer.from(padded).indexOf('data');
    const file = new Uint8Array(Buffer.concat([padded.subarray(0, at - 1), padded.subarray(at)]));
    expect((await indexOf(padded)).totalSamples).toBe(1000);
    expect((await indexOf(file)).totalSamples).toBe(1000);
  });

  it('of 64 bits are read from ds64', async () => {
    const index = await indexOf(wavFile({ ...base, magic: 'RF64' }, data));
    expect(index).toMatchObject({ totalSamples: 1000 });
    expect(index.warning).toBeUndefined();
    expect(await indexOf(wavFile({ ...base, magic: 'BW64' }, data))).toMatchObject({ totalSamples: 1000 });
  });

  it('may be 0 for an empty file', async () => {
    const tail = Uint8Array.of(0x4c, 0x49, 0x53, 0x54, 4, 0, 0, 0, 1, 2, 3, 4);
    for (const file of [wavFile(base, new Uint8Array(0)), wavFile({ ...base, tail }, new Uint8Array(0))]) {
      expect(await probeAudio(memorySource(file), ports.decoder)).toMatchObject({
        ok: false,
        error: { kind: 'no_samples' },
      });
    }
  });

  it('of other chunks may be odd', async () => {
    const extra = [['junk', Uint8Array.of(1, 2, 3)] as const, ['LIST', new Uint8Array(5001)] as const];
    expect(await indexOf(wavFile({ ...base, extra }, data))).toMatchObject({ totalSamples: 1000 });
  });
});

describe('the WAV reader', () => {
  const reject = async (options: Partial<WavOptions>, kind: string, message: RegExp) => {
    const probed = await probeAudio(memorySource(wavFile({ ...base, ...options }, new Uint8Array(100))), ports.decoder);
    expect(probed).toMatchObject({ ok: false, error: { kind, message: expect.stringMatching(message) } });
  };

  it('names an unsupported coding', async () => {
    await reject({ tag: 2, bits: 4, blockAlign: 256, channels: 8 }, 'unsupported', /Microsoft ADPCM with 8 channels/);
    await reject({ tag: 17, bits: 2, blockAlign: 256 }, 'unsupported', /IMA ADPCM with 2 bits/);
    await reject({ tag: 49, bits: 0, blockAlign: 64 }, 'unsupported', /GSM 6\.10 in blocks of 64 bytes/);
    await reject({ tag: 85, bits: 0, blockAlign: 1 }, 'corrupt', /MP3/);
    await reject({ tag: 17, bits: 4, blockAlign: 12 }, 'unsupported', /IMA ADPCM in blocks of 12 bytes/);
    await reject({ tag: 255 }, 'unsupported', /AAC/);
    await reject({ tag: 0x1234 }, 'unsupported', /4660/);
  });

  it('bounds rate, channels and bits', async () => {
    await reject({ sampleRateHz: 0 }, 'unsupported', /0 Hz/);
    await reject({ sampleRateHz: 999 }, 'unsupported', /999 Hz/);
    await reject({ sampleRateHz: 384_001 }, 'unsupported', /384001 Hz/);
    await reject({ channels: 0 }, 'unsupported', /0 channels/);
    await reject({ channels: 65 }, 'unsupported', /65 channels/);
    await reject({ bits: 64 }, 'unsupported', /64 bits/);
    await reject({ tag: 3, bits: 16 }, 'unsupported', /16 bits/);
    await reject({ bits: 0, blockAlign: 0 }, 'unsupported', /0 bits/);
  });

  it('rejects a truncated header', async () => {
    const header = wavHeader(base, 100);
    for (const length of [12, 20, 30, 36, 40]) {
      const probed = await probeAudio(memorySource(header.slice(0, length)), ports.decoder);
      expect(probed).toMatchObject({ ok: false });
    }
  });
});

it('resamples any rate to 16 kHz with the right length', async () => {
  for (const sampleRateHz of [1000, 8000, 11025, 22050, 44100, 48000, 96000, 192000, 384000, 12345]) {
    const seconds = 0.5;
    const frames = Math.round(sampleRateHz * seconds);
    const tone = Float32Array.from(
      { length: frames },
      (_, i) => 0.5 * Math.sin((2 * Math.PI * 200 * i) / sampleRateHz),
    );
    const file = wavFile({ ...base, sampleRateHz }, pcm16(tone));
    const index = await indexOf(file);
    const count = outputSampleCount(index);
    expect(count).toBe(Math.ceil((frames * 16000) / sampleRateHz));
    const out = await readRange(file, index, ports, 0, count);
    expect(out).toHaveLength(count);
    // Away from the ends, the tone has the same phase.
    let worst = 0;
    for (let i = 2000; i < count - 2000; i++) {
      worst = Math.max(worst, Math.abs(out[i] - 0.5 * Math.sin((2 * Math.PI * 200 * i) / 16000)));
    }
    expect(worst).toBeLessThan(2e-4);
  }
});

const u32 = (value: number) => Uint8Array.of(value & 255, (value >> 8) & 255, (value >> 16) & 255, value >>> 24);

describe('WAV blocks', () => {
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

  it('ignore an impossible fact chunk', async () => {
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

  it('have fewer samples in a truncated last block', async () => {
    const file = wavFile(
      { sampleRateHz: 8000, channels: 1, tag: 17, bits: 4, blockAlign: 256 },
      new Uint8Array(256 + 12),
    );
    const index = await indexOf(file);
    expect(index).toMatchObject({ totalSamples: 505 + 17 });
    expect(await readSourceRate(file, index, ports)).toHaveLength(522);
  });
});

it('decodes GSM the same across a restart of the decoder', async () => {
  const short = formatFixture('wav-gsm-8000-mono.wav');
  const dataOffset = find(short, 'data') + 8;
  const dataBytes = new DataView(short.buffer, short.byteOffset).getUint32(dataOffset - 4, true);
  const blocks = concat(...Array.from({ length: 12 }, () => short.subarray(dataOffset, dataOffset + dataBytes)));
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

it('reads MP3 in WAV like the bare MP3', async () => {
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
  expect(await indexOf(cut)).toMatchObject({ warning: expect.stringMatching(/is incomplete|is shorter than/) });
});

it('reports the warnings of the header and of the MPEG audio in WAV', async () => {
  const mp3 = formatFixture('mp3-8000-mono.mp3');
  const middle = Math.floor(mp3.length / 2);
  const damaged = concat(mp3.subarray(0, middle), new Uint8Array(3000), mp3.subarray(middle));
  const options = { sampleRateHz: 8000, channels: 1, tag: 85, bits: 0, blockAlign: 1, declaredBytes: 0xffffffff };
  const { warning } = await indexOf(wavFile(options, damaged));
  expect(warning).toMatch(
    /^The header of the WAV file does not say how long .* \d+ bytes inside the MP3 file are damaged/,
  );
});

it('splits ADPCM blocks above the block limit', async () => {
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
