import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { audioPorts, memorySource, testSignal } from '../../test/helpers/audio.ts';
import { pcm16, wav16, wavFile } from '../../test/helpers/wav.ts';
import type { ByteSource } from '../audio/audio-ports.ts';
import type { AudioPorts, Checkpoint } from '../audio/recording.ts';
import { CHUNK_SAMPLES } from './chunks.ts';
import { ingest, type PassEnd, type PassOptions, type PassPorts } from './pass.ts';

const RATE = 16_000;
const CHUNK_SECONDS = CHUNK_SAMPLES / RATE;
const MINUTE = 60_000;
/** Two chunks and a half. */
const SECONDS = 2.5 * CHUNK_SECONDS;
const SIGNAL = testSignal(RATE, 1, SECONDS);
const FILE = wav16(SIGNAL, RATE);
let audio: AudioPorts;
beforeAll(() => {
  audio = audioPorts();
});

interface Passed {
  readonly end: PassEnd;
  readonly chunks: Map<number, Uint8Array>;
  readonly checkpoints: { readonly chunks: number; readonly checkpoint: Checkpoint }[];
  readonly shares: number[];
}

/** One pass with a stopped clock, unless `changes` has another. */
async function pass(
  source: ByteSource,
  options: Partial<PassOptions> = {},
  changes: Partial<PassPorts> = {},
): Promise<Passed> {
  const passed = { chunks: new Map(), checkpoints: [], shares: [] } as Omit<Passed, 'end'>;
  const ports: PassPorts = {
    audio,
    admit: async () => undefined,
    now: () => 0,
    pause: async () => undefined,
    store: async (chunk, bytes) => void passed.chunks.set(chunk, bytes),
    // Through JSON, as between invocations.
    stored: async (chunks, checkpoint) =>
      void passed.checkpoints.push({ chunks, checkpoint: JSON.parse(JSON.stringify(checkpoint)) }),
    progress: async (share) => void passed.shares.push(share),
    ...changes,
  };
  const end = await ingest(source, ports, { maxSeconds: 3600, endsWhenSlow: false, ...options });
  return { ...passed, end };
}

/** A source of the bytes that calls `onRead` before each read. */
function watched(bytes: Uint8Array, onRead: (offset: number) => Promise<void> | void): ByteSource {
  const source = memorySource(bytes);
  return {
    ...source,
    async open(offset) {
      const stream = await source.open(offset);
      let at = offset;
      return {
        async read() {
          await onRead(at);
          const part = await stream.read();
          at += part?.length ?? 0;
          return part;
        },
        close: () => stream.close(),
      };
    },
  };
}

describe('a pass over a recording', () => {
  it('stores all of it in chunks of fixed length, and returns its facts', async () => {
    const { end, chunks, checkpoints, shares } = await pass(memorySource(FILE));
    expect(end).toEqual({
      kind: 'whole',
      facts: { format: 'wav', codec: 'pcm', sampleRateHz: RATE, channels: 1 },
      end: { totalSamples: SIGNAL.length, durationSeconds: SECONDS },
      chunks: 3,
    });
    expect([...chunks.keys()]).toEqual([0, 1, 2]);
    const stored = Buffer.concat([...chunks.values()]);
    expect(Buffer.compare(stored, pcm16(SIGNAL))).toBe(0);
    expect(checkpoints.map((stop) => [stop.chunks, stop.checkpoint.sample])).toEqual([
      [1, CHUNK_SAMPLES],
      [2, 2 * CHUNK_SAMPLES],
    ]);
    expect(shares.length).toBeGreaterThan(30);
    expect([...shares].sort((a, b) => a - b)).toEqual(shares);
    expect(shares.every((share) => share > 0 && share <= 1)).toBe(true);
  });

  it('stores no empty chunk after a full last one', async () => {
    const { end, chunks } = await pass(memorySource(wav16(SIGNAL.subarray(0, 2 * CHUNK_SAMPLES), RATE)));
    expect(end).toMatchObject({ kind: 'whole', chunks: 2, end: { totalSamples: 2 * CHUNK_SAMPLES } });
    expect([...chunks.keys()]).toEqual([0, 1]);
  });

  it.each([
    ['at its own rate', FILE],
    ['resampled, of two channels', wav16(testSignal(22_050, 2, SECONDS), 22_050, 2)],
  ])('%s: stores the same chunks from any checkpoint', async (_what, file) => {
    const whole = await pass(memorySource(file));
    expect(whole.checkpoints).toHaveLength(2);
    for (const { chunks: from, checkpoint } of whole.checkpoints) {
      const rest = await pass(memorySource(file), { from: checkpoint });
      expect(rest.end).toEqual(whole.end);
      expect([...rest.chunks.keys()]).toEqual([...whole.chunks.keys()].slice(from));
      for (const [chunk, bytes] of rest.chunks) expect(Buffer.compare(bytes, whole.chunks.get(chunk)!)).toBe(0);
    }
  });

  it('reads while a chunk is being stored, and stores one chunk at a time', async () => {
    let reached = 0;
    let storing = 0;
    const waiting: (() => void)[] = [];
    const reachedAfter = async (offset: number): Promise<void> => {
      while (reached <= offset) await new Promise<void>((done) => waiting.push(done));
    };
    const source = watched(FILE, async (offset) => {
      reached = offset;
      for (const wake of waiting.splice(0)) wake();
      await new Promise((done) => setImmediate(done));
    });
    const { end } = await pass(
      source,
      {},
      {
        store: async (chunk) => {
          expect(++storing).toBe(1);
          // The first chunk is stored only after half of the next one has been read.
          if (chunk === 0) await reachedAfter(3 * CHUNK_SAMPLES);
          storing--;
        },
      },
    );
    expect(end).toMatchObject({ kind: 'whole', chunks: 3 });
  });

  it('pauses every 16 s of audio or more often', async () => {
    let pauses = 0;
    await pass(memorySource(FILE), {}, { pause: async () => void pauses++ });
    expect(pauses).toBeGreaterThanOrEqual(Math.floor(SECONDS / 16));
  });
});

