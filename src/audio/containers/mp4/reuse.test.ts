import { describe, expect, it } from 'vitest';
import { audioPorts, concat, readSourceRate } from '../../../../test/helpers/audio.ts';
import { indexAs } from '../../../../test/helpers/indexes.ts';
import { box, movieHeader, NO_SAMPLES, type SoundEntryFields, soundTrack, u32 } from '../../../../test/helpers/mp4.ts';

const ports = audioPorts();
const dOps = box('dOps', Uint8Array.of(0, 1, 0, 0, 0, 0, 0xbb, 0x80, 0, 0, 0));
const opus: SoundEntryFields = { type: 'Opus', channels: 1, bits: 16, rateHz: 48000, timescale: 48000, boxes: dOps };
const head = box('ftyp', u32(0x69736f6d, 0));

/** Packets of one byte: some of 2.5 ms of silence, and many without a sample. */
const PACKETS = 2000;
const data = new Uint8Array(PACKETS).fill(0x03).fill(0xe0, 0, 10);

/** 2000 packets in the same bytes, as often as wanted: by the table of chunks, or by fragments. */
const files: Readonly<Record<string, (times: number) => Uint8Array>> = {
  tables(times) {
    const mdat = box('mdat', data);
    const tables = [
      box('stts', u32(0, 0)),
      box('stsc', u32(0, 1, 1, PACKETS, 1)),
      box('stsz', u32(0, 1, times * PACKETS)),
      box('stco', u32(0, times, ...new Array<number>(times).fill(head.length + 8))),
    ];
    return concat(head, mdat, box('moov', movieHeader(1000), soundTrack(1, opus, tables)));
  },
  fragments(times) {
    const trex = box('mvex', box('trex', u32(0, 1, 1, 120, 1, 0)));
    const index = concat(head, box('moov', movieHeader(1000), soundTrack(1, opus, NO_SAMPLES), trex));
    const run = box('trun', u32(1, PACKETS, 0));
    const header = box('tfhd', u32(1, 1, 0, index.length + 8));
    const runs = new Array<Uint8Array>(times).fill(run);
    return concat(index, box('mdat', data), box('moof', box('mfhd', u32(0, 1)), box('traf', header, ...runs)));
  },
};

describe.each(Object.keys(files))('packets by %s in the same bytes', (kind) => {
  it('once and twice are read', async () => {
    for (const times of [1, 2]) {
      const index = await indexAs('mp4', files[kind](times));
      expect(index.warning).toBeUndefined();
      expect(index.totalSamples).toBe(times * 10 * 120);
    }
  });

  it('thousands of times are not: a file of 20 KB took a minute', async () => {
    const file = files[kind](1000);
    const index = await indexAs('mp4', file);
    expect(index.warning).toBe('The MP4 file plays the same bytes again and again; what is behind was left out.');
    // All packets that fit in twice the bytes of the file.
    expect(index.durationSeconds).toBeLessThan(1);
    const started = performance.now();
    expect(await readSourceRate(file, index, ports)).toHaveLength(index.totalSamples);
    expect(performance.now() - started).toBeLessThan(5000);
  });
});
