import { describe, expect, it } from 'vitest';
import { audioPorts, concat, readSourceRate, worstDifference } from '../../../../test/helpers/audio.ts';
import { formatFixture } from '../../../../test/helpers/bytes.ts';
import { indexAs } from '../../../../test/helpers/indexes.ts';
import { PACKET, packetsOf, renamed, withStreams } from '../../../../test/helpers/mpeg-ts.ts';

const ports = audioPorts();
const aac = formatFixture('mpegts-aac-44100-stereo.mpegts');
const indexOf = (file: Uint8Array) => indexAs('mpeg-ts', file);

const [SOUND, OTHER] = [0x100, 0x12c];
const [AAC, AC3, PICTURES] = [15, 129, 27];

it('sound that a later table names is found after pictures alone', async () => {
  const plain = await indexOf(aac);
  const tables = aac.subarray(0, packetsOf(aac, SOUND)[0]);
  const slate = concat(...Array.from({ length: 20 }, () => withStreams(tables, [[PICTURES, OTHER]])));
  const index = await indexOf(concat(slate, aac));
  expect(index).toMatchObject({ totalSamples: plain.totalSamples });
  expect(index.warning).toBeUndefined();
});

describe('sound that moves to another PID', () => {
  const twice = async () => 2 * (await indexOf(aac)).totalSamples;

  it('is followed, and parts have the samples of the whole', async () => {
    const file = concat(aac, renamed(withStreams(aac, [[AAC, OTHER]]), SOUND, OTHER), aac);
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

  it('is followed where its old PID is the pictures of what comes then', async () => {
    const streams = [
      [PICTURES, SOUND],
      [AAC, OTHER],
    ] as const;
    // Bytes of pictures that look like sound.
    const behind = concat(...packetsOf(aac, SOUND).map((at) => aac.subarray(at, at + PACKET)));
    const file = concat(aac, renamed(withStreams(aac, streams), SOUND, OTHER), behind, behind);
    expect((await indexOf(file)).totalSamples).toBe(await twice());
  });

  it('is not taken from there where it is coded in another way, with a warning', async () => {
    const index = await indexOf(concat(aac, withStreams(aac, [[AC3, SOUND]])));
    expect(index.totalSamples).toBe((await indexOf(aac)).totalSamples);
    expect(index.warning).toBe('Parts of the MPEG transport stream hold sound in another coding; they were left out.');
  });

  it('is not believed to do so by a damaged table', async () => {
    const behind = withStreams(aac, [[AC3, SOUND]]);
    for (const at of packetsOf(behind, 0x1000)) behind[at + 8] ^= 0x40;
    const index = await indexOf(concat(aac, behind));
    expect(index).toMatchObject({ totalSamples: await twice() });
  });
});
