import { describe, expect, it } from 'vitest';
import {
  audioPorts,
  concat,
  madeSource,
  memorySource,
  probeAudio,
  readSourceRate,
  worstDifference,
} from '../../../test/helpers/audio.ts';
import { find, formatFixture, patched } from '../../../test/helpers/bytes.ts';
import { indexAs, indexOf } from '../../../test/helpers/indexes.ts';
import {
  box,
  EMPTY,
  movieHeader,
  NO_SAMPLES,
  soundMovie,
  soundTrack,
  u32,
  withEdits,
} from '../../../test/helpers/mp4.ts';
import { parseGaplessComment } from './mp4-boxes.ts';

const ports = audioPorts();
const indexFirst = formatFixture('mp4-aac-16000-mono.m4a');
const indexLast = formatFixture('mp4-aac-44100-stereo.m4a');
const fragments = formatFixture('mp4-fragments-aac-48000-stereo.mp4');
const probe = (file: Uint8Array) => probeAudio(memorySource(file), ports.decoder);

/** A file of `sizeBytes` bytes: `bytes`, then zeros. */
const beginningOf = (bytes: Uint8Array, sizeBytes: number) =>
  madeSource(sizeBytes, (offset, length) => {
    const out = new Uint8Array(length);
    out.set(bytes.subarray(Math.min(offset, bytes.length), offset + length));
    return out;
  });

const refused = async (file: Uint8Array, kind: string, message: RegExp) =>
  expect(await probe(file)).toMatchObject({ ok: false, error: { kind, message: expect.stringMatching(message) } });

/** The file with the second version of a header, inside of the boxes `around` and `moov`. */
function withLongTimes(file: Uint8Array, [type, ...around]: readonly string[]): Uint8Array {
  const at = find(file, type!) + 4;
  const view = new DataView(file.buffer, file.byteOffset);
  const [flags, created, changed, number] = [0, 4, 8, 12].map((offset) => view.getUint32(at + offset));
  const reserved = type === 'tkhd' ? 4 : 0;
  const times = u32(0x01000000 | flags!, 0, created!, 0, changed!, number!, ...(reserved ? [0] : []), 0);
  const out = concat(file.subarray(0, at), times, file.subarray(at + 16 + reserved));
  for (const outer of [type!, ...around, 'moov']) {
    const size = find(out, outer) - 4;
    new DataView(out.buffer).setUint32(size, view.getUint32(find(file, outer) - 4) + 12);
  }
  return out;
}

describe('length and start of an MP4 file', () => {
  it.each([
    ['AAC: the edit list cuts the encoder delay and the padding', 'mp4-aac-44100-stereo.m4a', 44100, 88_200],
    ['AAC: index before the packets', 'mp4-aac-16000-mono.m4a', 16000, 64_000],
    ['Opus', 'mp4-opus-stereo.mp4', 48000, 144_000],
    ['MP3', 'mp4-mp3-44100-mono.mp4', 44100, 132_300],
    ['HE-AAC: twice the rate of its core, by edit list', 'mp4-heaac-44100-mono.m4a', 44100, 176_400],
    ['HE-AAC: by the comment of iTunes', 'mp4-heaac-itunes-32000-stereo.m4a', 32000, 128_000],
    ['HE-AAC v2', 'mp4-heaacv2-44100-stereo.m4a', 44100, 176_400],
    ['audio of a video', 'mp4-video-aac-44100-mono.mp4', 44100, 88_200],
    ['AMR in 3GP', 'mp4-amr-nb-8000-mono.3gp', 8000, 40_000],
    ['fragments', 'mp4-fragments-aac-48000-stereo.mp4', 48000, 97_024],
  ])('%s', async (_name, file, sampleRateHz, totalSamples) => {
    expect(await indexOf(formatFixture(file))).toMatchObject({ format: 'mp4', sampleRateHz, totalSamples });
  });

  it('detects HE-AAC that the header does not announce', async () => {
    const index = await indexOf(formatFixture('mp4-heaac-implicit-44100-mono.m4a'));
    expect(index).toMatchObject({ sampleRateHz: 44100 });
    expect(index.durationSeconds).toBeGreaterThan(4);
  });

  it('begins with silence for an empty first edit', async () => {
    const plain = await indexOf(indexLast);
    const file = withEdits(indexLast, [500, EMPTY], [2000, 1024]);
    const index = await indexOf(file);
    expect(index.totalSamples).toBe(plain.totalSamples + 22_050);
    const [late, early] = [await readSourceRate(file, index, ports), await readSourceRate(indexLast, plain, ports)];
    expect(late.subarray(0, 22_050).every((value) => value === 0)).toBe(true);
    expect(worstDifference(late.subarray(22_050), early)).toBe(0);
  });

  it('cuts the pre-skip of Opus without an edit list', async () => {
    const file = formatFixture('mp4-opus-stereo.mp4');
    const [index, plain] = [await indexOf(file), await indexOf(patched(file, 'edts', 'free'))];
    expect(plain).toMatchObject({ totalSamples: 144_000 });
    expect(plain).toEqual(index);
    const bare = patched(file, 'edts', 'free');
    const samples = await readSourceRate(bare, plain, ports);
    expect(worstDifference(samples, await readSourceRate(file, index, ports))).toBe(0);
  });

  it.each([
    ['an index after the packets', indexLast],
    ['fragments', fragments],
  ])('%s: is the same with headers of 64-bit times', async (_name, file) => {
    const long = [['mvhd'], ['tkhd', 'trak'], ['mdhd', 'mdia', 'trak']].reduce(withLongTimes, file);
    const [index, plain] = [await indexAs('mp4', long), await indexAs('mp4', file)];
    expect(index).toMatchObject({ totalSamples: plain.totalSamples });
    expect(index.warning).toBeUndefined();
    const samples = await readSourceRate(long, index, ports);
    expect(worstDifference(samples, await readSourceRate(file, plain, ports))).toBe(0);
  });

  it('follows an edit that ends before the media', async () => {
    expect((await indexOf(withEdits(indexLast, [1250, 1024]))).totalSamples).toBe(1.25 * 44100);
  });
});

