import { describe, expect, it } from 'vitest';
import {
  audioPorts,
  concat,
  memorySource,
  probeAudio,
  readSourceRate,
  worstDifference,
} from '../../../test/helpers/audio.ts';
import { formatFixture } from '../../../test/helpers/bytes.ts';
import { indexAs } from '../../../test/helpers/indexes.ts';
import { moved, PACKET, packetsOf, renamed, withStreams } from '../../../test/helpers/mpeg-ts.ts';

const ports = audioPorts();
const aac = formatFixture('mpegts-aac-44100-stereo.mpegts');
const probe = (file: Uint8Array) => probeAudio(memorySource(file), ports.decoder);

const indexOf = (file: Uint8Array) => indexAs('mpeg-ts', file);
/** PID of the audio in the fixtures. */
const AUDIO_PID = 0x100;
/** PID of the audio in the fixture with video. */
const VIDEO_AUDIO_PID = 0x101;

describe('length of an MPEG transport stream', () => {
  it.each([
    ['mpegts-aac-44100-stereo.mpegts', 'aac', 44100, 90_112],
    ['mpegts-mp3-44100-mono.mpegts', 'mp3', 44100, 133_632],
    ['mpegts-mp2-32000-mono.mpegts', 'mp2', 32000, 96_768],
    ['mpegts-video-aac-44100-mono.mpegts', 'aac', 44100, 90_112],
    ['mpegts-latm-aac-48000-stereo.mpegts', 'aac', 48000, 97_280],
    ['mpegts-opus-stereo.mpegts', 'opus', 48000, 144_000],
    ['mpegts-192-ac3-48000-stereo.m2ts', 'ac3', 48000, 49_152],
  ])('%s', async (name, codec, sampleRateHz, totalSamples) => {
    const index = await indexOf(formatFixture(name));
    expect(index).toMatchObject({ codec, sampleRateHz, totalSamples });
    expect(index.warning).toBeUndefined();
  });
});

describe('times of a transport stream', () => {
  it('may overflow their 33 bits', async () => {
    const plain = await indexOf(aac);
    const file = moved(aac, AUDIO_PID, 2 ** 33 / 90_000 - 2);
    expect(await indexOf(file)).toMatchObject({ totalSamples: plain.totalSamples });
    expect((await indexOf(file)).warning).toBeUndefined();
  });

  it('that restart near the overflow are not taken for an overflow', async () => {
    const plain = await indexOf(aac);
    const file = concat(moved(aac, AUDIO_PID, 2 ** 33 / 90_000 - 100), aac);
    expect(await indexOf(file)).toMatchObject({ totalSamples: 2 * plain.totalSamples });
  });

  it('that restart early give no silence', async () => {
    const plain = await indexOf(aac);
    const file = concat(moved(aac, AUDIO_PID, 300), aac);
    expect((await indexOf(file)).totalSamples).toBe(2 * plain.totalSamples);
  });

  it('of data and subtitles do not determine the start of a recording', async () => {
    const video = formatFixture('mpegts-video-aac-44100-mono.mpegts');
    const plain = await indexOf(video);
    const early = moved(video, 0x100, -1);
    expect(((await indexOf(early)).totalSamples - plain.totalSamples) / 44100).toBeCloseTo(1, 1);
    const data = withStreams(early, [
      [15, VIDEO_AUDIO_PID],
      [6, 0x100],
    ]);
    expect((await indexOf(data)).totalSamples).toBe(plain.totalSamples);
  });

  it('give silence for lost packets, and later audio keeps its time', async () => {
    const plain = await indexOf(aac);
    const packets = packetsOf(aac, AUDIO_PID);
    const [from, to] = [packets[30], packets[60]];
    const file = concat(aac.subarray(0, from), aac.subarray(to));
    const index = await indexOf(file);
    expect(Math.abs(index.totalSamples - plain.totalSamples)).toBeLessThanOrEqual(2);
    const [good, bad] = [await readSourceRate(aac, plain, ports), await readSourceRate(file, index, ports)];
    const tail = good.subarray(good.length - 12_000);
    const shifts = [-1, 0, 1].map((shift) => {
      const start = bad.length - 12_000 + shift;
      return tail.slice(10, -10).reduce((sum, value, i) => sum + (value - bad[start + 10 + i]) ** 2, 0);
    });
    const power = tail.reduce((sum, value) => sum + value * value, 0);
    expect(shifts.indexOf(Math.min(...shifts))).toBe(1);
    expect(shifts[1] / power).toBeLessThan(0.02);
  });
});

it('reads a stream that begins inside a packet or has bytes between packets', async () => {
  const plain = await indexOf(aac);
  expect((await indexOf(aac.slice(100))).totalSamples).toBeLessThanOrEqual(plain.totalSamples);
  const middle = 40 * PACKET;
  const file = concat(aac.subarray(0, middle), new Uint8Array(77), aac.subarray(middle));
  const samples = await readSourceRate(file, await indexOf(file), ports);
  expect(worstDifference(samples, await readSourceRate(aac, plain, ports))).toBe(0);
});

