import { describe, expect, it } from 'vitest';
import {
  audioPorts,
  concat,
  memorySource,
  probeAudio,
  random,
  readSourceRate,
  worstDifference,
} from '../../test/helpers/audio.ts';
import { formatFixture } from '../../test/helpers/bytes.ts';
import { indexAs, indexOf } from '../../test/helpers/indexes.ts';
import { alacTrack, decoderConfig, MAX_OPUS_CHANNELS, opusHeadOf, opusUnit, parseOpusHead } from './codec-config.ts';

const config = Uint8Array.from([0, 0, 16, 0, 0, 16, 40, 10, 14, 2, 0, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xac, 0x44]);
const withByte = (at: number, value: number) => config.map((byte, i) => (i === at ? value : byte));

it('reads rate and channels of an ALAC configuration and adds the atom', () => {
  const extraData = Uint8Array.from([0, 0, 0, 36, ...Buffer.from('alac'), 0, 0, 0, 0, ...config]);
  expect(alacTrack(config)).toEqual({ codec: 'alac', sampleRateHz: 44100, channels: 2, extraData });
});

it('rejects ALAC configurations that no encoder writes', () => {
  expect(alacTrack(config.slice(1))).toBeUndefined();
  expect(alacTrack(withByte(9, 9))).toBeUndefined();
  expect(alacTrack(withByte(5, 17))).toBeUndefined();
  expect(alacTrack(withByte(0, 9))).toBeUndefined();
});

describe('decoderConfig', () => {
  const specific = [5, 2, 0x14, 0x08];
  const decoder = [4, 13 + specific.length, 0x40, ...Array(12).fill(7), ...specific];
  const found = { objectType: 0x40, privateData: Uint8Array.of(0x14, 0x08) };

  it('skips all optional fields', () => {
    // Flags 0xe0: another stream's number (9, 9), an address of 3 bytes, a clock's number (9, 9).
    expect(decoderConfig(Uint8Array.from([3, 30, 0, 0, 0xe0, 9, 9, 3, 1, 1, 1, 9, 9, ...decoder]))).toEqual(found);
    expect(decoderConfig(Uint8Array.from([3, 30, 0, 0, 0, ...decoder]))).toEqual(found);
    expect(decoderConfig(Uint8Array.from([6, 1, 9, ...decoder]))).toEqual(found);
  });

  it('returns empty private data if missing, and undefined for other bytes', () => {
    expect(decoderConfig(Uint8Array.from([3, 30, 0, 0, 0, 4, 13, 0x69]))).toEqual({
      objectType: 0x69,
      privateData: new Uint8Array(0),
    });
    expect(decoderConfig(new Uint8Array(0))).toBeUndefined();
    expect(decoderConfig(Uint8Array.of(1, 2, 3, 4, 5, 6))).toBeUndefined();
  });
});

const ports = audioPorts();
const stereo = formatFixture('mpegts-opus-stereo.mpegts');

describe('a control header of Opus', () => {
  it('gives the length of the packet and the samples to cut', () => {
    const header = Uint8Array.of(0x7f, 0xfc, 255, 10, 0x01, 0x38, 0x00, 0x20, 2, 9, 9);
    const unit = { headerBytes: 11, bytes: 11 + 265, startTrim: 312, endTrim: 32 };
    expect(opusUnit(concat(header, new Uint8Array(265)), 0)).toEqual(unit);
    expect(opusUnit(Uint8Array.of(0x7f, 0xe0, 3, 1, 2, 3), 0)).toMatchObject({ headerBytes: 3, bytes: 6 });
    expect(opusUnit(Uint8Array.of(0x7f, 0xe0, 0), 0)).toBeUndefined();
    expect(opusUnit(Uint8Array.of(0x7e, 0xe0, 3), 0)).toBeUndefined();
  });

  it('that is truncated gives a length above the available bytes', () => {
    const header = Uint8Array.of(0x7f, 0xfc, 255, 10, 0x01, 0x38, 0x00, 0x20, 2, 9, 9);
    for (let length = 3; length < header.length; length++) {
      expect(opusUnit(header.subarray(0, length), 0)?.bytes).toBeGreaterThan(length);
    }
  });

  it('of random bytes gives a bounded length', () => {
    expect(opusUnit(concat(Uint8Array.of(0x7f, 0xe0), new Uint8Array(100_000).fill(255)), 0)).toBeUndefined();
    const next = random(6);
    for (let round = 0; round < 20_000; round++) {
      const bytes = Uint8Array.from({ length: 2 + Math.floor(next() * 400) }, () =>
        next() < 0.8 ? 255 : Math.floor(next() * 256),
      );
      bytes.set([0x7f, 0xe0 | bytes[1]]);
      const unit = opusUnit(bytes, 0);
      if (unit) expect(unit.bytes).toBeLessThan(63_000);
    }
  });
});

it('makes an OpusHead for every number of channels', () => {
  for (let channels = 1; channels <= MAX_OPUS_CHANNELS; channels++) {
    expect(parseOpusHead(opusHeadOf(channels))).toEqual({ channels, preSkip: 0 });
  }
});

describe('Opus in transport streams', () => {
  it.each([
    ['mpegts-opus-stereo.mpegts', 'ogg-opus-stereo.opus', 2],
    ['mpegts-opus-6ch.mpegts', 'ogg-opus-6ch.opus', 6],
  ])('%s decodes to the samples of %s', async (name, ogg, channels) => {
    const [file, same] = [formatFixture(name), formatFixture(ogg)];
    const index = await indexAs('mpeg-ts', file);
    const other = await indexOf(same);
    expect(index).toMatchObject({ codec: 'opus', channels, totalSamples: other.totalSamples });
    expect(index.warning).toBeUndefined();
    const samples = await readSourceRate(file, index, ports);
    expect(worstDifference(samples, await readSourceRate(same, other, ports))).toBe(0);
  });

  it('with an unusual channel order is rejected by name', async () => {
    const file = stereo.slice();
    // Changes the channel code after Opus' extension descriptor of two bytes.
    for (let at = 0; at + 4 < file.length; at++) {
      if (file[at] === 0x7f && file[at + 1] === 2 && file[at + 2] === 0x80) file[at + 3] = 0x81;
    }
    expect(await probeAudio(memorySource(file), ports.decoder)).toMatchObject({
      ok: false,
      error: { kind: 'unsupported', message: expect.stringMatching(/Opus with an unusual order of channels/) },
    });
  });
});