describe('damaged MP4 files', () => {
  it('are used up to the end if truncated after the index', async () => {
    const index = await indexOf(indexFirst.slice(0, 10_000));
    expect(index.warning).toBe('The MP4 file is incomplete; the available part was used.');
    expect(index.totalSamples).toBeGreaterThan(20_000);
    expect(index.totalSamples).toBeLessThan(64_000);
  });

  it('are used up to the last complete fragment', async () => {
    const index = await indexOf(fragments.slice(0, 15_000));
    expect(index.totalSamples).toBeGreaterThan(40_000);
    expect(index.totalSamples).toBeLessThan(97_024);
  });

  it('have silence for a damaged packet, and later audio keeps its time', async () => {
    const index = await indexOf(indexFirst);
    const file = indexFirst.slice();
    file.fill(0xff, 9000, 9200);
    const [good, bad] = [await readSourceRate(indexFirst, index, ports), await readSourceRate(file, index, ports)];
    expect(bad).toHaveLength(good.length);
    expect(worstDifference(bad.subarray(50_000), good.subarray(50_000))).toBeLessThan(0.1);
  });
});

describe('packet durations rounded to a coarse clock', () => {
  /** 186 samples at 8 kHz in each entry: 23.25 ms. */
  const [PER_ENTRY, ENTRIES] = [186, 4000];
  const data = Uint8Array.from({ length: 2 * PER_ENTRY * ENTRIES }, (_, i) => (i % 2 ? 0 : (i * 7) % 251));
  const sound = {
    type: 'sowt',
    channels: 1,
    bits: 16,
    rateHz: 8000,
    entries: ENTRIES,
    entryBytes: 2 * PER_ENTRY,
    data,
  };
  const movie = (timescale: number, ticksPerEntry: number) => soundMovie({ ...sound, timescale, ticksPerEntry });

  it.each([
    ['down', 23],
    ['up', 24],
  ])('%s: every sample is played at its time', async (_name, ticks) => {
    const [file, exact] = [movie(1000, ticks), movie(8000, PER_ENTRY)];
    const index = await indexOf(file);
    expect(index.totalSamples).toBe(PER_ENTRY * ENTRIES);
    expect(index.warning).toBeUndefined();
    const whole = await readSourceRate(exact, await indexOf(exact), ports);
    expect(worstDifference(await readSourceRate(file, index, ports), whole)).toBe(0);
    expect(worstDifference(await readSourceRate(file, index, ports, 500_001), whole.subarray(500_001))).toBe(0);
  });

  it('cause overlaps with a warning if wrong by more than a tick', async () => {
    const index = await indexOf(movie(1000, 22));
    expect(index.totalSamples).toBeLessThan(PER_ENTRY * ENTRIES);
    expect(index.warning).toMatch(/Packets overlap in their times|times of the packets jump/);
  });

  it('are compensated for in an edit list', async () => {
    const file = patched(indexLast, 'mdhd', [...u32(1000)], 16);
    const table = find(file, 'stts');
    const view = new DataView(file.buffer);
    let packets = 0;
    for (let i = 0; i < view.getUint32(table + 8); i++) {
      packets += view.getUint32(table + 12 + 8 * i);
      view.setUint32(table + 16 + 8 * i, 23);
    }
    const index = await indexOf(withEdits(file, [23 * packets - 23, 23]));
    const all = await indexOf(patched(file, 'edts', 'free'));
    // The last packet may be padded: its duration is not corrected.
    const tick = 44.1;
    expect(Math.abs(all.totalSamples - 1024 * packets)).toBeLessThan(tick);
    // The delay of one packet, in the same clock.
    expect(Math.abs(index.totalSamples - 1024 * (packets - 1))).toBeLessThan(tick);
    const part = await indexOf(withEdits(file, [23 * 40, 23 * 20]));
    expect(Math.abs(part.totalSamples - 1024 * 40)).toBeLessThan(tick);
  });
});

