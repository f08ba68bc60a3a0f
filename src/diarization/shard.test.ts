import { describe, expect, it } from 'vitest';
import { blocksOf, fakePorts, recording } from '../../test/helpers/fake-models.ts';
import { settingsOf } from './parameters.ts';
import { encodePart, openPart, SILENCE_DB } from './part.ts';
import { analyseShard, loudestDb } from './shard.ts';

const EVERY_SECOND = { ...settingsOf('precision-2'), windows: { stepSamples: 16_000 } };

const noPause = async () => undefined;
const TALK = recording([
  [[1], 4],
  [[], 1],
  [[2], 7.3],
  [[1, 2], 1.2],
  [[3], 9],
  [[], 14],
  [[1], 6.5],
  [[2], 3.21],
]);
const SECOND = 16000;

async function analyse(startSample: number, endSample: number, samples = TALK) {
  const totalSamples = samples.length;
  const until = Math.min(totalSamples, endSample + 10 * SECOND);
  return analyseShard(
    blocksOf(samples, startSample, until),
    { startSample, endSample, totalSamples },
    fakePorts(),
    EVERY_SECOND,
    noPause,
  );
}

describe('analyseShard', () => {
  it('returns bit-identical results for any shards', async () => {
    const whole = await analyse(0, TALK.length);
    expect(whole.windowCount).toBe(38);
    for (const cuts of [[20], [10, 20, 30, 40], [40]]) {
      const bounds = [0, ...cuts.map((seconds) => seconds * SECOND), TALK.length];
      const parts = [];
      for (let index = 1; index < bounds.length; index++) parts.push(await analyse(bounds[index - 1], bounds[index]));
      expect(parts.flatMap(({ probabilities }) => Array.from(probabilities))).toEqual(Array.from(whole.probabilities));
      expect(Math.max(...parts.map(({ loudestDb }) => loudestDb))).toBe(whole.loudestDb);
      for (const field of ['windows', 'locals', 'cleanSeconds', 'activeSeconds', 'embeddings'] as const) {
        expect(parts.flatMap(({ speakers }) => Array.from(speakers[field]))).toEqual(Array.from(whole.speakers[field]));
      }
      for (const field of ['indices', 'embeddings'] as const) {
        const joined = parts.flatMap(({ subsegments }) => Array.from(subsegments[field]));
        expect(joined).toEqual(Array.from(whole.subsegments[field]));
      }
    }
  });

  it('drops embeddings that are not finite', async () => {
    const ports = fakePorts();
    const { embedding } = ports;
    if (embedding.form !== 'split') throw new Error('the fake embedder is not split');
    const head = async (pooled: Float32Array, batch: number) => {
      const out = await embedding.head(pooled, batch);
      // As from a network that takes the variance of one frame.
      for (let row = 0; row < batch; row += 3) out[row * 12 + 5] = Number.NaN;
      return out;
    };
    const shard = { startSample: 0, endSample: TALK.length, totalSamples: TALK.length };
    const broken = { ...ports, embedding: { ...embedding, head } };
    const part = await analyseShard(blocksOf(TALK, 0, TALK.length), shard, broken, EVERY_SECOND, noPause);
    const whole = await analyse(0, TALK.length);
    for (const kind of ['speakers', 'subsegments'] as const) {
      expect(part[kind].count).toBeGreaterThan(0);
      expect(part[kind].count).toBeLessThan(whole[kind].count);
      expect(part[kind].embeddings.every(Number.isFinite)).toBe(true);
    }
  });

  it('measures clean and active speech, and takes embeddings from clean frames', async () => {
    const part = await analyse(0, TALK.length);
    const rows = Array.from({ length: part.speakers.count }, (_, row) => row).filter(
      (row) => part.speakers.windows[row] === 5,
    );
    // Window 5 covers 5…15 s: speaker 2 alone for 7.3 s, 1 and 2 for 1.2 s, speaker 3 for 1.5 s.
    expect(rows.map((row) => part.speakers.activeSeconds[row].toFixed(2))).toEqual(['8.50', '1.20', '1.50']);
    expect(rows.map((row) => part.speakers.cleanSeconds[row].toFixed(2))).toEqual(['7.30', '0.00', '1.50']);
    const embedding = part.speakers.embeddings.subarray(rows[0] * 12, rows[0] * 12 + 12);
    expect(embedding.indexOf(Math.max(...embedding))).toBe(2);
  });

  it('embeds a subsegment every half second, from frames with exactly one speaker', async () => {
    const { subsegments } = await analyse(0, TALK.length);
    const indices = Array.from(subsegments.indices);
    expect(indices).toEqual([...indices].sort((a, b) => a - b));
    const axis = (index: number) => {
      const row = indices.indexOf(index);
      const embedding = subsegments.embeddings.subarray(row * 12, row * 12 + 12);
      return row < 0 ? undefined : embedding.indexOf(Math.max(...embedding));
    };
    // Speaker 1 until 4 s, speaker 2 from 5 to 12.3 s, both until 13.5 s, speaker 3 until 22.5 s, then silence until
    // 36.5 s.
    expect([axis(4), axis(16), axis(36), axis(60), axis(84)]).toEqual([1, 2, 3, undefined, 1]);
    expect(axis(26)).toBeUndefined();
  });

  it('reads at most 20 s ahead of the window in work', async () => {
    const samples = recording(Array.from({ length: 12 }, (_, turn) => [[1 + (turn % 2)], 10] as const));
    let pulled = 0;
    let windows = 0;
    const source = (async function* () {
      for (let at = 0; at < samples.length; at += SECOND) {
        pulled = at + SECOND;
        yield samples.subarray(at, at + SECOND);
      }
    })();
    const ahead: number[] = [];
    const ports = fakePorts((stage) => {
      if (stage === 'segmentation') ahead.push(pulled - windows++ * SECOND);
    });
    const shard = { startSample: 0, endSample: samples.length, totalSamples: samples.length };
    await analyseShard(source, shard, ports, EVERY_SECOND, noPause);
    expect(windows).toBe(111);
    expect(Math.max(...ahead)).toBeLessThanOrEqual(20 * SECOND);
  });

  it('runs the trunk once per stretch with speech, and never on silence', async () => {
    const runs = { segmentation: 0, trunk: 0 };
    const samples = recording([
      [[1], 8],
      [[], 40],
      [[2], 12],
    ]);
    await analyseShard(
      blocksOf(samples),
      { startSample: 0, endSample: samples.length, totalSamples: samples.length },
      fakePorts((stage) => {
        runs[stage]++;
      }),
      EVERY_SECOND,
      noPause,
    );
    expect(runs).toEqual({ segmentation: 51, trunk: 3 });
  });

  it('accepts a recording shorter than a window, and one that ends early', async () => {
    const short = await analyse(0, 8000, recording([[[1], 0.5]]));
    expect(short.windowCount).toBe(1);
    expect(short.speakers.count).toBe(1);
    const cut = await analyseShard(
      blocksOf(recording([[[1], 3]])),
      { startSample: 0, endSample: 30 * SECOND, totalSamples: 30 * SECOND },
      fakePorts(),
      EVERY_SECOND,
      noPause,
    );
    expect(cut.windowCount).toBe(21);
    expect(Math.max(...cut.speakers.windows)).toBe(2);
  });

  it('closes the stream, even if a model fails', async () => {
    for (const fails of [false, true]) {
      let closed = false;
      const source = (async function* () {
        try {
          for (;;) yield new Float32Array(SECOND).fill(0.01);
        } finally {
          closed = true;
        }
      })();
      const ports = fakePorts(() => {
        if (fails) throw new Error('out of memory');
      });
      const shard = { startSample: 0, endSample: 20 * SECOND, totalSamples: 60 * SECOND };
      const run = analyseShard(source, shard, ports, settingsOf('community-1'), noPause);
      if (fails) await expect(run).rejects.toThrow('out of memory');
      else await run;
      expect(closed).toBe(true);
    }
  });

  it('pauses between model runs', async () => {
    let pauses = 0;
    await analyseShard(
      blocksOf(TALK),
      { startSample: 0, endSample: TALK.length, totalSamples: TALK.length },
      fakePorts(),
      settingsOf('community-1'),
      async () => {
        pauses++;
      },
    );
    expect(pauses).toBeGreaterThanOrEqual(9 + 4);
  });
});

