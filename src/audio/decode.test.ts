import { describe, expect, it } from 'vitest';
import { audioPorts, collect, memorySource, random, worstDifference } from '../../test/helpers/audio.ts';
import { formatFixture } from '../../test/helpers/bytes.ts';
import { BlockReader } from './block-reader.ts';
import type { Faults, PacketRun, PacketWalk, Part, PartEnd, PlayedSpan, RawPacket } from './container.ts';
import { Decoding, type Restart } from './decode.ts';
import { oneSpan } from './playback.ts';
import { openPart } from './recording.ts';

const RATE = 8000;
/** 20 ms. */
const PACKET = 160;

interface FakePart {
  readonly runs: readonly PacketRun[];
  readonly spans?: readonly PlayedSpan[];
  readonly padding?: (end: PartEnd & { readonly endPadding: number }) => number;
  /** Decodes the packet of this number; by default to `PACKET` samples with that value. */
  readonly decode?: (number: number) => Float32Array;
  readonly next?: () => Part;
  readonly startByte?: number;
  readonly warnings?: (faults: Faults) => readonly string[];
  readonly codec?: 'opus' | 'aac';
}

/** Number of open decoders, and its maximum. */
const decoders = { open: 0, max: 0 };

/**
 * Packets whose offsets are their numbers. The decoder returns the number of the packet, and that of its first packet
 * as unlimited state.
 */
function partOf({ runs, spans, padding, decode, next, startByte, warnings, codec = 'aac' }: FakePart): Part {
  return {
    format: 'fake',
    displayName: 'The file',
    codec,
    sampleRateHz: RATE,
    channels: 1,
    startByte,
    openDecoder() {
      decoders.open++;
      decoders.max = Math.max(decoders.max, decoders.open);
      let first: number | undefined;
      return {
        sampleRateHz: RATE,
        decode([low, middle, high]: Uint8Array) {
          const number = low + 256 * middle + 65_536 * high;
          first ??= number;
          return decode?.(number) ?? new Float32Array(PACKET).fill(number, 0, PACKET / 2).fill(first, PACKET / 2);
        },
        close: () => decoders.open--,
      };
    },
    async *walk(_: Faults, entry = 0): PacketWalk {
      for (const run of runs) {
        const packets = run.packets.filter((packet) => packet.offset >= entry);
        if (packets.length > 0) yield { ...run, packets };
      }
    },
    ...(spans && { playedSpans: () => spans }),
    ...(padding && { paddingOf: padding }),
    ...(next && { next: async () => ({ part: next() }) }),
    ...(warnings && { warnings }),
  };
}

const packet = (number: number, more: Partial<RawPacket> = {}): RawPacket => ({
  offset: number,
  length: 3,
  bytes: Uint8Array.of(number & 255, (number >> 8) & 255, number >> 16),
  samples: PACKET,
  entry: number,
  ...more,
});

/** Packets in runs of ten. @param more further fields of each packet */
function runsOf(packets: number, more: (i: number) => Partial<RawPacket> = () => ({})): PacketRun[] {
  return Array.from({ length: Math.ceil(packets / 10) }, (_, run) => ({
    packets: Array.from({ length: Math.min(10, packets - 10 * run) }, (_, k) =>
      packet(10 * run + k, more(10 * run + k)),
    ),
  }));
}

async function decode(part: Part, startSample = 0, resume?: Restart) {
  const reader = new BlockReader(memorySource(new Uint8Array(1)));
  const decoding = await Decoding.open(reader, part, resume && JSON.parse(JSON.stringify(resume)));
  const samples = await collect(decoding.blocks(startSample));
  return { samples, end: decoding.end, decoding };
}

/** The number of each played packet, with that of the first packet of its decoder. */
const playedPackets = (samples: Float32Array) => {
  const found: string[] = [];
  for (let at = 0; at < samples.length; at += PACKET) {
    found.push(`${samples[at]}/${samples[at + PACKET / 2]}`);
  }
  return found;
};