describe('the MP4 reader rejects', () => {
  it('a file without an index', async () => {
    await refused(indexLast.slice(0, 20_000), 'corrupt', /no index \(moov\).*end of the file is missing\.$/);
    await refused(patched(indexLast, 'moov', 'free'), 'corrupt', /no index \(moov\).*recording was not finished\.$/);
    await refused(fragments.slice(find(fragments, 'moof') - 4), 'corrupt', /fragment without its header/);
  });

  it('a file without an audio track', async () => {
    await refused(patched(indexFirst, 'soun', 'vide'), 'no_samples', /no audio track/);
    await refused(patched(indexFirst, 'trak', 'free'), 'corrupt', /no tracks/);
  });

  it.each(['enca', 'drms', 'aavd'])('the encrypted coding %s', (type) =>
    refused(patched(indexFirst, 'mp4a', type), 'unsupported', /encrypted \(DRM\)/),
  );

  it.each([
    ['dtsc', /audio in DTS,/],
    ['mlpa', /Dolby TrueHD/],
    ['ima4', /IMA ADPCM/],
    ['usac', /audio in xHE-AAC \(USAC\),/],
    ['Zzz?', /a coding called "Zzz\?"/],
  ])('the coding %s', (type, message) => refused(patched(indexFirst, 'mp4a', type), 'unsupported', message));

  it('xHE-AAC', async () => {
    // Decoder specific information: length, then object type 42 in 11 bits.
    const config = find(indexFirst, '\x05\x80\x80\x80', find(indexFirst, 'esds'));
    const file = indexFirst.slice();
    file.set([0xf9, 0x50], config + 5);
    await refused(file, 'unsupported', /xHE-AAC/);
  });

  it('a text that contains a box name, as text', () =>
    refused(new TextEncoder().encode('The free text'), 'not_audio', /text/));
});

describe('hostile MP4 files are probed in bounded time', () => {
  const expectFast = async (file: Uint8Array) => {
    const started = performance.now();
    const heap = process.memoryUsage().heapUsed;
    await probe(file);
    expect(performance.now() - started).toBeLessThan(5000);
    expect(process.memoryUsage().heapUsed - heap).toBeLessThan(300 << 20);
  };

  it('with a run of four billion packets', async () => {
    const header = fragments.slice(0, find(fragments, 'moof') - 4);
    const trackId = u32(0x020038, 1, 1024, 1, 0);
    const run = box('trun', u32(1, 0xffffffff, 100));
    const moof = box('moof', box('mfhd', u32(0, 1)), box('traf', box('tfhd', trackId), run));
    await expectFast(concat(header, ...Array.from({ length: 20 }, () => moof), box('mdat', new Uint8Array(1 << 20))));
  });

  it('with thousands of runs over the same bytes', async () => {
    const header = fragments.slice(0, find(fragments, 'moof') - 4);
    for (const size of [0, 1]) {
      const trackId = u32(0x020038, 1, 1024, size, 0);
      const runs = Array.from({ length: 4000 }, () => box('trun', u32(0, 0xffffffff)));
      const moof = box('moof', box('mfhd', u32(0, 1)), box('traf', box('tfhd', trackId), ...runs));
      await expectFast(concat(header, moof, box('mdat', new Uint8Array(1000))));
      const sameRuns = Array.from({ length: 4000 }, () => box('trun', u32(1, 0xffffffff, 100)));
      const same = box('moof', box('mfhd', u32(0, 1)), box('traf', box('tfhd', trackId), ...sameRuns));
      await expectFast(concat(header, same, box('mdat', new Uint8Array(1000))));
    }
  });

  it('with runs of packets above the size limit in a large file', async () => {
    const header = fragments.slice(0, find(fragments, 'moof') - 4);
    const runs = Array.from({ length: 20_000 }, () => box('trun', u32(1, 0xffffffff, 100)));
    const moof = box(
      'moof',
      box('mfhd', u32(0, 1)),
      box('traf', box('tfhd', u32(0x020038, 1, 1024, 0x400001, 0)), ...runs),
    );
    const head = concat(header, ...Array.from({ length: 60 }, () => moof));
    const started = performance.now();
    await probeAudio(beginningOf(head, 2 ** 32), ports.decoder);
    expect(performance.now() - started).toBeLessThan(15_000);
  });

  it('with tables of four billion entries', async () => {
    for (const [type, offset] of [
      ['stsz', 12],
      ['stsz', 8],
      ['stts', 8],
      ['stts', 12],
      ['stsc', 8],
      ['stsc', 16],
      ['stco', 8],
    ] as const) {
      await expectFast(patched(indexFirst, type, [0xff, 0xff, 0xff, 0xff], offset));
      await expectFast(patched(indexFirst, type, [0, 0, 0, 1], offset));
    }
  });

  it('with 50,000 nested boxes', () => expectFast(concat(...Array.from({ length: 50_000 }, () => u32(0, 0x6d6f6f76)))));
});

