import { describe, expect, it } from 'vitest';
import {
  audioPorts,
  concat,
  type Decoded,
  madeSource,
  memorySource,
  probeAudio,
  random,
  readRange,
  readSourceRate,
  worstDifference,
} from '../../../test/helpers/audio.ts';
import { formatFixture, indexAs } from '../../../test/helpers/indexes.ts';
import {
  apeTag,
  id3v1,
  id3v2,
  infoFrame,
  MP3_FRAME_BYTES,
  mp3Frame,
  mp3Frames,
} from '../../../test/helpers/mp3-frames.ts';
import { adtsFrameBytesAt, adtsLockAt, parseHeader } from './mpeg-frames.ts';

const ports = audioPorts();
const probe = (...parts: Uint8Array[]) => probeAudio(memorySource(concat(...parts)), ports.decoder);

async function indexOf(...parts: Uint8Array[]): Promise<Decoded> {
  const probed = await probe(...parts);
  if (!probed.ok) throw new Error(probed.error.message);
  if (probed.value.format !== 'mp3') throw new Error(`not MP3 but ${probed.value.format}`);
  return probed.value;
}

const noise = (length: number, seed = 1) => {
  const next = random(seed);
  // No 0xff, so that it contains no header.
  return Uint8Array.from({ length }, () => Math.floor(next() * 255));
};

describe('parseHeader', () => {
  it.each([
    // Header bytes, layer, rate, channels, frame length, samples: ISO/IEC 11172-3 table and 13818-3.
    [[0xff, 0xfb, 0x90, 0x00], 3, 44100, 2, 417, 1152],
    [[0xff, 0xfb, 0x92, 0x00], 3, 44100, 2, 418, 1152],
    [[0xff, 0xfa, 0xe8, 0xc0], 3, 32000, 1, 1440, 1152],
    [[0xff, 0xfb, 0x14, 0x40], 3, 48000, 2, 96, 1152],
    [[0xff, 0xf3, 0x88, 0xc4], 3, 16000, 1, 288, 576],
    [[0xff, 0xf3, 0x40, 0xc0], 3, 22050, 1, 104, 576],
    [[0xff, 0xe3, 0xe8, 0xc0], 3, 8000, 1, 1440, 576],
    [[0xff, 0xe3, 0x18, 0x80], 3, 8000, 2, 72, 576],
    [[0xff, 0xfd, 0xa0, 0x00], 2, 44100, 2, 626, 1152],
    [[0xff, 0xff, 0x90, 0x00], 1, 44100, 2, 312, 384],
    [[0xff, 0xfb, 0x00, 0x00], 3, 44100, 2, 0, 1152],
  ])('parses %j', (bytes, layer, sampleRateHz, channels, frameBytes, frameSamples) => {
    expect(parseHeader(Uint8Array.from(bytes), 0)).toMatchObject({
      layer,
      sampleRateHz,
      channels,
      frameBytes,
      frameSamples,
    });
  });

  it.each([
    [[0xff, 0xdb, 0x90, 0x00]], // sync
    [[0xff, 0xeb, 0x90, 0x00]], // version
    [[0xff, 0xf9, 0x90, 0x00]], // layer
    [[0xff, 0xfb, 0xf0, 0x00]], // bit rate
    [[0xff, 0xfb, 0x9c, 0x00]], // sample rate
    [[0xff, 0xfb, 0x90, 0x02]], // emphasis
    [[0xff, 0xfb, 0x90]],
  ])('rejects %j', (bytes) => {
    expect(parseHeader(Uint8Array.from(bytes), 0)).toBeUndefined();
  });
});

