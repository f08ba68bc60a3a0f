import { describe, expect, it } from 'vitest';
import {
  audioPorts,
  concat,
  memorySource,
  outputSampleCount,
  probeAudio,
  random,
  readRange,
  readSourceRate,
  worstDifference,
} from '../../../test/helpers/audio.ts';
import { indexOf } from '../../../test/helpers/indexes.ts';
import { block, cluster, element, matroskaHeader, text, uint } from '../../../test/helpers/matroska.ts';
import { parseTracks } from './matroska.ts';
import { laceSizes } from './matroska-blocks.ts';

const ports = audioPorts();
const probe = (file: Uint8Array) => probeAudio(memorySource(file), ports.decoder);

/** 8-bit samples whose values depend on their number: 100 a block, 0.1 s at 1 kHz. */
const ramp = (first: number, count = 100) => Uint8Array.from({ length: count }, (_, i) => 129 + ((first + i) % 97));
const levels = (samples: Float32Array) => Array.from(samples, (value) => Math.round(value * 128));
const valueAt = (sample: number) => 1 + (sample % 97);

/** Blocks of 0.1 s, ten to a cluster, at the times of `timeOf`. */
function recording(blocks: number, timeOf = (i: number) => 100 * i): Uint8Array {
  const clusters: Uint8Array[] = [];
  for (let first = 0; first < blocks; first += 10) {
    const start = timeOf(first);
    const inside = Array.from({ length: Math.min(10, blocks - first) }, (_, i) =>
      block(timeOf(first + i) - start, ramp(100 * (first + i))),
    );
    clusters.push(cluster(start, ...inside));
  }
  return concat(matroskaHeader(), ...clusters);
}