it("parses iTunes' comment on gapless playback", () => {
  expect(parseGaplessComment(' 00000000 00000840 000001CA 00000000003F31F6 00000000')).toEqual({
    delaySamples: 0x840,
    paddingSamples: 0x1ca,
    recordingSamples: 0x3f31f6,
  });
  expect(parseGaplessComment('nothing')).toBeUndefined();
});

const RATE_HZ = 1000;
const FRAMES = 100;
const WARNING = 'Parts of the audio of the MP4 file have another coding than its beginning and were left out.';

const entry = (type: string) => ({ type, channels: 1, bits: 16, rateHz: RATE_HZ, timescale: RATE_HZ });
/** 16-bit samples that are loud in either byte order: 100 in each of three sections. */
const data = new Uint8Array(2 * 3 * FRAMES).fill(0x41);
const ftyp = box('ftyp', u32(0x71742020, 0));

/** A track of three chunks; the middle one has the second description. */
function tabled(second: string): Uint8Array {
  const fileWith = (at: number) => {
    const stsc = box('stsc', u32(0, 3, 1, FRAMES, 1, 2, FRAMES, 2, 3, FRAMES, 1));
    const stco = box('stco', u32(0, 3, at, at + 2 * FRAMES, at + 4 * FRAMES));
    const tables = [box('stts', u32(0, 1, 3 * FRAMES, 1)), stsc, box('stsz', u32(0, 2, 3 * FRAMES)), stco];
    const moov = box('moov', movieHeader(1000), soundTrack(1, entry('sowt'), tables, [entry(second)]));
    return concat(ftyp, moov, box('mdat', data));
  };
  return fileWith(fileWith(0).length - data.length);
}

/** A track of three fragments; the middle one has the second description. */
function fragmented(second: string): Uint8Array {
  const trex = box('trex', u32(0, 1, 1, 1, 2, 0));
  const track = soundTrack(1, entry('sowt'), NO_SAMPLES, [entry(second)]);
  const fragments = [1, 2, 1].flatMap((description, i) => {
    const moofWith = (offset: number) => {
      const tfhd = box('tfhd', u32(0x02_0002, 1, description));
      const trun = box('trun', u32(0x01, FRAMES, offset));
      const traf = box('traf', tfhd, box('tfdt', u32(0, i * FRAMES)), trun);
      return box('moof', box('mfhd', u32(0, i + 1)), traf);
    };
    return [moofWith(moofWith(0).length + 8), box('mdat', data.subarray(0, 2 * FRAMES))];
  });
  return concat(ftyp, box('moov', movieHeader(1000), track, box('mvex', trex)), ...fragments);
}

describe.each([
  ['tables', tabled],
  ['fragments', fragmented],
])('a second sample description in %s', (_name, fileOf) => {
  it('is left out if its coding differs', async () => {
    const file = fileOf('twos');
    const index = await indexOf(file);
    expect(index).toMatchObject({ totalSamples: 3 * FRAMES, warning: WARNING });
    const samples = await readSourceRate(file, index, ports);
    samples.forEach((value, i) => {
      expect(value === 0).toBe(i >= FRAMES && i < 2 * FRAMES);
    });
    for (const start of [1, FRAMES + 50, 2 * FRAMES + 1]) {
      expect(worstDifference(await readSourceRate(file, index, ports, start), samples.subarray(start))).toBe(0);
    }
  });

  it('is decoded if it equals the first', async () => {
    const index = await indexOf(fileOf('sowt'));
    expect(index.totalSamples).toBe(3 * FRAMES);
    expect(index.warning).toBeUndefined();
    expect((await readSourceRate(fileOf('sowt'), index, ports)).every((value) => value !== 0)).toBe(true);
  });
});
