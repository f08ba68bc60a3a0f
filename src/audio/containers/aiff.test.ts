import { describe, expect, it } from 'vitest';
import { type AiffOptions, aiffFile } from '../../../test/helpers/apple-audio.ts';
import { audioPorts, type Decoded, memorySource, probeAudio, readSourceRate } from '../../../test/helpers/audio.ts';

const ports = audioPorts();
const probe = (options: AiffOptions, data: ArrayLike<number>) =>
  probeAudio(memorySource(aiffFile(options, data)), ports.decoder);

async function indexOf(options: AiffOptions, data: ArrayLike<number>): Promise<Decoded> {
  const probed = await probe(options, data);
  if (!probed.ok) throw new Error(probed.error.message);
  return probed.value;
}

async function samplesOf(options: AiffOptions, data: ArrayLike<number>): Promise<number[]> {
  return [...(await readSourceRate(aiffFile(options, data), await indexOf(options, data), ports))];
}

describe('AIFF samples', () => {
  it.each<[string, AiffOptions, number[], number[]]>([
    ['8 bits', { bits: 8 }, [0x40, 0xc0], [0.5, -0.5]],
    ['16 bits', { bits: 16 }, [0x40, 0, 0xc0, 0], [0.5, -0.5]],
    ['12 bits, left-aligned', { bits: 12 }, [0x40, 0x10], [0.5 + 16 / 32768]],
    ['24 bits', { bits: 24 }, [0x80, 0, 0, 0x40, 0, 1], [-1, 0.5 + 1 / 8388608]],
    ['32 bits', { bits: 32 }, [0xc0, 0, 0, 0], [-0.5]],
    ['NONE', { type: 'NONE', bits: 16 }, [0x40, 0], [0.5]],
    ['sowt', { type: 'sowt', bits: 16 }, [0, 0x40], [0.5]],
    ['little-endian 24 bits', { type: '42ni', bits: 24 }, [0, 0, 0xc0], [-0.5]],
    ['raw', { type: 'raw ', bits: 8 }, [0xc0, 0x40], [0.5, -0.5]],
    ['fl32', { type: 'fl32', bits: 32 }, [0x3f, 0, 0, 0], [0.5]],
    ['FL64', { type: 'FL64', bits: 64 }, [0xbf, 0xe0, 0, 0, 0, 0, 0, 0], [-0.5]],
    ['alaw', { type: 'alaw', bits: 16 }, [0xd5], [8 / 32768]],
    ['ULAW', { type: 'ULAW', bits: 16 }, [0xff], [0]],
    ['two channels: their mean', { channels: 2 }, [0x40, 0, 0xc0, 0, 0x40, 0, 0, 0], [0, 0.25]],
  ])('%s', async (_name, options, data, expected) => {
    expect(await samplesOf(options, data)).toEqual(expected);
  });

  it('are read after the offset of the sound chunk, in either order of the chunks', async () => {
    const options = { isSoundFirst: true, skippedBytes: 5, extra: [...Buffer.from('NAME'), 0, 0, 0, 3, 1, 2, 3, 0] };
    expect(await samplesOf(options, [0x40, 0, 0x20, 0])).toEqual([0.5, 0.25]);
    expect(await indexOf({ rateHz: 192_000 }, [0, 0])).toMatchObject({ sampleRateHz: 192_000, format: 'aiff' });
  });
});

describe('the length of AIFF', () => {
  it('is that of the file if the sound chunk is truncated or of unknown size, with a warning', async () => {
    const data = new Uint8Array(2000);
    expect(await indexOf({ declaredBytes: 5008 }, data)).toMatchObject({
      totalSamples: 1000,
      warning: expect.stringMatching(/is incomplete|is shorter than/),
    });
    for (const declaredBytes of [0, 0xffffffff]) {
      expect(await indexOf({ declaredBytes }, data)).toMatchObject({
        warning: expect.stringMatching(/does not say how long/),
      });
    }
  });
});

describe('the AIFF reader rejects', () => {
  it.each<[AiffOptions, string, RegExp]>([
    [{ type: 'MAC6' }, 'unsupported', /'MAC6'/],
    [{ type: 'ima4', channels: 3 }, 'unsupported', /3 channels/],
    [{ bits: 40 }, 'unsupported', /40 bits/],
    [{ bits: 0 }, 'unsupported', /0 bits/],
    [{ rateHz: 0 }, 'unsupported', /0 Hz/],
    [{ channels: 0 }, 'unsupported', /0 channels/],
    [{ declaredBytes: 8 }, 'no_samples', /no samples/],
  ])('%j', async (options, kind, message) => {
    expect(await probe(options, new Uint8Array(100))).toMatchObject({
      ok: false,
      error: { kind, message: expect.stringMatching(message) },
    });
  });

  it('a file with a missing chunk', async () => {
    const file = aiffFile({}, new Uint8Array(100));
    for (const length of [12, 20, 37, 45]) {
      expect(await probeAudio(memorySource(file.slice(0, length)), ports.decoder)).toMatchObject({ ok: false });
    }
  });
});