describe('times of Matroska blocks', () => {
  it('with jitter are ignored for the count of samples', async () => {
    const jitter = random(5);
    const file = recording(50, (i) => Math.round(100 * i + (i === 0 ? 0 : 40 * (jitter() - 0.5))));
    const index = await indexOf(file);
    expect(index).toMatchObject({ format: 'matroska', codec: 'pcm', sampleRateHz: 1000, totalSamples: 5000 });
    const samples = levels(await readSourceRate(file, index, ports));
    expect(samples.every((value, i) => value === valueAt(i))).toBe(true);
  });

  it('with a pause give silence of its length from any start', async () => {
    const file = recording(1500, (i) => 100 * i + (i >= 700 ? 20_000 : 0));
    const index = await indexOf(file);
    expect(index.totalSamples).toBe(170_000);
    expect(index.warning).toMatch(/20\.0 s in all, were taken as silence\.$/);
    const whole = await readSourceRate(file, index, ports);
    const values = levels(whole);
    expect(values.slice(70_000, 90_000).every((value) => value === 0)).toBe(true);
    expect(
      values.every((value, i) => (i >= 70_000 && i < 90_000) || value === valueAt(i < 70_000 ? i : i - 20_000)),
    ).toBe(true);
    for (const start of [0, 1, 29_999, 30_250, 69_990, 70_000, 80_123, 90_000, 120_300, 169_999]) {
      const part = await readSourceRate(file, index, ports, start);
      expect(worstDifference(part, whole.subarray(start))).toBe(0);
    }
    const count = outputSampleCount(index);
    const all = await readRange(file, index, ports, 0, count);
    const next = random(11);
    for (let i = 0; i < 8; i++) {
      const start = Math.floor(next() * (count - 2000));
      expect(
        worstDifference(await readRange(file, index, ports, start, start + 2000), all.subarray(start, start + 2000)),
      ).toBe(0);
    }
  });

  it('with overlaps of more than a second cause a warning', async () => {
    const overlapping = (times: number) => recording(1000, (i) => 100 * i - 200 * Math.min(times, Math.floor(i / 100)));
    const [few, many] = [await indexOf(overlapping(4)), await indexOf(overlapping(6))];
    expect([few.totalSamples, many.totalSamples]).toEqual([99_200, 98_800]);
    expect(few.warning).toBeUndefined();
    expect(many.warning).toMatch(
      /^Packets overlap in their times, by 1\.2 s in all; that much of their audio was left/,
    );
  });

  it('with a jump of hours do not give silence', async () => {
    const index = await indexOf(recording(100, (i) => 100 * i + (i >= 50 ? 9_000_000 : 0)));
    expect(index.totalSamples).toBe(10_000);
    expect(index.warning).toMatch(/^The times of some packets jump/);
  });

  it('give silence before audio that begins after the video', async () => {
    const first = cluster(0, block(0, new Uint8Array(50), 2), block(700, ramp(0)), block(800, ramp(100)));
    const file = concat(matroskaHeader({ secondType: 1 }), first);
    const index = await indexOf(file);
    expect(index.totalSamples).toBe(900);
    const values = levels(await readSourceRate(file, index, ports));
    expect(values.slice(0, 700).every((value) => value === 0)).toBe(true);
    expect(values[700]).toBe(valueAt(0));
  });

  it('of data and subtitles do not determine the start of a recording', async () => {
    const first = cluster(0, block(0, new Uint8Array(50), 2), block(700, ramp(0)), block(800, ramp(100)));
    expect((await indexOf(concat(matroskaHeader({ secondType: 17 }), first))).totalSamples).toBe(200);
  });

  it('of another clock soon after the first block do not determine the start', async () => {
    const blocks = Array.from({ length: 10 }, (_, i) => block(100 * i - (i < 5 ? 0 : 30_000), ramp(100 * i)));
    expect((await indexOf(concat(matroskaHeader(), cluster(30_000, ...blocks)))).totalSamples).toBe(1000);
  });

  it('give no silence before audio that begins hours after the video', async () => {
    const pictures = cluster(0, block(0, new Uint8Array(50), 2));
    const file = (startMs: number) =>
      concat(matroskaHeader({ secondType: 1 }), pictures, cluster(startMs, block(0, ramp(0))));
    expect((await indexOf(file(600_000))).totalSamples).toBe(600_100);
    expect((await indexOf(file(9_000_000))).totalSamples).toBe(100);
  });

  it('are shifted by the codec delay of the header, up to a second', async () => {
    const file = (delayMs: number) =>
      concat(
        matroskaHeader({ extra: uint(0x56aa, delayMs * 1e6) }),
        cluster(0, block(0, ramp(0)), block(100, ramp(100))),
      );
    const index = await indexOf(file(30));
    expect(index.totalSamples).toBe(170);
    expect(levels(await readSourceRate(file(30), index, ports))[0]).toBe(valueAt(30));
    expect((await indexOf(file(1100))).totalSamples).toBe(200);
  });

  it('end before the padding that the last block states', async () => {
    const group = (paddingMs: number) =>
      element(0xa0, concat(element(0xa1, block(1900, ramp(1900)).slice(9)), uint(0x75a2, paddingMs * 1e6)));
    const file = (paddingMs: number) => concat(matroskaHeader(), cluster(0, block(0, ramp(0, 1900)), group(paddingMs)));
    expect((await indexOf(file(30))).totalSamples).toBe(1970);
    expect((await indexOf(file(1100))).totalSamples).toBe(1000);
  });

  it('may begin above 0 without silence', async () => {
    expect((await indexOf(recording(20, (i) => 50_000_000 + 100 * i))).totalSamples).toBe(2000);
  });
});