describe('the length of MP3', () => {
  it('is the sum of the frames without a tag', async () => {
    const index = await indexOf(mp3Frames(100));
    expect(index).toMatchObject({ totalSamples: 100 * 1152, sampleRateHz: 44100, channels: 1 });
    expect(index.durationSeconds).toBe((100 * 1152) / 44100);
    expect(index.warning).toBeUndefined();
  });

  it('excludes the tag frame, the delay of encoder and decoder, and the padding', async () => {
    const tag = infoFrame({ frames: 100, encoder: 'LAME3.100', delaySamples: 576, paddingSamples: 1000 });
    const index = await indexOf(tag, mp3Frames(100));
    expect(index.totalSamples).toBe(100 * 1152 - 576 - 1000);
    const samples = await readSourceRate(concat(tag, mp3Frames(100)), index, ports);
    expect(samples).toHaveLength(index.totalSamples);
  });

  it('includes the end if the padding is shorter than the delay of the decoder', async () => {
    const tag = infoFrame({ frames: 100, encoder: 'Lavc59.37', delaySamples: 576, paddingSamples: 100 });
    expect((await indexOf(tag, mp3Frames(100))).totalSamples).toBe(100 * 1152 - 1105);
  });

  it('excludes a tag frame without a delay', async () => {
    for (const tag of [infoFrame({ frames: 50 }), infoFrame({ name: 'Xing' }), infoFrame({ encoder: 'Gogo 3' })]) {
      expect(await indexOf(tag, mp3Frames(50))).toMatchObject({ totalSamples: 50 * 1152 });
    }
    const vbri = mp3Frame();
    vbri.set(Buffer.from('VBRI'), 36);
    vbri[36 + 17] = 50;
    expect(await indexOf(vbri, mp3Frames(50))).toMatchObject({ totalSamples: 50 * 1152 });
  });

  it('includes padding inside concatenated files', async () => {
    const tag = infoFrame({ frames: 50, encoder: 'LAME3.100', delaySamples: 576, paddingSamples: 1000 });
    const index = await indexOf(tag, mp3Frames(50), mp3Frames(50));
    expect(index.totalSamples).toBe(100 * 1152 - 1105);
  });

  it('ends at a change of the sample rate, with a warning', async () => {
    const index = await indexOf(mp3Frames(50), formatFixture('mp3-8000-mono.mp3'));
    expect(index).toMatchObject({
      totalSamples: 50 * 1152,
      warning:
        'The MP3 file continues at another sample rate or in another coding after 1.3 s; that part was left out.',
    });
    expect((await indexOf(mp3Frames(50), noise(90_000))).warning).toBeUndefined();
  });

  it('is exact for 8 hours', { timeout: 60_000 }, async () => {
    const hour = mp3Frames(45_938 * 3);
    const file = madeSource(hour.length * 8, (offset, length) => loop(hour, offset, length));
    const frame = new Float32Array(1152);
    const decoder = { open: () => ({ sampleRateHz: 44100, decode: () => frame, close: () => {} }) };
    const probed = await probeAudio(file, decoder);
    if (!probed.ok) throw new Error(probed.error.message);
    expect(probed.value.totalSamples).toBe(45_938 * 3 * 8 * 1152);
    expect(probed.value.durationSeconds / 3600).toBeCloseTo(8, 2);
  });
});

function loop(bytes: Uint8Array, offset: number, length: number): Uint8Array {
  const out = new Uint8Array(length);
  for (let i = 0; i < length; ) {
    const from = (offset + i) % bytes.length;
    const part = bytes.subarray(from, from + length - i);
    out.set(part, i);
    i += part.length;
  }
  return out;
}

describe('tags of MP3', () => {
  it('before and after the audio are skipped', async () => {
    const heads = [id3v2(0), id3v2(300_000, 0xff), concat(id3v2(10), id3v2(2000)), apeTag(500)];
    const tails = [
      id3v1(),
      apeTag(700),
      concat(apeTag(100), id3v1()),
      concat(Buffer.from('LYRICSBEGIN'.padEnd(40)), Buffer.from('000040LYRICS200'), id3v1()),
    ];
    for (const head of heads) {
      for (const tail of tails) {
        const index = await indexOf(head, mp3Frames(20), tail);
        expect(index).toMatchObject({ totalSamples: 20 * 1152 });
        expect(index.warning).toBeUndefined();
      }
    }
  });

  it('between concatenated files are not reported as damage', async () => {
    for (const tags of [id3v2(70_000, 0xff), concat(apeTag(300), id3v1(), id3v2(500))]) {
      const index = await indexOf(mp3Frames(20), tags, mp3Frames(30));
      expect(index.totalSamples).toBe(50 * 1152);
      expect(index.warning).toBeUndefined();
    }
    const wrongSize = id3v2(3000);
    wrongSize.set([0, 0, 1, 0], 6);
    const index = await indexOf(mp3Frames(20), wrongSize, mp3Frames(30));
    expect(index).toMatchObject({ totalSamples: 50 * 1152, warning: expect.stringMatching(/^3010 bytes/) });
  });

  it('with a size above that of the file are ignored', async () => {
    const wrongSize = id3v2(100);
    wrongSize.set([0x7f, 0x7f, 0x7f, 0x7f], 6);
    expect(await indexOf(wrongSize, mp3Frames(20))).toMatchObject({ totalSamples: 20 * 1152 });
  });
});