describe('stored parts', () => {
  const reader = (bytes: Uint8Array) => openPart(async (offset, length) => bytes.subarray(offset, offset + length));

  it('decode to the part that was encoded', async () => {
    const part = await analyse(20 * SECOND, 40 * SECOND);
    const bytes = encodePart(part);
    expect(encodePart(part)).toEqual(bytes);
    const stored = await reader(bytes);
    expect(await stored.readPart()).toEqual(part);
    const { probabilities, ...embeddings } = part;
    expect(await stored.readEmbeddings()).toEqual(embeddings);
    expect([part.firstWindow, part.subsegments.count > 10, probabilities.length > 0]).toEqual([20, true, true]);
    expect(stored.facts).toEqual(part.facts);
    // The bytes may be a view of a larger buffer.
    const larger = new Uint8Array(bytes.length + 3);
    larger.set(bytes, 3);
    const moved = await reader(larger.subarray(3));
    expect(await moved.readEmbeddings()).toEqual(embeddings);
    expect(stored.counts).toEqual({ speakers: part.speakers.count, subsegments: part.subsegments.count });
  });

  it('need one read to open, two with a long header, and one for the contents', async () => {
    const part = await analyse(20 * SECOND, 40 * SECOND);
    for (const facts of [part.facts, { ...part.facts, segmentationId: 'x'.repeat(9000) }]) {
      const bytes = encodePart({ ...part, facts });
      let reads = 0;
      const stored = await openPart(async (offset, length) => {
        reads++;
        return bytes.slice(offset, offset + length);
      });
      const toOpen = reads;
      expect(await stored.readPart()).toEqual({ ...part, facts });
      expect([toOpen, reads]).toEqual(facts === part.facts ? [1, 2] : [2, 3]);
    }
  });

  it('are rejected if damaged', async () => {
    const bytes = encodePart(await analyse(0, TALK.length));
    await expect(reader(bytes.slice(1))).rejects.toThrow(/damaged/);
    const version = bytes.slice();
    version[4] = 9;
    await expect(reader(version)).rejects.toThrow(/damaged/);
    const truncated = await reader(bytes.slice(0, bytes.length - 1));
    await expect(truncated.readPart()).rejects.toThrow(/damaged/);
    await expect(reader(bytes.slice(0, 19))).rejects.toThrow(/damaged/);
    await expect(reader(bytes.slice(0, 200))).rejects.toThrow(/damaged/);
    const header = bytes.slice();
    header[30] = 0;
    await expect(reader(header)).rejects.toThrow(/damaged/);
  });
});

const TENTH_SAMPLES = 1600;

/** Tenths of a second of the given levels; the sign alternates. */
function steps(...decibels: number[]): Float32Array {
  return Float32Array.from({ length: decibels.length * TENTH_SAMPLES }, (_, at) => {
    const peak = 10 ** (decibels[Math.floor(at / TENTH_SAMPLES)]! / 20);
    return at % 2 === 0 ? peak : -peak;
  });
}

describe('loudestDb', () => {
  it('is the level of the loudest tenth of a second, even a shorter last one', () => {
    expect(loudestDb(steps(-40, -20, -60))).toBe(-20);
    expect(loudestDb(steps(-40, -20).subarray(0, 2400))).toBe(-20);
  });

  it('is the level of silence for zeros and for no samples', () => {
    expect([loudestDb(new Float32Array(4800)), loudestDb(new Float32Array(0))]).toEqual([SILENCE_DB, SILENCE_DB]);
  });

  it('ignores a DC offset', () => {
    expect(loudestDb(steps(-60, -50).map((value) => value + 0.06))).toBe(-50);
    expect(loudestDb(new Float32Array(4800).fill(0.06))).toBe(SILENCE_DB);
  });
});