describe('decoders', () => {
  const long = partOf({ runs: runsOf(15_000) });

  it('are restarted at 90 s, 190 s and so on, with two in parallel for the pre-roll', async () => {
    decoders.max = 0;
    const { samples } = await decode(long);
    const list = playedPackets(samples);
    expect(list).toHaveLength(15_000);
    expect(list.slice(4598, 4602)).toEqual(['4598/0', '4599/0', '4600/4500', '4601/4500']);
    expect(list.slice(9598, 9602)).toEqual(['9598/4500', '9599/4500', '9600/9500', '9601/9500']);
    expect(list.at(-1)).toBe('14999/14500');
    expect(decoders).toEqual({ open: 0, max: 2 });
  });

  it('give the same samples from any start', async () => {
    const { samples, decoding } = await decode(long);
    for (const start of [0, 1000, 4599, 4600, 9599, 9600, 14_600]) {
      const sample = PACKET * start + 7;
      const restart = decoding.restartFor(sample);
      expect(restart?.entry).toBe(start < 4600 ? undefined : start < 9600 ? 4500 : start < 14_600 ? 9500 : 14_500);
      const rest = await decode(long, sample, restart);
      expect(worstDifference(rest.samples, samples.subarray(sample))).toBe(0);
      expect(rest.end).toEqual({ totalSamples: samples.length });
    }
  });

  it('are restarted only at packets with an entry', async () => {
    const part = partOf({ runs: runsOf(15_000, (i) => ({ entry: i % 1000 === 700 ? i : undefined })) });
    const list = playedPackets((await decode(part)).samples);
    expect(list[4799]).toBe('4799/0');
    expect(list[4800]).toBe('4800/4700');
    expect(list[9800]).toBe('9800/9700');
  });

  it('are not restarted within an overlap after a jump back', async () => {
    const part = partOf({ runs: runsOf(6000, (i) => ({ seconds: i < 4501 ? 0.02 * i : 0.02 * i - 0.5 })) });
    const { samples, decoding } = await decode(part);
    expect(samples).toHaveLength((6000 - 25) * PACKET);
    const restart = decoding.restartFor(samples.length);
    const rest = await decode(part, samples.length - 1000, restart);
    expect(worstDifference(rest.samples, samples.subarray(samples.length - 1000))).toBe(0);
  });

  it('are closed when the reader stops early', async () => {
    const reader = new BlockReader(memorySource(new Uint8Array(1)));
    const decoding = await Decoding.open(reader, long);
    let samples = 0;
    for await (const block of decoding.blocks()) {
      samples += block.length;
      // Two decoders are open here.
      if (samples > 91 * RATE) break;
    }
    expect(decoders.open).toBe(0);
  });

  it('leave silence for a failed packet, and surplus samples are cut', async () => {
    const part = partOf({
      runs: runsOf(30),
      decode: (i) => new Float32Array(i === 7 ? 0 : i === 20 || i === 29 ? 3 * PACKET : PACKET).fill(i + 1),
    });
    const { samples } = await decode(part);
    const expected = Array.from({ length: 30 }, (_, i) => (i === 7 ? '0/0' : `${i + 1}/${i + 1}`));
    expect(playedPackets(samples)).toEqual(expected);
  });

  it('of Opus may return samples late without a gap', async () => {
    const part = partOf({
      codec: 'opus',
      runs: runsOf(30),
      decode: (i) => new Float32Array(i === 0 ? PACKET - 100 : PACKET).fill(i + 1),
    });
    const { samples } = await decode(part);
    expect(samples).toHaveLength(30 * PACKET);
    expect([samples[0], samples[59], samples[60], samples[220]]).toEqual([1, 1, 2, 3]);
  });
});

it('collects the samples of short packets in large blocks', async () => {
  const decoding = await Decoding.open(
    new BlockReader(memorySource(new Uint8Array(1))),
    partOf({ runs: runsOf(10_000), padding: () => 0 }),
  );
  const lengths: number[] = [];
  for await (const { length } of decoding.blocks()) lengths.push(length);
  expect(Math.min(...lengths.slice(0, -1))).toBeGreaterThanOrEqual(1 << 15);
});

describe('padding at the end', () => {
  it.each([0, 1, 500, 2 * RATE, 3 * RATE])('of %i samples is cut up to 2 s, from any start', async (padding) => {
    const part = partOf({ runs: runsOf(10_000), padding: () => padding });
    const { samples, end, decoding } = await decode(part);
    // No more than the retained samples.
    const total = 10_000 * PACKET - Math.min(padding, 2 * RATE);
    expect(samples).toHaveLength(total);
    expect(end).toEqual({ totalSamples: total });
    for (const sample of [100 * RATE, 197 * RATE]) {
      const rest = await decode(part, sample, decoding.restartFor(sample));
      expect(worstDifference(rest.samples, samples.subarray(sample))).toBe(0);
      expect(rest.end).toEqual(end);
    }
  });

  it('may be most of a short recording', async () => {
    const part = partOf({ runs: runsOf(200), padding: () => 3 * RATE });
    expect((await decode(part)).samples).toHaveLength(RATE);
    expect((await decode(partOf({ runs: runsOf(200), padding: () => 9 * RATE }))).samples).toHaveLength(0);
  });

  it('is the surplus over the end position of the last OGG page', async () => {
    const ends: number[] = [];
    const padding = ({ endPadding }: { endPadding: number }) => {
      ends.push(endPadding);
      return endPadding;
    };
    const runs = runsOf(100).map((run, i) => ({ ...run, endSample: 10 * PACKET * (i + 1) - (i === 9 ? 70 : 0) }));
    const { samples } = await decode(partOf({ runs, padding }));
    expect(ends).toEqual([70]);
    expect(samples).toHaveLength(100 * PACKET - 70);
  });
});