it.each([5000, 65_400, 100_000, 4_000_000])('%i zeros between a tag and MP3 frames are skipped', async (zeros) => {
  const index = await indexOf(id3v2(1000, 1), new Uint8Array(zeros), mp3Frames(20));
  expect(index).toMatchObject({ format: 'mp3', totalSamples: 20 * 1152 });
});

describe('damage in MP3', () => {
  it('before the first frame is skipped', async () => {
    expect(await indexOf(noise(5000), mp3Frames(20))).toMatchObject({ totalSamples: 20 * 1152 });
  });

  it('between frames is skipped with a warning', async () => {
    const index = await indexOf(mp3Frames(20), noise(3000), mp3Frames(30), noise(70_000, 2), mp3Frames(10));
    expect(index.totalSamples).toBe(60 * 1152);
    expect(index.warning).toBe('73000 bytes inside the MP3 file are damaged and were left out.');
  });

  it('to a header removes one frame', async () => {
    const frames = mp3Frames(30);
    frames[concat(mp3Frames(12)).length + 1] = 0;
    const index = await indexOf(frames);
    expect(index.totalSamples).toBe(29 * 1152);
    const samples = await readSourceRate(frames, index, ports);
    expect(samples).toHaveLength(29 * 1152);
  });

  it('with a single valid header is not read as a frame', async () => {
    const fake = noise(5000);
    fake.set([0xff, 0xfb, 0x90, 0xc0], 1000);
    const index = await indexOf(mp3Frames(20), fake, mp3Frames(20));
    expect(index.totalSamples).toBe(40 * 1152);
  });

  it('at the end removes the truncated frame, with a warning', async () => {
    const index = await indexOf(mp3Frames(20), mp3Frame().subarray(0, 200));
    expect(index.totalSamples).toBe(20 * 1152);
    expect(index.warning).toMatch(/is incomplete|is shorter than/);
  });

  it('is reported if the tag states more frames', async () => {
    const tag = infoFrame({ frames: 100, encoder: 'LAME3.100', delaySamples: 576, paddingSamples: 1000 });
    const index = await indexOf(tag, mp3Frames(40));
    expect(index.totalSamples).toBe(40 * 1152 - 1105);
    expect(index.warning).toMatch(/is incomplete|is shorter than/);
  });

  it('in the middle is not reported as a missing end', async () => {
    const tag = infoFrame({ frames: 100, encoder: 'LAME3.100', delaySamples: 576, paddingSamples: 1000 });
    const index = await indexOf(tag, mp3Frames(40), noise(3000), mp3Frames(50));
    expect(index.warning).toBe('3000 bytes inside the MP3 file are damaged and were left out.');
  });
});

it('skips up to 1 MiB of a tag whose stated size is too small', async () => {
  // 200,000 as a plain number, which is 50,880 with seven bits a byte.
  const tag = Uint8Array.from([...Buffer.from('ID3'), 3, 0, 0, 0, 3, 0x0d, 0x40]);
  for (const frames of [3, 40]) {
    const file = concat(tag, noise(200_000), mp3Frames(frames));
    // After other bytes than a tag a few frames are not enough evidence.
    if (frames < 4) expect(await probe(file)).toMatchObject({ ok: false, error: { kind: 'not_audio' } });
    else expect(await indexOf(file)).toMatchObject({ codec: 'mp3', totalSamples: frames * 1152 });
  }
  expect(await probe(concat(tag, noise(1_200_000), mp3Frames(40)))).toMatchObject({ error: { kind: 'not_audio' } });
});

it('rejects a file with a few frames among other bytes', async () => {
  const file = concat(noise(100_000), mp3Frames(12), noise(400_000));
  expect(await probe(file)).toMatchObject({ ok: false, error: { kind: 'not_audio' } });
});

