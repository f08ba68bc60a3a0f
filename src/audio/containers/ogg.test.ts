import { describe, expect, it } from 'vitest';
import {
  audioPorts,
  concat,
  memorySource,
  probeAudio,
  readAll,
  readSourceRate,
  worstDifference,
} from '../../../test/helpers/audio.ts';
import { formatFixture, patched } from '../../../test/helpers/bytes.ts';
import { indexAs, indexOf } from '../../../test/helpers/indexes.ts';
import { oggPages, withChecksums } from '../../../test/helpers/ogg.ts';
import { BlockReader } from '../block-reader.ts';
import { crc32MsbFirst } from '../crc.ts';
import { type Page, pagesOf, walkOgg } from './ogg-pages.ts';

const ports = audioPorts();
const vorbis = formatFixture('ogg-vorbis-8000-mono.ogg');
const opus = formatFixture('ogg-opus-stereo.opus');
const speech = formatFixture('ogg-opus-speech-mono.opus');
const probe = (file: Uint8Array) => probeAudio(memorySource(file), ports.decoder);

function concatSamples(parts: readonly Float32Array[]): Float32Array {
  const out = new Float32Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

async function pages(file: Uint8Array): Promise<Page[]> {
  const found: Page[] = [];
  for await (const page of pagesOf(new BlockReader(memorySource(file)), 0)) found.push(page);
  return found;
}

it('computes the checksum of the CRC catalogue', () => {
  const check = new TextEncoder().encode('123456789');
  // CRC-32/CKSUM inverts the result of this one.
  expect(~crc32MsbFirst(check) >>> 0).toBe(0x765e7680);
  expect(crc32MsbFirst(check.subarray(3), crc32MsbFirst(check.subarray(0, 3)))).toBe(crc32MsbFirst(check));
});

describe('length of an OGG file', () => {
  it.each([
    ['ogg-vorbis-44100-stereo.ogg', 44100, 88_200],
    ['ogg-vorbis-8000-mono.ogg', 8000, 32_000],
    ['ogg-opus-stereo.opus', 48000, 144_000],
    ['ogg-opus-speech-mono.opus', 48000, 288_000],
    ['ogg-flac-16000-mono.oga', 16000, 16_000],
  ])('%s: is taken from the last page, without the pre-skip', async (name, sampleRateHz, totalSamples) => {
    const index = await indexOf(formatFixture(name));
    expect(index).toMatchObject({ format: 'ogg', sampleRateHz, totalSamples });
    expect(index.warning).toBeUndefined();
  });

  it('cuts the padding at the end of Vorbis in one page', async () => {
    const list = await pages(vorbis);
    const [first] = list.filter(({ granule }) => granule !== undefined && granule > 0);
    const [file, page] = [vorbis.slice(0, first!.end), first!.granule!];
    const changed = file.slice();
    new DataView(changed.buffer).setUint32(first!.start + 6, page - 100, true);
    const shorter = withChecksums(changed);
    const [whole, index] = [await indexOf(file), await indexOf(shorter)];
    expect([whole.totalSamples, index.totalSamples]).toEqual([page, page - 100]);
    const samples = await readSourceRate(file, whole, ports);
    expect(worstDifference(await readSourceRate(shorter, index, ports), samples.subarray(0, page - 100))).toBe(0);
  });

  it('uses the complete pages of a truncated file', async () => {
    const list = await pages(opus);
    const cut = opus.slice(0, list[list.length - 1].start + 100);
    const index = await indexOf(cut);
    expect(index.totalSamples).toBe((list[list.length - 2].granule ?? 0) - 312);
    expect(index.warning).toBe('The OGG file is incomplete; the available part was used.');
  });
});

describe('chained recordings', () => {
  it('are joined, each with its own length', async () => {
    const [first, second] = [await indexOf(opus), await indexOf(speech)];
    const joined = concat(opus, speech, opus);
    const index = await indexOf(joined);
    expect(index.totalSamples).toBe(2 * first.totalSamples + second.totalSamples);
    const samples = await readSourceRate(joined, index, ports);
    const parts = [await readSourceRate(opus, first, ports), await readSourceRate(speech, second, ports)];
    expect(worstDifference(samples.subarray(0, first.totalSamples), parts[0])).toBe(0);
    const thirdStart = first.totalSamples + second.totalSamples;
    expect(worstDifference(samples.subarray(first.totalSamples, thirdStart), parts[1])).toBe(0);
    expect(
      worstDifference(
        await readSourceRate(joined, index, ports, thirdStart - 1000),
        samples.subarray(thirdStart - 1000),
      ),
    ).toBe(0);
  });

  describe('with a recording without audio pages', () => {
    /** The first pages, with the headers. */
    const headers = async (file: Uint8Array) =>
      file.subarray(0, (await pages(file)).find(({ granule }) => granule)!.start);
    const sound = async (file: Uint8Array) => readSourceRate(file, await indexOf(file), ports);

    it.each([
      ['Opus', opus],
      ['Vorbis', vorbis],
      ['FLAC', formatFixture('ogg-flac-16000-mono.oga')],
    ])('%s: skips it at any position', async (_name, file) => {
      const empty = await headers(file);
      const one = await sound(file);
      for (const parts of [
        [empty, file],
        [empty, empty, file, empty],
        [file, empty, empty, file],
      ]) {
        const joined = concat(...parts);
        const index = await indexOf(joined);
        const count = parts.filter((part) => part === file).length;
        expect(index).toMatchObject({ totalSamples: count * one.length });
        expect(index.warning).toBeUndefined();
        const samples = await readSourceRate(joined, index, ports);
        for (let i = 0; i < count; i++) {
          expect(worstDifference(samples.subarray(i * one.length, (i + 1) * one.length), one)).toBe(0);
        }
      }
    });

    it('skips a recording with incomplete headers', async () => {
      const [first] = await pages(opus);
      const index = await indexOf(concat(opus.subarray(0, first!.end), opus, speech));
      expect(index).toMatchObject({ totalSamples: 144_000 + 288_000 });
    });

    it('fails with no_samples if no recording has audio', async () => {
      const empty = await headers(opus);
      for (const file of [empty, concat(empty, empty, await headers(speech))]) {
        expect(await probe(file)).toMatchObject({ ok: false, error: { kind: 'no_samples' } });
      }
    });

    it('warns of a recording that is truncated in its first page', async () => {
      const empty = await headers(opus);
      const index = await indexOf(concat(opus, opus.subarray(0, empty.length + 100)));
      expect(index.totalSamples).toBe(144_000);
      expect(index.warning).toMatch(/later part of the OGG file could not be read/);
    });
  });

  it('reads hundreds of chained recordings', { timeout: 60_000 }, async () => {
    const short = async (file: Uint8Array) => {
      const [, , , fourth] = await pages(file);
      return file.subarray(0, fourth!.start);
    };
    const [one, two] = [await short(speech), await short(opus)];
    const parts = Array.from({ length: 300 }, (_, i) => (i % 3 === 0 ? two : one));
    const file = concat(...parts);
    const index = await indexAs('ogg', file);
    const alone = new Map<Uint8Array, Float32Array>();
    for (const part of [one, two]) alone.set(part, await readSourceRate(part, await indexOf(part), ports));
    const all = concatSamples(parts.map((part) => alone.get(part)!));
    expect(index.totalSamples).toBe(all.length);
    expect(worstDifference(await readSourceRate(file, index, ports), all)).toBe(0);
    for (const start of [all.length >> 1, all.length - 100_000]) {
      expect(worstDifference(await readSourceRate(file, index, ports, start), all.subarray(start))).toBe(0);
    }
  });

  it('stops after 1024 recordings with a warning, and probes each byte about once', {
    timeout: 60_000,
  }, async () => {
    const [, , , fourth] = await pages(speech);
    const file = concat(...Array.from({ length: 1030 }, () => speech.subarray(0, fourth!.start)));
    const source = memorySource(file);
    const probed = await probeAudio(source, ports.decoder);
    const one = await indexOf(speech.subarray(0, fourth!.start));
    expect(probed).toMatchObject({ ok: true, value: { totalSamples: 1024 * one.totalSamples } });
    expect(probed.ok && probed.value.warning).toMatch(/more than 1024 recordings one after another; the rest/);
    expect(source.reads.length).toBeLessThan(2 * Math.ceil(file.length / 2 ** 20));
    // A process that continues from a checkpoint ends at the same recording.
    const whole = await readAll(file, ports, [900 * 16_000]);
    expect(whole.checkpoints).toHaveLength(1);
    const rest = await readAll(file, ports, [], whole.checkpoints[0]);
    expect(rest.end).toEqual(whole.end);
    expect(worstDifference(rest.samples, whole.samples.subarray(900 * 16_000))).toBe(0);
  });

  it('sums the pauses of all recordings in one warning', async () => {
    const list = await pages(speech);
    const lossy = concat(speech.subarray(0, list[3].start), speech.subarray(list[5].start));
    const [one, two] = [await indexOf(lossy), await indexOf(concat(lossy, lossy))];
    const secondsOf = (warning = '') =>
      Array.from(warning.matchAll(/Pauses .*?, ([\d.]+) s in all/g), (m) => Number(m[1]));
    expect(secondsOf(one.warning)).toHaveLength(1);
    expect(secondsOf(two.warning)).toEqual([2 * secondsOf(one.warning)[0]]);
  });

  it('bounds the number of false pages over all recordings', async () => {
    const falsePage = concat(Buffer.from('OggS'), new Uint8Array(22), Uint8Array.of(1, 10), new Uint8Array(10));
    const damaged = concat(opus, ...Array.from({ length: 400 }, () => falsePage));
    const index = await indexAs('ogg', concat(...Array.from({ length: 40 }, () => damaged)));
    expect(index.totalSamples).toBe(26 * 144_000);
    expect(index.warning).toMatch(/later part of the OGG file could not be read/);
  });

  it('leaves out recordings of another rate with a warning', async () => {
    const index = await indexOf(concat(opus, vorbis));
    expect(index.totalSamples).toBe(144_000);
    expect(index.warning).toMatch(/another sample rate and was left out/);
  });
});

describe('comment headers longer than the packet limit', () => {
  const comments = (magic: string) => concat(Buffer.from(magic, 'latin1'), new Uint8Array(5 << 20));

  it('are skipped before Opus audio', async () => {
    const [head, tags, next] = await pages(opus);
    const long = oggPages([comments('OpusTags')], { serial: tags.serial, sequence: 1 });
    const file = concat(opus.subarray(0, head.end), long, opus.subarray(next.start));
    const [index, plain] = [await indexOf(file), await indexOf(opus)];
    expect(index.totalSamples).toBe(144_000);
    expect(index.warning).toBeUndefined();
    expect(worstDifference(await readSourceRate(file, index, ports), await readSourceRate(opus, plain, ports))).toBe(0);
  });

  it('are skipped before the Vorbis setup header', async () => {
    const [head, , ...rest] = await pages(vorbis);
    const setupAt = Buffer.from(vorbis).indexOf('\x05vorbis', 0, 'latin1');
    const next = rest.find(({ start, isContinued }) => start > setupAt && !isContinued)?.start ?? 0;
    const bodies = (await pages(vorbis)).filter(({ start, end }) => end > setupAt && start < next);
    const setup = concat(...bodies.map(({ bodyStart, end }) => vorbis.subarray(Math.max(setupAt, bodyStart), end)));
    const long = oggPages([comments('\x03vorbis'), setup], { serial: head.serial, sequence: 1 });
    const file = concat(vorbis.subarray(0, head.end), long, vorbis.subarray(next));
    const index = await indexOf(file);
    expect(index.totalSamples).toBe(32_000);
    expect(index.warning).toBeUndefined();
  });
});

describe('audio that begins at a position above 0', () => {
  const LATE_SAMPLES = 120_000;

  /** The recording with all positions moved, after a first page for each stream. */
  async function late(
    picture: { readonly first: Uint8Array; readonly next: Uint8Array },
    samples = LATE_SAMPLES,
  ): Promise<Uint8Array> {
    const [head, tags, ...audioPages] = await pages(opus);
    const moved = opus.slice();
    const view = new DataView(moved.buffer);
    for (const { start, granule } of audioPages) {
      if (granule !== undefined) view.setBigInt64(start + 6, BigInt(granule + samples), true);
    }
    const [first, rest] = [moved.subarray(0, head.end), moved.subarray(tags.start)];
    return withChecksums(concat(picture.first, first, picture.next, rest));
  }

  /** Theora of 25 frames a second, and its first frame as number `frame`, counted from 1. */
  function theora(frame: number) {
    const head = new Uint8Array(42);
    head.set(Buffer.from('\x80theora', 'latin1'));
    new DataView(head.buffer).setUint32(22, 25);
    new DataView(head.buffer).setUint32(26, 1);
    head[41] = 6 << 5;
    return {
      first: oggPages([head], { serial: 77, isFirst: true }),
      next: oggPages([new Uint8Array(300)], { serial: 77, sequence: 1, granule: frame << 6 }),
    };
  }

  it('starts with silence of that length in a video', async () => {
    const file = await late(theora(1));
    const [index, plain] = [await indexOf(file), await indexOf(opus)];
    expect(index.totalSamples).toBe(LATE_SAMPLES + 144_000);
    const samples = await readSourceRate(file, index, ports);
    expect(samples.subarray(0, LATE_SAMPLES).every((value) => value === 0)).toBe(true);
    expect(worstDifference(samples.subarray(LATE_SAMPLES), await readSourceRate(opus, plain, ports))).toBe(0);
  });

  it('starts with less silence if the video is late too', async () => {
    const index = await indexOf(await late(theora(1 + 25)));
    expect(index.totalSamples).toBe(LATE_SAMPLES - 48_000 + 144_000);
  });

  const noBytes = new Uint8Array(0);

  it('ignores the video of the next recording', async () => {
    const file = concat(await late({ ...theora(1), next: noBytes }), await late(theora(1)));
    expect((await indexOf(file)).totalSamples).toBe(144_000 + LATE_SAMPLES + 144_000);
  });

  it('starts without silence if there is no video', async () => {
    const noVideo = { first: noBytes, next: noBytes };
    expect((await indexOf(await late(noVideo))).totalSamples).toBe(144_000);
    // After a day, positions have more than 32 bits.
    const long = await indexOf(await late(noVideo, 2 ** 32 - 72_000));
    expect(long.totalSamples).toBe(144_000);
    expect(long.warning).toBeUndefined();
  });
});

describe('damaged OGG files', () => {
  it('end at hundreds of thousands of empty pages', async () => {
    const empty = withChecksums(concat(Buffer.from('OggS'), new Uint8Array(23)));
    const index = await indexOf(concat(opus, Buffer.alloc(empty.length * 250_000, empty)));
    expect(index).toMatchObject({
      totalSamples: 144_000,
      warning: expect.stringMatching(/very long span without audio/),
    });
  });

  it('have silence for lost pages, and later audio keeps its time', async () => {
    const list = await pages(speech);
    const lost = list[3];
    expect(list.length).toBeGreaterThan(5);
    const file = concat(speech.subarray(0, lost.start), speech.subarray(lost.end));
    const [whole, index] = [await indexOf(speech), await indexOf(file)];
    expect(index.totalSamples).toBe(whole.totalSamples);
    const [good, bad] = [await readSourceRate(speech, whole, ports), await readSourceRate(file, index, ports)];
    const from = (lost.granule ?? 0) - 312 + 24_000;
    let [error, power] = [0, 0];
    for (let i = from; i < good.length; i++) {
      error += (good[i] - bad[i]) ** 2;
      power += good[i] ** 2;
    }
    expect(power).toBeGreaterThan(0);
    expect(error / power).toBeLessThan(0.01);
  });

  it.each([
    ['Opus', speech],
    ['Vorbis', vorbis],
  ])('%s: have silence for damaged first pages, and later audio keeps its time', async (_, file) => {
    const [, , first, second] = await pages(file);
    const whole = await indexOf(file);
    const good = await readSourceRate(file, whole, ports);
    for (const fill of [0, 0x55]) {
      const damaged = file.slice().fill(fill, first.start, second.end);
      const index = await indexOf(damaged);
      expect(index.totalSamples).toBe(whole.totalSamples);
      expect(index.warning).toMatch(
        /^The beginning of the OGG file, \d\.\d s of it, is damaged and was taken as silence\.$/,
      );
      const bad = await readSourceRate(damaged, index, ports);
      // The state of the decoder decays within half a second.
      const from = good.length / 2 + whole.sampleRateHz / 2;
      const power = (samples: Float32Array) => samples.reduce((sum, value) => sum + value ** 2, 0);
      const error = power(good.subarray(from).map((value, i) => value - bad[from + i]));
      expect(error / power(good.subarray(from))).toBeLessThan(0.01);
      expect(power(bad.subarray(0, (second.granule ?? 0) - 1000))).toBe(0);
    }
  });

  it('lose a packet whose middle page is lost', async () => {
    const file = oggPages([new Uint8Array(150_000).fill(1), Uint8Array.of(2, 2)], { serial: 7 });
    const lengthsOf = async (bytes: Uint8Array) => {
      const lengths = [];
      const reader = new BlockReader(memorySource(bytes));
      for await (const { packets } of walkOgg(reader, 7, 0, {})) lengths.push(...packets.map(({ length }) => length));
      return lengths;
    };
    expect(await lengthsOf(file)).toEqual([150_000, 2]);
    const [, middle] = await pages(file);
    expect(await lengthsOf(concat(file.subarray(0, middle!.start), file.subarray(middle!.end)))).toEqual([2]);
  });

  it('are read without pages whose checksum is wrong', async () => {
    const list = await pages(speech);
    for (const at of [list[3].bodyStart + 20, list[3].start + 8, list[3].start + 26]) {
      const file = speech.slice();
      file[at] ^= 0x15;
      const without = concat(speech.subarray(0, list[3].start), speech.subarray(list[3].end));
      const [index, lost] = [await indexOf(file), await indexOf(without)];
      expect(index.warning).toMatch(/Pages of the OGG file whose checksums are wrong were left out\./);
      expect(lost.warning ?? '').not.toMatch(/checksums/);
      expect(index.totalSamples).toBe(lost.totalSamples);
      const samples = await readSourceRate(file, index, ports);
      expect(worstDifference(samples, await readSourceRate(without, lost, ports))).toBe(0);
      const from = Math.floor(samples.length / 2);
      expect(worstDifference(await readSourceRate(file, index, ports, from), samples.subarray(from))).toBe(0);
    }
  });

  it('are read past a page that claims to be longer than the file', async () => {
    const list = await pages(opus);
    const last = list[list.length - 2];
    const file = opus.slice();
    file[last.start + 26] = 255;
    const index = await indexOf(file);
    expect(index.totalSamples).toBe(144_000);
    expect(index.warning).toMatch(/checksums/);
    expect(index.warning).not.toMatch(/is incomplete|is shorter than/);
  });

  it('with 30,000 false pages are probed in bounded time', async () => {
    const false255 = new Uint8Array(27 + 255).fill(255);
    false255.set(Uint8Array.of(0x4f, 0x67, 0x67, 0x53, 0, 0));
    const file = concat(opus, ...Array.from({ length: 30_000 }, () => false255));
    const started = performance.now();
    expect((await indexOf(file)).totalSamples).toBe(144_000);
    expect(performance.now() - started).toBeLessThan(15_000);
  });

  it('are read past bytes between pages', async () => {
    const list = await pages(vorbis);
    const at = list[list.length - 1].start;
    const file = concat(vorbis.subarray(0, at), new Uint8Array(5000).fill(0x4f), vorbis.subarray(at));
    expect((await indexOf(file)).totalSamples).toBe(32_000);
  });
});

describe('the OGG reader rejects', () => {
  const refused = async (file: Uint8Array, kind: string, message: RegExp) =>
    expect(await probe(file)).toMatchObject({ ok: false, error: { kind, message: expect.stringMatching(message) } });

  it('Speex and unknown codecs', async () => {
    await refused(withChecksums(patched(opus, 'OpusHead', 'Speex   ')), 'unsupported', /audio in Speex/);
    await refused(withChecksums(patched(opus, 'OpusHead', 'Unknown ')), 'no_samples', /no audio track/);
  });

  it('truncated or damaged headers', async () => {
    await refused(vorbis.slice(0, 2000), 'corrupt', /headers of the OGG file/);
    await refused(withChecksums(patched(vorbis, '\x05vorbis', '\x05nothing')), 'corrupt', /./);
    await refused(patched(opus, 'OpusHead', 'Unknown '), 'corrupt', /headers of the OGG file/);
  });
});
