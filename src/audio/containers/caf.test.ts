import { describe, expect, it } from 'vitest';
import { type CafOptions, cafFile } from '../../../test/helpers/apple-audio.ts';
import {
  audioPorts,
  concat,
  memorySource,
  probeAudio,
  readSourceRate,
  worstDifference,
} from '../../../test/helpers/audio.ts';
import { formatFixture, indexOf } from '../../../test/helpers/indexes.ts';
import { BlockReader } from '../block-reader.ts';
import { adtsFrameBytesAt, adtsLockAt } from './mpeg-frames.ts';
import { readStream } from './ogg.ts';
import { walkOgg } from './ogg-pages.ts';

const ports = audioPorts();

const samplesOf = async (options: CafOptions, data: ArrayLike<number>) => {
  const file = cafFile(options, data);
  return [...(await readSourceRate(file, await indexOf(file), ports))];
};

/** The packets of an ADTS file without their headers, and a cookie with the content of the headers. */
function fromAdts(adts: Uint8Array, repeats: number) {
  const packets: Uint8Array[] = [];
  for (let at = 0; at < adts.length; ) {
    const length = adtsFrameBytesAt(adts, at, adtsLockAt(adts, 0));
    packets.push(adts.slice(at + (adts[at + 1] & 1 ? 7 : 9), at + length));
    at += length;
  }
  const rateIndex = (adts[2] >> 2) & 15;
  const channels = ((adts[2] & 1) << 2) | (adts[3] >> 6);
  const config = [(((adts[2] >> 6) + 1) << 3) | (rateIndex >> 1), ((rateIndex & 1) << 7) | (channels << 3)];
  const decoderConfig = [0x40, 0x15, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, config.length, ...config];
  const cookie = [
    3,
    0x80,
    0x80,
    0x80,
    3 + 2 + decoderConfig.length,
    0,
    0,
    0,
    4,
    decoderConfig.length,
    ...decoderConfig,
  ];
  const all = Array.from({ length: repeats }, () => packets).flat();
  return { cookie, lengths: all.map(({ length }) => length), data: concat(...all), packets: packets.length };
}

it('accepts bytes after the audio that are no chunk', async () => {
  const file = cafFile({}, [0x40, 0, 0xc0, 0]);
  const tails = [0xff, 0x80, 0, 0x41].map((byte) => new Uint8Array(100).fill(byte));
  for (const tail of [...tails, new TextEncoder().encode(`data${'\xff'.repeat(30)}`)]) {
    const both = concat(file, tail);
    const index = await indexOf(both);
    expect(index.warning).toBeUndefined();
    expect([...(await readSourceRate(both, index, ports))]).toEqual([0.5, -0.5]);
  }
});

describe('uncompressed samples of Core Audio files', () => {
  it.each<[string, CafOptions, number[], number[]]>([
    ['16 bits, big-endian', {}, [0x40, 0, 0xc0, 0], [0.5, -0.5]],
    ['16 bits, little-endian', { flags: 2 }, [0, 0x40], [0.5]],
    ['8 bits', { bytesPerPacket: 1 }, [0xc0], [-0.5]],
    ['24 bits', { bytesPerPacket: 3 }, [0xc0, 0, 0], [-0.5]],
    ['float', { bytesPerPacket: 4, flags: 1 }, [0x3f, 0, 0, 0], [0.5]],
    ['double, little-endian', { bytesPerPacket: 8, flags: 3 }, [0, 0, 0, 0, 0, 0, 0xe0, 0x3f], [0.5]],
    ['alaw', { formatId: 'alaw', bytesPerPacket: 1 }, [0xd5], [8 / 32768]],
    ['two channels: their mean', { channels: 2, bytesPerPacket: 4 }, [0x40, 0, 0xc0, 0, 0x40, 0, 0, 0], [0, 0.25]],
  ])('%s', async (_name, options, data, expected) => {
    expect(await samplesOf(options, data)).toEqual(expected);
  });

  it('with an unknown or too long declared length are used to the end, with a warning', async () => {
    for (const declaredBytes of [-1, 9999]) {
      expect(await indexOf(cafFile({ declaredBytes }, new Uint8Array(201)))).toMatchObject({
        totalSamples: 100,
        warning: expect.any(String),
      });
    }
  });
});

it('limits IMA ADPCM to the valid frames of the packet table', async () => {
  const options: CafOptions = { formatId: 'ima4', bytesPerPacket: 34, framesPerPacket: 64 };
  const data = new Uint8Array(2 * 34);
  for (const [validFrames, totalSamples] of [
    [100, 100],
    [1000, 128],
    [0, 128],
  ]) {
    const file = cafFile({ ...options, packets: { lengths: [], validFrames: validFrames! } }, data);
    expect(await indexOf(file)).toMatchObject({ codec: 'adpcm-ima-qt', totalSamples });
  }
});

