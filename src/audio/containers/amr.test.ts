import { describe, expect, it } from 'vitest';
import { audioPorts, concat, memorySource, probeAudio, readSourceRate } from '../../../test/helpers/audio.ts';
import { formatFixture, indexOf } from '../../../test/helpers/indexes.ts';
import { id3v1 } from '../../../test/helpers/mp3-frames.ts';

const ports = audioPorts();
const nb = formatFixture('amr-nb-8000-mono.amr');
const wb = formatFixture('amr-wb-16000-mono.amr');

/** Types of the frames of an AMR file: 7 is 12.2 kbit/s, 8 comfort noise, 15 not transmitted. */
function frameTypes(file: Uint8Array): number[] {
  const types: number[] = [];
  for (let at = 6; at < file.length; at += types.at(-1) === 7 ? 32 : types.at(-1) === 8 ? 6 : 1)
    types.push(file[at] >> 3);
  return types;
}

const isSilent = (samples: Float32Array) => samples.every((value) => value === 0);

describe('AMR frames without speech', () => {
  it('become silence of the same length', async () => {
    const file = formatFixture('amr-nb-dtx-8000-mono.amr');
    const index = await indexOf(file);
    const types = frameTypes(file);
    expect(index).toMatchObject({
      format: 'amr',
      codec: 'amr-nb',
      sampleRateHz: 8000,
      totalSamples: types.length * 160,
    });
    expect(index.warning).toBeUndefined();
    const samples = await readSourceRate(file, index, ports);
    expect(samples).toHaveLength(index.totalSamples);
    const silent = types.map((_, i) => isSilent(samples.slice(i * 160, (i + 1) * 160)));
    expect(silent).toEqual(types.map((type) => type === 8 || type === 15));
    expect(silent.filter(Boolean).length).toBeGreaterThan(10);
  });

  it('become silence in AMR-WB', async () => {
    const noise = new Uint8Array(6);
    noise[0] = (9 << 3) | 4;
    const cut = 9 + 33 * 100;
    const file = concat(wb.slice(0, cut), noise, Uint8Array.of((14 << 3) | 4, (15 << 3) | 4), wb.slice(cut));
    const index = await indexOf(file);
    expect(index).toMatchObject({ codec: 'amr-wb', sampleRateHz: 16000, totalSamples: 253 * 320 });
    const samples = await readSourceRate(file, index, ports);
    expect(isSilent(samples.slice(100 * 320, 103 * 320))).toBe(true);
    expect(isSilent(samples.slice(103 * 320, 104 * 320))).toBe(false);
  });
});

describe('damage in AMR', () => {
  it('is skipped up to the next chain of frames, with a warning', async () => {
    const file = concat(nb.slice(0, 6 + 32 * 50), new Uint8Array(500).fill(0xff), nb.slice(6 + 32 * 50));
    expect(await indexOf(file)).toMatchObject({
      totalSamples: 250 * 160,
      warning: '500 bytes inside the AMR file are damaged and were left out.',
    });
  });

  it('of zeros is not read as frames', async () => {
    for (const [file, magic, frameBytes, name] of [
      [nb, 6, 32, 'AMR'],
      [wb, 9, 33, 'AMR-WB'],
    ] as const) {
      const cut = magic + 50 * frameBytes;
      const hole = concat(file.slice(0, cut), new Uint8Array(4096), file.slice(cut));
      expect(await indexOf(hole)).toMatchObject({
        durationSeconds: 5,
        warning: `4096 bytes inside the ${name} file are damaged and were left out.`,
      });
      for (const length of [1, 12, 13, 65_536]) {
        const padded = await indexOf(concat(file, new Uint8Array(length)));
        expect(padded.durationSeconds).toBe(5);
        expect(padded.warning).toBeUndefined();
      }
    }
  });

  it('of zeros across a block border of the reader is not read as frames', async () => {
    const before = concat(...Array.from({ length: 7 }, () => nb.slice(6)));
    for (const zeros of [5, 12, 13, 20]) {
      const lead = new Uint8Array((1 << 20) - 6 - before.length - zeros);
      const file = concat(nb.slice(0, 6), before, lead, new Uint8Array(2 * zeros), nb.slice(6));
      expect((await indexOf(file)).durationSeconds).toBe(40);
    }
  });

  it('is not reported for tags after the audio', async () => {
    const index = await indexOf(concat(nb, id3v1()));
    expect(index.durationSeconds).toBe(5);
    expect(index.warning).toBeUndefined();
  });

  it('at the end removes the truncated frame, with a warning', async () => {
    expect(await indexOf(wb.slice(0, wb.length - 1))).toMatchObject({
      totalSamples: 249 * 320,
      warning: expect.stringMatching(/AMR-WB file is incomplete/),
    });
  });
});

it('rejects AMR files with several channels or without frames', async () => {
  for (const [text, kind] of [
    ['#!AMR_MC1.0\n', 'unsupported'],
    ['#!AMR-WB_MC1.0\n', 'unsupported'],
    ['#!AMR\n', 'no_samples'],
    ['#!AMR-WB\n', 'no_samples'],
  ]) {
    const probed = await probeAudio(memorySource(new Uint8Array(Buffer.from(text))), ports.decoder);
    expect(probed).toMatchObject({ ok: false, error: { kind } });
  }
});