describe('unknown Matroska elements', () => {
  const unknown = element(0x4fff, Uint8Array.of(1, 2, 3));
  const isComplete = (samples: Float32Array) => levels(samples).every((value, i) => value === valueAt(i));

  it.each<[string, (blocks: Uint8Array[]) => Uint8Array[]]>([
    ['before the blocks', (blocks) => [unknown, ...blocks]],
    ['between them', (blocks) => blocks.flatMap((one) => [one, unknown])],
    ['after them', (blocks) => [...blocks, unknown]],
    ['several in a row', (blocks) => [blocks[0]!, unknown, unknown, ...blocks.slice(1)]],
    ['as long as a group of blocks', (blocks) => [blocks[0]!, element(0x4ffe, ramp(0, 5000)), ...blocks.slice(1)]],
  ])('are skipped by their size: %s', async (_name, insert) => {
    const clusters = Array.from({ length: 90 }, (_, k) => {
      const blocks = Array.from({ length: 10 }, (_, i) => block(100 * i, ramp(1000 * k + 100 * i)));
      return cluster(1000 * k, ...insert(blocks));
    });
    const file = concat(matroskaHeader(), ...clusters);
    const index = await indexOf(file);
    expect(index.totalSamples).toBe(90_000);
    expect(index.warning).toBeUndefined();
    const whole = await readSourceRate(file, index, ports);
    expect(isComplete(whole)).toBe(true);
    for (const start of [31_234, 60_000, 89_999]) {
      expect(worstDifference(await readSourceRate(file, index, ports, start), whole.subarray(start))).toBe(0);
    }
  });

  it('are skipped in clusters of unknown size and between clusters', async () => {
    const live = (startMs: number, ...blocks: Uint8Array[]) =>
      concat(element(0x1f43b675), uint(0xe7, startMs), ...blocks);
    const one = live(0, block(0, ramp(0)), unknown, block(100, ramp(100)), unknown);
    const file = concat(matroskaHeader(), one, live(200, block(0, ramp(200))), unknown);
    const index = await indexOf(file);
    expect(index).toMatchObject({ totalSamples: 300 });
    expect(index.warning).toBeUndefined();
    expect(isComplete(await readSourceRate(file, index, ports))).toBe(true);
  });

  it('with a wrong size are damage: reading continues at the next cluster', async () => {
    const wrong = element(0x4fff, ramp(0, 40));
    wrong[9] = 55;
    const one = cluster(0, block(0, ramp(0)), wrong, block(100, ramp(100)), block(200, ramp(200)));
    const index = await indexOf(concat(matroskaHeader(), one, cluster(300, block(0, ramp(300)))));
    expect(index.totalSamples).toBe(400);
    const file = concat(matroskaHeader(), one, cluster(300, block(0, ramp(300))));
    const samples = levels(await readSourceRate(file, index, ports));
    expect(samples.slice(100, 300).every((value) => value === 0)).toBe(true);
    expect(samples.slice(300).every((value, i) => value === valueAt(300 + i))).toBe(true);
  });
});

describe('stripped headers of Matroska packets', () => {
  const stripped = (prefix: Uint8Array) =>
    element(0x6d80, element(0x6240, element(0x5034, concat(uint(0x4254, 3), element(0x4255, prefix)))));

  it('are restored', async () => {
    const file = concat(
      matroskaHeader({ extra: stripped(ramp(0, 2)) }),
      cluster(0, block(0, ramp(2, 98)), block(100, ramp(2, 98))),
    );
    const index = await indexOf(file);
    expect(index.totalSamples).toBe(200);
    const whole = [...Array(100).keys(), ...Array(100).keys()].map(valueAt);
    expect(levels(await readSourceRate(file, index, ports))).toEqual(whole);
  });

  it('of a mebibyte are rejected', async () => {
    const blocks = Array.from({ length: 300 }, (_, i) => block(i, ramp(i, 1)));
    const file = concat(matroskaHeader({ extra: stripped(new Uint8Array(1 << 20)) }), cluster(0, ...blocks));
    expect(await probe(file)).toMatchObject({
      ok: false,
      error: { kind: 'corrupt', message: expect.stringMatching(/too many bytes/) },
    });
  });
});

