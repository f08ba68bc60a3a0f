import { describe, expect, it } from 'vitest';
import { audioPorts, concat, readSourceRate, worstDifference } from '../../../../test/helpers/audio.ts';
import { indexOf } from '../../../../test/helpers/indexes.ts';
import { box, movieHeader, NO_SAMPLES, soundTrack, u32 } from '../../../../test/helpers/mp4.ts';

const ports = audioPorts();
const RATE_HZ = 1000;
const FRAMES = 100;
const WARNING = 'Parts of the sound of the MP4 file are coded in another way than its beginning; they were left out.';

const entry = (type: string) => ({ type, channels: 1, bits: 16, rateHz: RATE_HZ, timescale: RATE_HZ });
/** Samples of 16 bits that are loud in either byte order: 100 in each of three parts. */
const data = new Uint8Array(2 * 3 * FRAMES).fill(0x41);
const ftyp = box('ftyp', u32(0x71742020, 0));

/** Chunks of a track in which the one in the middle has the second description. */
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

/** The same as three fragments. */
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
])('a second description of the samples, in %s,', (_name, fileOf) => {
  it('is not decoded with the first', async () => {
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

  it('may say the same as the first', async () => {
    const index = await indexOf(fileOf('sowt'));
    expect(index.totalSamples).toBe(3 * FRAMES);
    expect(index.warning).toBeUndefined();
    expect((await readSourceRate(fileOf('sowt'), index, ports)).every((value) => value !== 0)).toBe(true);
  });
});