describe('an invocation whose time is used up', () => {
  it('ends after one stored chunk, and the next continues from there', async () => {
    const whole = await pass(memorySource(FILE));
    const chunks = new Map<number, Uint8Array>();
    let from: Checkpoint | undefined;
    const ends: string[] = [];
    for (let run = 0; run < 5 && ends.at(-1) !== 'whole'; run++) {
      let now = 0;
      // The time is used up at the first pause, before a chunk is stored.
      const passed = await pass(
        memorySource(FILE),
        { from },
        {
          now: () => now,
          pause: async () => {
            now += 11 * MINUTE;
          },
        },
      );
      ends.push(passed.end.kind);
      expect(passed.chunks.size).toBe(1);
      for (const [chunk, bytes] of passed.chunks) chunks.set(chunk, bytes);
      from = passed.checkpoints.at(-1)?.checkpoint ?? from;
    }
    expect(ends).toEqual(['spent', 'spent', 'whole']);
    for (const [chunk, bytes] of whole.chunks) expect(Buffer.compare(chunks.get(chunk)!, bytes)).toBe(0);
  });

  it('calls `stored` for the last chunk before it ends', async () => {
    let now = 0;
    const storedCounts: number[] = [];
    const later = () => new Promise((done) => setTimeout(done, 20));
    const { end } = await pass(
      memorySource(FILE),
      {},
      {
        now: () => now,
        pause: async () => {
          now += 11 * MINUTE;
        },
        store: async () => void (await later()),
        stored: async (chunks) => {
          await later();
          storedCounts.push(chunks);
        },
      },
    );
    expect([end.kind, storedCounts]).toEqual(['spent', [1]]);
  });
});

describe('the reading time of an invocation', () => {
  /** End and number of chunks of a pass that takes `msPerSecond` for each second of audio. */
  async function spent(canSeek: boolean, msPerSecond: number) {
    let now = 0;
    const pause = async () => {
      now += 8 * msPerSecond;
    };
    const passed = await pass(memorySource(FILE, canSeek), {}, { now: () => now, pause });
    return [passed.end.kind, passed.chunks.size];
  }

  it('is 8 s, or 10 minutes for a source that cannot seek', async () => {
    expect(await spent(true, 40)).toEqual(['spent', 1]);
    expect(await spent(true, 20)).toEqual(['whole', 3]);
    expect(await spent(false, 40)).toEqual(['whole', 3]);
    expect(await spent(false, 3000)).toEqual(['spent', 1]);
  });
});

describe('the admission of a pass', () => {
  it('is requested once, after 256 KiB', async () => {
    let readTo = 0;
    const admitted: number[] = [];
    const source = watched(FILE, (offset) => {
      readTo = offset;
    });
    await pass(source, {}, { admit: async () => void admitted.push(readTo) });
    expect(admitted).toEqual([250_000]);
    await pass(memorySource(FILE.subarray(0, 200_000)), {}, { admit: async () => void admitted.push(0) });
    expect(admitted).toHaveLength(1);
  });

  it('ends the pass before anything is stored if it fails', async () => {
    const none = new Error('not admitted');
    const stored: number[] = [];
    const ports = { admit: () => Promise.reject(none), store: async (chunk: number) => void stored.push(chunk) };
    await expect(pass(memorySource(FILE), {}, ports)).rejects.toBe(none);
    expect(stored).toEqual([]);
  });

  it('may take long without the source counting as slow', async () => {
    let now = 0;
    const admit = async () => {
      now += 19_000;
    };
    expect((await pass(memorySource(FILE), { endsWhenSlow: true }, { now: () => now, admit })).end.kind).toBe('whole');
  });
});