describe('damaged Matroska files', () => {
  it('are read past a padding element of nine megabytes', async () => {
    const group = element(
      0xa0,
      concat(element(0xa1, block(0, ramp(0)).slice(9)), element(0x75a2, new Uint8Array(9 << 20))),
    );
    const index = await indexOf(concat(matroskaHeader(), cluster(0, group), cluster(100, block(0, ramp(100)))));
    expect(index.totalSamples).toBe(200);
  });

  it('are rejected for private data of 40 kB', async () => {
    const extra = element(0x63a2, new Uint8Array(40 << 10).fill(1));
    const file = concat(matroskaHeader({ codecId: 'A_AAC', extra }), cluster(0, block(0, ramp(0))));
    expect(await probe(file)).toMatchObject({ ok: false, error: { kind: 'corrupt' } });
  });

  it('are read from the next cluster after bytes that are no elements', async () => {
    const noise = Uint8Array.from({ length: 3000 }, (_, i) => (i * 7) & 0x7f & ~0x10);
    const [one, two] = [cluster(0, block(0, ramp(0))), cluster(300, block(0, ramp(300)))];
    const index = await indexOf(concat(matroskaHeader(), one, noise, two));
    expect(index.totalSamples).toBe(400);
  });

  it.each([
    ['the first cluster', concat(matroskaHeader(), new Uint8Array(500))],
    ['the first blocks', concat(matroskaHeader(), cluster(0), new Uint8Array(500))],
  ])('have silence for zeros instead of %s, and later audio keeps its time', async (_, head) => {
    const file = concat(head, cluster(300, block(0, ramp(300))));
    const index = await indexOf(file);
    expect(index.warning).toBe('The beginning of the Matroska file, 0.3 s of it, is damaged and was taken as silence.');
    const samples = levels(await readSourceRate(file, index, ports));
    const audible = levels(Float32Array.from(ramp(300), (value) => (value - 128) / 128));
    expect(samples).toEqual([...new Array<number>(300).fill(0), ...audible]);
  });

  it('are used up to the end if truncated', async () => {
    const whole = recording(40);
    const index = await indexOf(whole.slice(0, whole.length - 150));
    expect(index.totalSamples).toBe(3800);
    // The file states no size, like recordings of browsers: only the incomplete block shows the truncation.
    expect(index.warning).toMatch(/is incomplete/);
    expect((await indexOf(whole)).warning).toBeUndefined();
  });

  it.each([
    ['a block', block(100, ramp(100))],
    ['a group', element(0xa0, block(100, ramp(100)))],
    ['a skipped element', element(0xec, ramp(0))],
  ])('are read past %s that claims to be longer than the file', async (_, damaged) => {
    // The second byte of the size: from some hundred bytes to 2^48.
    damaged[2] = 1;
    const file = concat(matroskaHeader(), cluster(0, block(0, ramp(0)), damaged), cluster(200, block(0, ramp(200))));
    const index = await indexOf(file);
    expect(index.totalSamples).toBe(300);
    const samples = levels(await readSourceRate(file, index, ports));
    expect(samples.slice(200)).toEqual(levels(Float32Array.from(ramp(200), (value) => (value - 128) / 128)));
  });

  it.each([
    ['elements', [0xec, 0x80], 250_000],
    ['groups', [0xa0, 0xc0, ...Array(32).fill([0xec, 0x80]).flat()], 8000],
    // Each block has 256 empty packets.
    ['packets', [0xa3, 0x85, 0x81, 0, 100, 4, 0xff], 1000],
  ])('end at hundreds of thousands of empty %s', async (_, empty, count) => {
    const many = new Uint8Array(Buffer.alloc(empty.length * count, Uint8Array.from(empty)));
    const [one, two] = [cluster(0, block(0, ramp(0))), cluster(100, block(0, ramp(100)))];
    expect(await indexOf(concat(matroskaHeader(), one, many, two))).toMatchObject({
      totalSamples: 100,
      warning: expect.stringMatching(/^The Matroska file has a very long span without audio/),
    });
  });
});