describe('Core Audio packets with a table', () => {
  // 30 s, so that a decoder is restarted in between.
  const { cookie, lengths, data, packets } = fromAdts(formatFixture('adts-aac-16000-mono.aac'), 8);
  const base: CafOptions = { formatId: 'aac ', bytesPerPacket: 0, framesPerPacket: 1024, cookie };

  it('AAC: priming and frames after the valid ones are cut, for a table at either end', async () => {
    const total = lengths.length * 1024;
    for (const isTableLast of [false, true]) {
      const table = { lengths, validFrames: total - 2112 - 500, primingFrames: 2112 };
      const file = cafFile({ ...base, packets: table, isTableLast }, data);
      const index = await indexOf(file);
      expect(index).toMatchObject({ codec: 'aac', sampleRateHz: 16000, totalSamples: total - 2612 });
      const plain = cafFile({ ...base, packets: { lengths, validFrames: 0 } }, data);
      const all = await readSourceRate(plain, await indexOf(plain), ports);
      expect(all).toHaveLength(total);
      const samples = await readSourceRate(file, index, ports);
      expect(worstDifference(samples, all.slice(2112, total - 500))).toBe(0);
      const direct = formatFixture('adts-aac-16000-mono.aac');
      const expected = await readSourceRate(direct, await indexOf(direct), ports);
      expect(worstDifference(all.slice(0, packets * 1024), expected)).toBe(0);
    }
  });

  it('HE-AAC: the sample rate is that of the decoder', async () => {
    const he = fromAdts(formatFixture('adts-heaac-44100-mono.aac'), 1);
    const options: CafOptions = { ...base, rateHz: 22050, cookie: he.cookie };
    const file = cafFile(
      { ...options, packets: { lengths: he.lengths, validFrames: 40_000, primingFrames: 1000 } },
      he.data,
    );
    const index = await indexOf(file);
    expect(index).toMatchObject({ sampleRateHz: 44100, totalSamples: 80_000 });
    const plain = cafFile({ ...options, packets: { lengths: he.lengths, validFrames: 0 } }, he.data);
    const all = await readSourceRate(plain, await indexOf(plain), ports);
    expect(worstDifference(await readSourceRate(file, index, ports), all.subarray(2000, 82_000))).toBe(0);
  });

  it('Opus: frames are counted at 24 kHz, and the samples equal those of OGG', async () => {
    const ogg = formatFixture('ogg-opus-speech-mono.opus');
    const reader = new BlockReader(memorySource(ogg));
    const stream = await readStream(reader, 0);
    if (!stream.ok) throw new Error(stream.error.message);
    const opus: Uint8Array[] = [];
    for await (const { packets: run } of walkOgg(reader, stream.value.serial, stream.value.firstByte, {})) {
      opus.push(...run.map(({ bytes = new Uint8Array(0) }) => bytes));
    }
    const expected = await readSourceRate(ogg, await indexOf(ogg), ports);
    const table = {
      lengths: opus.map(({ length }) => length),
      validFrames: expected.length / 2,
      primingFrames: 312 / 2,
    };
    const file = cafFile(
      { ...base, formatId: 'opus', rateHz: 24000, framesPerPacket: 480, packets: table },
      concat(...opus),
    );
    const index = await indexOf(file);
    expect(index).toMatchObject({ codec: 'opus', sampleRateHz: 48000, channels: 1, totalSamples: expected.length });
    expect(worstDifference(await readSourceRate(file, index, ports), expected)).toBe(0);
  });

  it('warn of a table with more packets than the data contain', async () => {
    const file = cafFile({ ...base, packets: { lengths, validFrames: 0 } }, data.slice(0, data.length >> 1));
    expect(await indexOf(file)).toMatchObject({ warning: expect.stringMatching(/is incomplete|is shorter than/) });
  });

  it('are rejected without a table or a cookie', async () => {
    const good = { lengths, validFrames: 0 };
    for (const options of [
      base,
      { ...base, cookie: undefined, packets: good },
      { ...base, cookie: [1, 2], packets: good },
    ]) {
      expect(await probeAudio(memorySource(cafFile(options, data)), ports.decoder)).toMatchObject({
        ok: false,
        error: { kind: 'corrupt' },
      });
    }
  });
});

it('names the unsupported feature of a rejected Core Audio file', async () => {
  for (const [options, message] of [
    [{ formatId: 'ilbc' }, /'ilbc'/],
    [{ formatId: 'opus', channels: 3, packets: { lengths: [100], validFrames: 0 } }, /Opus with 3 channels/],
    [{ formatId: 'usac' }, /audio in xHE-AAC \(USAC\), which/],
    [{ bytesPerPacket: 5 }, /'lpcm'/],
    [{ formatId: 'ima4', channels: 4 }, /'ima4'/],
    [{ rateHz: Number.NaN }, /NaN Hz/],
    [{ channels: 0 }, /0 channels/],
  ] as const) {
    expect(await probeAudio(memorySource(cafFile(options, new Uint8Array(100))), ports.decoder)).toMatchObject({
      ok: false,
      error: { kind: 'unsupported', message: expect.stringMatching(message) },
    });
  }
});