describe('the MP3 reader', () => {
  const stream = (header: number[], frameBytes: number, count = 10) =>
    concat(
      ...Array.from({ length: count }, () => {
        const frame = new Uint8Array(frameBytes);
        frame.set(header);
        return frame;
      }),
    );

  it.each([
    ['free format', [0xff, 0xfb, 0x00, 0xc0], 700],
    ['layer I', [0xff, 0xff, 0x90, 0x00], 312],
  ])('rejects %s by name', async (name, header, frameBytes) => {
    expect(await probe(stream(header, frameBytes))).toMatchObject({
      ok: false,
      error: { kind: 'unsupported', message: expect.stringContaining(name) },
    });
  });

  it('does not take pixels for free format, and finds MP3 after them', async () => {
    const pixels = Uint8Array.from({ length: 30_000 }, (_, i) => (i % 3 === 0 ? 0 : 0xff));
    expect(await probe(pixels)).toMatchObject({ ok: false, error: { kind: 'not_audio' } });
    expect(await indexOf(pixels, mp3Frames(40))).toMatchObject({ codec: 'mp3', totalSamples: 40 * 1152 });
  });

  it('rejects a megabyte of inconsistent free format headers in bounded time', async () => {
    const next = random(6);
    const header = () => [
      0xff,
      [0xfb, 0xfa, 0xf3, 0xe3][Math.floor(4 * next())]!,
      Math.floor(12 * next()),
      Math.floor(256 * next()),
    ];
    const bytes = Uint8Array.from(Array.from({ length: 1 << 18 }, header).flat());
    const started = performance.now();
    expect(await probe(bytes)).toMatchObject({ ok: false, error: { kind: 'not_audio' } });
    expect(performance.now() - started).toBeLessThan(3000);
  });

  it('does not take quiet raw samples for free format', async () => {
    const next = random(5);
    const samples = Int16Array.from({ length: 16_000 }, () => Math.floor(17 * next()) - 8);
    expect(await probe(new Uint8Array(samples.buffer))).toMatchObject({ ok: false, error: { kind: 'not_audio' } });
  });

  it('rejects a single tag frame and an incomplete frame', async () => {
    expect(await probe(infoFrame({ frames: 0 }))).toMatchObject({ ok: false });
    expect(await probe(mp3Frame().subarray(0, 100))).toMatchObject({ ok: false, error: { kind: 'not_audio' } });
    expect(await probe(id3v2(5000))).toMatchObject({ ok: false });
  });
});

it('reads MP3 files of one to five frames', async () => {
  for (const count of [1, 2, 3, 4, 5]) {
    expect(await indexOf(mp3Frames(count))).toMatchObject({ totalSamples: count * 1152 });
    expect(await indexOf(mp3Frames(count), id3v1())).toMatchObject({ totalSamples: count * 1152 });
  }
  expect(MP3_FRAME_BYTES).toBe(parseHeader(mp3Frame(), 0)?.frameBytes);
});

const mono = formatFixture('adts-aac-16000-mono.aac');

const adtsIndexOf = (file: Uint8Array) => indexAs('adts', file);

function framesOf(file: Uint8Array): Uint8Array[] {
  const frames: Uint8Array[] = [];
  for (let at = 0; at < file.length; ) {
    const length = adtsFrameBytesAt(file, at, adtsLockAt(file, 0));
    frames.push(file.slice(at, at + length));
    at += length;
  }
  return frames;
}

describe('length and rate of ADTS', () => {
  it('are twice those of the headers with bandwidth extension', async () => {
    expect(await adtsIndexOf(mono)).toMatchObject({
      codec: 'aac',
      sampleRateHz: 16000,
      channels: 1,
      totalSamples: framesOf(mono).length * 1024,
    });
    const he = formatFixture('adts-heaac-44100-mono.aac');
    const frames = framesOf(he).length;
    expect(await adtsIndexOf(he)).toMatchObject({ sampleRateHz: 44100, totalSamples: frames * 2048 });
  });

  it('exclude tags', async () => {
    const { totalSamples } = await adtsIndexOf(mono);
    expect(await adtsIndexOf(concat(id3v2(500), mono, id3v1()))).toMatchObject({ totalSamples });
    expect((await adtsIndexOf(concat(id3v2(500), mono, id3v1()))).warning).toBeUndefined();
  });
});