describe('the Matroska reader rejects', () => {
  const refused = async (file: Uint8Array, kind: string, message: RegExp) =>
    expect(await probe(file)).toMatchObject({ ok: false, error: { kind, message: expect.stringMatching(message) } });
  const sound = cluster(0, block(0, ramp(0)));

  it('a file without audio', async () => {
    await refused(concat(matroskaHeader({ type: 1 }), sound), 'no_samples', /has no audio track\.$/);
    await refused(matroskaHeader(), 'no_samples', /no samples/);
  });

  it.each([
    ['A_DTS', /audio in DTS,/],
    ['A_TRUEHD', /Dolby TrueHD/],
    ['A_SOMETHING', /a coding called "A_SOMETHING"/],
  ])('the codec %s', (codecId, message) => refused(concat(matroskaHeader({ codecId }), sound), 'unsupported', message));

  it('encrypted packets', async () => {
    const extra = element(0x6d80, element(0x6240, element(0x5035, text(0x47e2, 'key'))));
    await refused(concat(matroskaHeader({ extra }), sound), 'unsupported', /encrypted/);
  });

  it('tracks above the limit', async () => {
    const many = Array.from({ length: 200 }, () => element(0xae, concat(uint(0xd7, 9), uint(0x83, 2))));
    const { audio, trackCount } = parseTracks(concat(...many));
    expect([audio.length, trackCount]).toEqual([100, 200]);
  });

  it('a damaged header and another EBML document type', async () => {
    await refused(concat(matroskaHeader().slice(0, 60), new Uint8Array(500)), 'corrupt', /header/);
    await refused(element(0x1a45dfa3, text(0x4282, 'other')), 'unsupported', /"other"/);
  });
});

describe('of several Matroska audio tracks', () => {
  const entry = (number: number, codecId: string) =>
    element(0xae, concat(uint(0xd7, number), uint(0x83, 2), text(0x86, codecId), element(0xe1, uint(0x6264, 8))));
  const file = (first: string, ...blocks: readonly Uint8Array[]) =>
    concat(
      element(0x1a45dfa3, text(0x4282, 'matroska')),
      element(0x18538067),
      element(0x1654ae6b, concat(entry(1, first), entry(2, 'A_PCM/INT/LIT'))),
      cluster(0, ...blocks),
    );
  const [one, two] = [block(0, ramp(0)), block(0, ramp(0), 2)];

  it('the first is read', async () => {
    expect((await indexOf(file('A_PCM/INT/LIT', one, two))).warning).toBeUndefined();
  });

  it.each([
    ['is unsupported', file('A_DTS', one, two), /^The Matroska file holds audio in DTS, .* read instead\.$/],
    ['has no packets', file('A_PCM/INT/LIT', two), /^An audio track of the file has no samples in it; /],
  ])('another one is read if the first %s, with a warning', async (_, both, warning) => {
    expect(await indexOf(both)).toMatchObject({
      codec: 'pcm',
      totalSamples: 100,
      warning: expect.stringMatching(warning),
    });
  });

  it('none is readable: the failure is that of the first', async () => {
    const error = { kind: 'unsupported', message: expect.stringMatching(/DTS/) };
    expect(await probe(file('A_DTS', one))).toMatchObject({ ok: false, error });
  });
});

describe('laceSizes', () => {
  it('reads all three kinds of lacing', () => {
    expect(laceSizes(Uint8Array.of(2, 255, 10, 4), 1, 4 + 265 + 4 + 31)).toEqual({
      sizes: [265, 4, 31],
      headerBytes: 4,
    });
    expect(laceSizes(Uint8Array.of(2), 2, 31)).toEqual({ sizes: [10, 10, 10], headerBytes: 1 });
    // 800, then 300 less, then 100 more.
    const ebml = Uint8Array.of(3, 0x43, 0x20, 0x5e, 0xd3, 0x60, 0x63);
    expect(laceSizes(ebml, 3, 7 + 800 + 500 + 600 + 7)).toEqual({ sizes: [800, 500, 600, 7], headerBytes: 7 });
  });

  it('returns no sizes if they do not fit', () => {
    for (const lacing of [1, 2, 3]) expect(laceSizes(Uint8Array.of(9, 200, 200), lacing, 20).sizes).toEqual([]);
  });
});