describe('a slow source', () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  it('ends the pass if it sends nothing for some seconds', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    let now = 0;
    let reads = 0;
    const silent = new Promise<void>(() => undefined);
    const source = watched(FILE, async (offset) => {
      reads++;
      if (offset > 1_000_000) await silent;
    });
    const passing = pass(source, { endsWhenSlow: true }, { now: () => now });
    await vi.waitFor(() => expect(reads).toBe(22));
    for (let second = 0; second < 5; second++) {
      now += 1000;
      vi.advanceTimersByTime(1000);
    }
    expect((await passing).end).toEqual({ kind: 'slow' });
    expect(vi.getTimerCount()).toBe(0);
  });

  it('ends the pass if it cannot seek and takes longer than an invocation', async () => {
    const silence = new Uint8Array(2200 * RATE).fill(128);
    const longer = wavFile({ sampleRateHz: RATE, channels: 1, tag: 1, bits: 8 }, silence);
    const kinds: string[] = [];
    for (const canSeek of [false, true]) {
      let now = 0;
      const pause = async () => {
        now += 8 * 15;
      };
      const source = memorySource(longer, canSeek);
      kinds.push((await pass(source, { endsWhenSlow: true }, { now: () => now, pause })).end.kind);
    }
    expect(kinds).toEqual(['slow', 'spent']);
  });

  /** A pass over a source whose reads take `msPerRead` each, for 1.5 s of audio. */
  async function slow(bytes: Uint8Array, msPerRead: number, endsWhenSlow = true) {
    let now = 0;
    let read = 0;
    const source = watched(bytes, (offset) => {
      now += msPerRead;
      read = offset;
    });
    const { end } = await pass(source, { endsWhenSlow }, { now: () => now });
    return { kind: end.kind, now, read };
  }

  it('ends the pass within 6 s', async () => {
    const { kind, now } = await slow(FILE, 500);
    expect(kind).toBe('slow');
    expect(now).toBeLessThanOrEqual(6000);
  });

  it('ends the pass within 20 s if each read takes 10 s', async () => {
    const { kind, now, read } = await slow(FILE, 10_000);
    expect(kind).toBe('slow');
    expect(now).toBeLessThanOrEqual(20_000);
    expect(read).toBeLessThan(8 * 2 * RATE);
  });

  it('is read to its end if little remains, or without `endsWhenSlow`', async () => {
    expect((await slow(FILE.subarray(0, 20 * 2 * RATE), 1000)).kind).not.toBe('slow');
    expect((await slow(FILE, 500, false)).kind).not.toBe('slow');
  });

  it('does not include one that delivers 75 s of audio per second', async () => {
    expect((await slow(FILE, 20)).kind).toBe('whole');
  });
});

it('stops reading and storing a recording that is too long', async () => {
  let last = 0;
  const source = watched(FILE, (offset) => {
    last = offset;
  });
  const { end, chunks } = await pass(source, { maxSeconds: 1.5 * CHUNK_SECONDS });
  expect([end, [...chunks.keys()]]).toEqual([{ kind: 'too_long' }, [0]]);
  expect(last).toBeLessThan(1.6 * CHUNK_SAMPLES * 2);
  expect((await pass(memorySource(FILE), { maxSeconds: SECONDS })).end.kind).toBe('whole');
});

describe('a failure', () => {
  const broken = new Error('We encountered an internal error. Please try again. (10001)');

  it.each([0, 1, 2])('of the storage at chunk %i is thrown', async (failing) => {
    const stored: number[] = [];
    const store = async (chunk: number) => {
      if (chunk === failing) throw broken;
      stored.push(chunk);
    };
    await expect(pass(memorySource(FILE), {}, { store })).rejects.toBe(broken);
    expect(stored).toEqual([0, 1, 2].slice(0, failing));
  });

  it('of `stored` is thrown', async () => {
    const stored = async () => {
      throw broken;
    };
    await expect(pass(memorySource(FILE), {}, { stored })).rejects.toBe(broken);
  });

  it('of the source is thrown after the chunk in progress is stored', async () => {
    const storedCounts: number[] = [];
    const source = watched(FILE, (offset) => {
      if (offset > 2.5 * CHUNK_SAMPLES) throw broken;
    });
    const later = () => new Promise((done) => setTimeout(done, 20));
    const passing = pass(
      source,
      {},
      { store: async () => void (await later()), stored: async (chunks) => void storedCounts.push(chunks) },
    );
    await expect(passing).rejects.toBe(broken);
    expect(storedCounts).toEqual([1]);
  });

  it.each([
    ['empty', new Uint8Array(0)],
    ['not_audio', new TextEncoder().encode('a letter, not a recording. '.repeat(100))],
    ['no_samples', wav16([], RATE)],
  ])('of the file is returned as %s', async (kind, file) => {
    const { end, chunks } = await pass(memorySource(file));
    expect(end).toMatchObject({ kind: 'failed', error: { kind } });
    expect(chunks.size).toBe(0);
  });
});