describe('a packet with the counter of the previous one', () => {
  const counted = (file: Uint8Array, pid: number, from: number): Uint8Array => {
    const out = file.slice();
    packetsOf(out, pid).forEach((at, i) => {
      out[at + 3] = (out[at + 3] & 0xf0) | ((from + i) & 15);
    });
    return out;
  };

  it('begins an appended file', async () => {
    const plain = await indexOf(aac);
    const packets = packetsOf(aac, AUDIO_PID).length;
    const totals: number[] = [];
    for (const first of [packets, packets - 1]) {
      const file = concat(counted(aac, AUDIO_PID, 0), counted(aac, AUDIO_PID, first));
      totals.push((await indexOf(file)).totalSamples);
    }
    expect(totals).toEqual([2 * plain.totalSamples, 2 * plain.totalSamples]);
  });

  it('is skipped if its bytes are the same', async () => {
    const plain = await indexOf(aac);
    const whole = await readSourceRate(aac, plain, ports);
    for (const at of packetsOf(aac, AUDIO_PID).slice(14, 20)) {
      const file = concat(aac.subarray(0, at + PACKET), aac.subarray(at));
      const index = await indexOf(file);
      expect(index.totalSamples).toBe(plain.totalSamples);
      expect(worstDifference(await readSourceRate(file, index, ports), whole)).toBe(0);
    }
  });
});

describe('the transport stream reader rejects', () => {
  const refused = async (file: Uint8Array, kind: string, message: RegExp) =>
    expect(await probe(file)).toMatchObject({ ok: false, error: { kind, message: expect.stringMatching(message) } });

  it('encrypted packets', async () => {
    const file = aac.slice();
    for (const at of packetsOf(aac, AUDIO_PID)) file[at + 3] |= 0x80;
    await refused(file, 'unsupported', /encrypted/);
  });

  it('a stream without audio, and unsupported codings', async () => {
    const pmt = packetsOf(aac, 0x1000)[0];
    const typeAt = aac.indexOf(15, pmt + 17);
    for (const [type, kind, message] of [
      [2, 'no_samples', /no audio track/],
      // The frames are not LATM.
      [17, 'no_samples', /no samples/],
      [130, 'unsupported', /DTS/],
    ] as const) {
      const file = aac.slice();
      for (const at of packetsOf(aac, 0x1000)) file[at + typeAt - pmt] = type;
      await refused(file, kind, message);
    }
  });

  it('a stream without tables', () => {
    const file = aac.slice();
    for (const pid of [0, 0x1000]) for (const at of packetsOf(aac, pid)) file[at + 1] = 0x1f;
    return refused(file, 'corrupt', /no table of its streams/);
  });
});

const OTHER_PID = 0x12c;
const [AAC, AC3, VIDEO] = [15, 129, 27];

it('finds audio that only a later table lists', async () => {
  const plain = await indexOf(aac);
  const tables = aac.subarray(0, packetsOf(aac, AUDIO_PID)[0]);
  const slate = concat(...Array.from({ length: 20 }, () => withStreams(tables, [[VIDEO, OTHER_PID]])));
  const index = await indexOf(concat(slate, aac));
  expect(index).toMatchObject({ totalSamples: plain.totalSamples });
  expect(index.warning).toBeUndefined();
});

describe('audio that moves to another PID', () => {
  const doubleLength = async () => 2 * (await indexOf(aac)).totalSamples;

  it('is followed, with the same samples from any start', async () => {
    const file = concat(aac, renamed(withStreams(aac, [[AAC, OTHER_PID]]), AUDIO_PID, OTHER_PID), aac);
    const index = await indexOf(file);
    const length = (await indexOf(aac)).totalSamples;
    expect(index.totalSamples).toBe(3 * length);
    const whole = await readSourceRate(file, index, ports);
    const plain = concat(aac, aac, aac);
    expect(worstDifference(whole, await readSourceRate(plain, await indexOf(plain), ports))).toBe(0);
    for (const start of [1, length + 5000, 2 * length + 70_000]) {
      expect(worstDifference(await readSourceRate(file, index, ports, start), whole.subarray(start))).toBe(0);
    }
  });

  it('is followed if its old PID becomes the video', async () => {
    const streams = [
      [VIDEO, AUDIO_PID],
      [AAC, OTHER_PID],
    ] as const;
    // Bytes of video that look like audio.
    const video = concat(...packetsOf(aac, AUDIO_PID).map((at) => aac.subarray(at, at + PACKET)));
    const file = concat(aac, renamed(withStreams(aac, streams), AUDIO_PID, OTHER_PID), video, video);
    expect((await indexOf(file)).totalSamples).toBe(await doubleLength());
  });

  it('is left out if its coding changes, with a warning', async () => {
    const index = await indexOf(concat(aac, withStreams(aac, [[AC3, AUDIO_PID]])));
    expect(index.totalSamples).toBe((await indexOf(aac)).totalSamples);
    expect(index.warning).toBe(
      'Parts of the audio of the MPEG transport stream have another coding and were left out.',
    );
  });

  it('is not followed for a damaged table', async () => {
    const second = withStreams(aac, [[AC3, AUDIO_PID]]);
    for (const at of packetsOf(second, 0x1000)) second[at + 8] ^= 0x40;
    const index = await indexOf(concat(aac, second));
    expect(index).toMatchObject({ totalSamples: await doubleLength() });
  });
});