describe('packet times', () => {
  /** Packets of 20 ms, with times that are late by `lateSeconds`. */
  const decoded = async (packets: number, lateSeconds: (i: number) => number) => {
    const part = partOf({ runs: runsOf(packets, (i) => ({ seconds: 0.02 * i + lateSeconds(i) })) });
    return decode(part);
  };

  it('that are briefly late do not move the clock', async () => {
    const { samples, end } = await decoded(15_000, (i) => (i % 250 >= 100 && i % 250 < 115 ? 0.3 : 0));
    expect(end).toEqual({ totalSamples: 15_000 * PACKET });
    expect(playedPackets(samples).slice(95, 120)).toEqual(Array.from({ length: 25 }, (_, i) => `${95 + i}/0`));
  });

  it('that are late for longer are followed forward and back', async () => {
    const { samples, end } = await decoded(15_000, (i) => (i % 250 >= 50 && i % 250 < 150 ? 0.3 : 0));
    expect(end.totalSamples).toBe(15_000 * PACKET);
    expect(end.warning).toMatch(/^Pauses .*, 18\.0 s in all, .* Packets overlap .* by 18\.0 s in all/);
    const list = playedPackets(samples);
    expect(list.slice(48, 51)).toEqual(['48/0', '49/0', '0/0']);
    expect(list.slice(64, 67)).toEqual(['0/0', '50/0', '51/0']);
    // In the overlap the first samples are played.
    expect(list.slice(163, 167)).toEqual(['148/0', '149/0', '165/0', '166/0']);
  });

  it('of another clock on a single packet are not followed', async () => {
    const { end } = await decoded(1000, (i) => (i === 300 ? -10 : i === 600 ? 1000 : 0));
    expect(end).toEqual({ totalSamples: 1000 * PACKET });
  });

  it('that jump are followed for the lasting part of the jump', async () => {
    const { samples, end } = await decoded(1000, (i) => (i < 300 ? 0 : i < 310 ? 5 : 2));
    expect(end.totalSamples).toBe(1000 * PACKET + 2 * RATE);
    expect(playedPackets(samples)[299]).toBe('299/0');
    expect(playedPackets(samples)[400]).toBe('300/0');
  });

  it('that jump back far are ignored with a warning', async () => {
    const { end } = await decoded(2000, (i) => (i < 1000 ? 0 : -15));
    expect(end.totalSamples).toBe(2000 * PACKET);
    expect(end.warning).toMatch(/times of some packets jump/);
  });

  it('with random jumps give the same samples from any start', async () => {
    const next = random(8);
    let late = 0;
    const lateSeconds = Array.from({ length: 15_000 }, () => {
      if (next() < 0.003) late += next() < 0.5 ? -0.3 * next() : 0.4 * next();
      return late;
    });
    const part = partOf({ runs: runsOf(15_000, (i) => ({ seconds: 100 + 0.02 * i + lateSeconds[i] })) });
    const { samples, end, decoding } = await decode(part);
    for (const sample of [95 * RATE, 200 * RATE, 293 * RATE]) {
      const restart = decoding.restartFor(sample);
      expect(restart?.entry).toBeGreaterThan(4000);
      const rest = await decode(part, sample, restart);
      expect(worstDifference(rest.samples, samples.subarray(sample))).toBe(0);
      expect(rest.end).toEqual(end);
    }
  });
});

const NO_JUMPS = { gapSamples: 0, overlapSamples: 0, brokenTimes: 0 };
/** The start of a file. */
const FROM_START: Restart = {
  partStartSample: 0,
  packets: 0,
  clock: { ...NO_JUMPS, position: 0, shift: 0, isStarted: false, gaps: 0, lastJumpBack: -1, shortGaps: 0 },
  faults: {},
  warnings: [],
  jumps: NO_JUMPS,
};