describe('bandwidth extension that changes without a change of the headers', () => {
  const lc = framesOf(mono);
  const he = framesOf(formatFixture('adts-heaac-32000-stereo.aac'));
  const energy = (samples: Float32Array) => samples.reduce((sum, x) => sum + x * x, 0);

  it('is found after a first frame without it', async () => {
    const file = concat(lc[0], ...he);
    expect(await adtsIndexOf(file)).toMatchObject({ sampleRateHz: 32000, totalSamples: (1 + he.length) * 2048 });
  });

  it('keeps the speed and leaves no gaps after its end', async () => {
    const file = concat(...he, ...lc);
    const index = await adtsIndexOf(file);
    expect(index).toMatchObject({ sampleRateHz: 32000, totalSamples: (he.length + lc.length) * 2048 });
    const from = he.length * 1024;
    const joined = await readRange(file, index, ports, from, from + lc.length * 1024);
    const alone = await readRange(mono, await adtsIndexOf(mono), ports, 0, lc.length * 1024);
    const half = (samples: Float32Array, which: number) =>
      energy(samples.filter((_, i) => Math.floor((i % 1024) / 512) === which));
    // Neither half of a frame is silent.
    const [first, second] = [0, 1].map((which) => half(joined, which) / half(alone, which));
    expect(first).toBeCloseTo(1, 0);
    expect(second).toBeCloseTo(1, 0);
  });
});

describe('damage in ADTS', () => {
  it('between frames is skipped with a warning', async () => {
    const frames = framesOf(mono);
    const file = concat(...frames.slice(0, 20), new Uint8Array(777), ...frames.slice(20));
    const index = await adtsIndexOf(file);
    expect(index).toMatchObject({
      totalSamples: frames.length * 1024,
      warning: '777 bytes inside the AAC file are damaged and were left out.',
    });
    expect(await readSourceRate(file, index, ports)).toHaveLength(index.totalSamples);
  });

  it('inside a frame does not change the length', async () => {
    const frames = framesOf(mono);
    frames[10].fill(0xaa, 9);
    const file = concat(...frames);
    const index = await adtsIndexOf(file);
    const samples = await readSourceRate(file, index, ports);
    const clean = await readSourceRate(mono, await adtsIndexOf(mono), ports);
    expect(samples).toHaveLength(clean.length);
    expect(worstDifference(samples.slice(0, 10 * 1024), clean.slice(0, 10 * 1024))).toBe(0);
  });

  it('at the end removes the truncated frame, with a warning', async () => {
    const frames = framesOf(mono);
    const index = await adtsIndexOf(mono.slice(0, mono.length - 3));
    expect(index).toMatchObject({
      totalSamples: (frames.length - 1) * 1024,
      warning: expect.stringMatching(/is incomplete|is shorter than/),
    });
  });
});

it('leaves out ADTS frames of another sample rate, with a warning', async () => {
  const other = formatFixture('adts-aac-44100-stereo.aac');
  const { totalSamples, durationSeconds } = await adtsIndexOf(mono);
  expect(await adtsIndexOf(concat(mono, other))).toMatchObject({
    totalSamples,
    warning:
      `The AAC file continues at another sample rate or in another coding after ${durationSeconds.toFixed(1)} s; ` +
      'that part was left out.',
  });
  expect((await adtsIndexOf(concat(mono, new Uint8Array(100_000)))).warning).toBeUndefined();
});

describe('the ADTS reader rejects', () => {
  it('several blocks in a frame, and frames without valid content', async () => {
    const frames = framesOf(mono);
    const blocks = concat(...frames.map((frame) => frame.map((byte, i) => (i === 6 ? byte | 1 : byte))));
    expect(await probeAudio(memorySource(blocks), ports.decoder)).toMatchObject({
      ok: false,
      error: { kind: 'unsupported', message: expect.stringMatching(/several blocks/) },
    });
    const empty = concat(...frames.map((frame) => frame.slice().fill(0xff, 7)));
    expect(await probeAudio(memorySource(empty), ports.decoder)).toMatchObject({ ok: false });
  });
});