describe('several parts', () => {
  it('are one recording, and each can be a restart', async () => {
    const parts = new Map<number, Part>();
    const warnings = () => ['Something was damaged.'];
    for (let i = 9; i >= 0; i--) {
      const runs = runsOf(1000 + i).map((run) => ({
        ...run,
        packets: run.packets.map((own) => ({ ...own, bytes: Uint8Array.of(own.offset & 255, own.offset >> 8, i) })),
      }));
      const next = parts.get(i + 1);
      const part: Part = {
        ...partOf({ runs, startByte: i, spans: oneSpan(100), padding: () => 50, ...(next && { next: () => next }) }),
        ...(i === 2 && { warnings }),
        reopen: async (byte) => parts.get(byte),
      };
      parts.set(i, part);
    }
    const [first] = [parts.get(0)!];
    const { samples, end, decoding } = await decode(first);
    expect(end).toEqual({
      totalSamples: Array.from({ length: 10 }, (_, i) => (1000 + i) * PACKET - 150).reduce(
        (sum, length) => sum + length,
      ),
      warning: 'Something was damaged.',
    });
    expect(samples).toHaveLength(end.totalSamples);
    for (const seconds of [15, 45, 119, 199.5]) {
      const restart = decoding.restartFor(seconds * RATE);
      expect(restart === undefined).toBe(seconds < 40);
      if (restart) expect(seconds * RATE - restart.partStartSample).toBeLessThan(41 * RATE);
      const rest = await decode(first, seconds * RATE, restart);
      expect(worstDifference(rest.samples, samples.subarray(seconds * RATE))).toBe(0);
      expect(rest.end).toEqual(end);
      // Without a restart, the same samples from the start.
      if (seconds === 119) expect(worstDifference((await decode(first, seconds * RATE)).samples, rest.samples)).toBe(0);
    }
  });

  it('throw if the part of the checkpoint no longer exists', async () => {
    const part = { ...partOf({ runs: runsOf(10) }), reopen: async () => undefined };
    const restart: Restart = { ...FROM_START, partStartByte: 77 };
    await expect(decode(part, 0, restart)).rejects.toThrow(/no longer exists/);
  });
});

it('warns of more packets than the limit', async () => {
  const restart: Restart = { ...FROM_START, packets: 24_000_000 - 10 };
  const { end } = await decode(partOf({ runs: runsOf(30) }), 0, restart);
  expect(end).toEqual({
    totalSamples: 10 * PACKET,
    warning: 'The file has more than 24000000 packets; what follows was left out.',
  });
});

describe('packets of files', () => {
  const ports = audioPorts();
  /** Whole decode through blocks of the given size. */
  async function whole(file: Uint8Array, blockBytes?: number): Promise<Float32Array> {
    const reader = new BlockReader(memorySource(file), blockBytes);
    const part = await openPart(reader, ports.decoder);
    if (!part.ok) throw new Error(part.error.message);
    return collect((await Decoding.open(reader, part.value)).blocks());
  }

  it.each([
    'mp4-aac-16000-mono.m4a',
    'mp4-mp3-44100-mono.mp4',
    'mp4-fragments-aac-48000-stereo.mp4',
    'mp4-video-aac-44100-mono.mp4',
    'mov-s24be-8000-stereo.mov',
    'matroska-vorbis-44100-stereo.webm',
    'matroska-video-opus.webm',
    'matroska-flac-16000-mono.mka',
    'ogg-vorbis-8000-mono.ogg',
    'ogg-opus-speech-mono.opus',
    'mpegts-video-aac-44100-mono.mpegts',
    'mpegts-latm-aac-48000-stereo.mpegts',
    'mpegts-opus-stereo.mpegts',
    'mpegts-192-ac3-48000-stereo.m2ts',
    'caf-alac-44100-mono.caf',
    'flac-s16-22050-stereo.flac',
    'mp3-44100-stereo.mp3',
    'adts-heaac-32000-stereo.aac',
    'amr-wb-16000-mono.amr',
    'wav-gsm-8000-mono.wav',
    'wav-s24-8000-stereo.wav',
    'aifc-ima4-22050-stereo.aifc',
  ])('%s: decodes to the same samples with other block sizes of the reader', async (name) => {
    const file = formatFixture(name);
    const samples = await whole(file);
    for (const blockBytes of [700, 5003]) expect(worstDifference(await whole(file, blockBytes), samples)).toBe(0);
  });

  it('throw the error of a source at any read', async () => {
    const file = formatFixture('mp4-aac-44100-stereo.m4a');
    const next = random(3);
    for (let i = 0; i < 10; i++) {
      const failAt = Math.floor(next() * 20);
      let reads = 0;
      const good = memorySource(file);
      const step = () => {
        if (reads++ === failAt) throw new Error('connection lost');
      };
      const failing = {
        ...good,
        async open(offset: number) {
          step();
          let at = offset;
          return {
            async read() {
              step();
              at += 1000;
              return at - 1000 < file.length ? file.subarray(at - 1000, at) : undefined;
            },
            close() {},
          };
        },
        async read(offset: number, length: number) {
          step();
          return good.read(offset, length);
        },
      };
      const reader = new BlockReader(failing, 1000);
      const drain = async () => {
        const part = await openPart(reader, ports.decoder);
        if (!part.ok) throw new Error(part.error.message);
        await collect((await Decoding.open(reader, part.value)).blocks());
      };
      await expect(drain()).rejects.toThrow('connection lost');
    }
  });
});
