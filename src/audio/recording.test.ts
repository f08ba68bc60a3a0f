import { describe, expect, it } from 'vitest';
import { aiffFile, cafFile } from '../../test/helpers/apple-audio.ts';
import {
  audioPorts,
  collect,
  concat,
  memorySource,
  openRecording,
  type Reading,
  random,
  readAll,
  testSignal,
  worstDifference,
} from '../../test/helpers/audio.ts';
import { find, formatFixture } from '../../test/helpers/bytes.ts';
import { RUNS_ALL_CASES } from '../../test/helpers/cases.ts';
import { flacFile } from '../../test/helpers/flac.ts';
import {
  aacEntry,
  aacPackets,
  amrOf,
  flacOf,
  matroskaOf,
  oggOpus,
  opusHead,
  opusPackets,
  times,
  transportStreamOf,
  wavOf,
} from '../../test/helpers/long-recordings.ts';
import { type EditEntry, EMPTY, fragmentMovie, packetMovie, withEdits } from '../../test/helpers/mp4.ts';
import { moved, renamed, withStreams } from '../../test/helpers/mpeg-ts.ts';
import { pcm16, wav16, wavFile } from '../../test/helpers/wav.ts';
import { SeekNeeded } from './audio-ports.ts';
import { type Checkpoint, Recording } from './recording.ts';

const ports = audioPorts();
const RATE = 16_000;

/** A repeated voice-like signal, whose period is no multiple of any block length. */
function signal(rateHz: number, channels: number, seconds: number): Float32Array {
  const once = testSignal(rateHz, channels, 7.31);
  return Float32Array.from({ length: rateHz * seconds * channels }, (_, i) => once[i % once.length]);
}

/** Long enough for two restarts of a decoder. */
const SECONDS = 215;
/** Times of checkpoints in seconds: before the first restart, after it, and after the second. */
const CHECKPOINT_SECONDS = [60, 100, 193.5, 210];

const files: Readonly<Record<string, () => Uint8Array | Promise<Uint8Array>>> = {
  'WAV at 44.1 kHz, stereo': () => wav16(signal(44_100, 2, SECONDS), 44_100, 2),
  'WAV at 16 kHz': () => wav16(signal(RATE, 1, SECONDS), RATE),
  'WAV at 11.025 kHz': () => wav16(signal(11_025, 1, SECONDS), 11_025),
  'WAV, 32-bit float with damage': () => {
    const samples = signal(8000, 1, SECONDS);
    const next = random(3);
    for (let i = 0; i < 400; i++) samples[Math.floor(next() * samples.length)] = 1e30 * next();
    const data = new Uint8Array(samples.buffer, samples.byteOffset, samples.byteLength);
    return wavFile({ sampleRateHz: 8000, channels: 1, tag: 3, bits: 32 }, data);
  },
  'WAV, IMA ADPCM': () => wavOf('wav-adpcm-ima-8000-stereo.wav', 110),
  'WAV, Microsoft ADPCM': () => wavOf('wav-adpcm-ms-11025-mono.wav', 110),
  'WAV, GSM': () => wavOf('wav-gsm-8000-mono.wav', 110),
  'WAV, MP3': () => wavOf('wav-mp3-22050-mono.wav', 110),
  AIFF: () =>
    aiffFile(
      { rateHz: 8000 },
      pcm16(signal(8000, 1, SECONDS)).map((_, i, all) => all[i ^ 1]),
    ),
  FLAC: () =>
    flacFile(
      Int16Array.from(signal(RATE, 1, SECONDS), (value) => value * 32767),
      { blockSamples: 4096 },
    ),
  'FLAC of an encoder, 22.05 kHz': () => flacOf('flac-s16-22050-stereo.flac', 360),
  'MP3, 44.1 kHz': () => concat(...times(110, formatFixture('mp3-44100-stereo.mp3'))),
  'MP3, 8 kHz': () => concat(...times(75, formatFixture('mp3-8000-mono.mp3'))),
  MP2: () => concat(...times(110, formatFixture('mp2-16000-mono.mp2'))),
  'AAC in ADTS, with noise from the decoder': () => concat(...times(60, formatFixture('adts-aac-8000-mono.aac'))),
  'HE-AAC in ADTS': () => concat(...times(60, formatFixture('adts-heaac-32000-stereo.aac'))),
  'HE-AAC v2 in ADTS': () => concat(...times(60, formatFixture('adts-heaacv2-44100-stereo.aac'))),
  'AMR-NB': () => amrOf('amr-nb-8000-mono.amr', 6, 44),
  'AMR-WB': () => amrOf('amr-wb-16000-mono.amr', 9, 44),
  'CAF, AAC': async () => {
    const packets = times(55, await aacPackets()).flat();
    const file = formatFixture('mp4-aac-16000-mono.m4a');
    const esds = find(file, 'esds') + 8;
    const cookie = file.slice(esds, esds - 12 + new DataView(file.buffer, file.byteOffset).getUint32(esds - 12));
    const lengths = packets.map(({ length }) => length);
    const table = { lengths, validFrames: lengths.length * 1024 - 3000, primingFrames: 2112 };
    return cafFile(
      { formatId: 'aac ', bytesPerPacket: 0, framesPerPacket: 1024, cookie, packets: table },
      concat(...packets),
    );
  },
  'MP4, index before the packets': async () =>
    packetMovie({ ...aacEntry(), packets: times(55, await aacPackets()).flat(), ticksPerPacket: 1024 }),
  'MP4, index after the packets': async () =>
    packetMovie({
      ...aacEntry(),
      packets: times(55, await aacPackets()).flat(),
      ticksPerPacket: 1024,
      isIndexLast: true,
    }),
  'MP4 in fragments with a pause': async () =>
    fragmentMovie({ ...aacEntry(), packets: times(55, await aacPackets()).flat(), ticksPerPacket: 1024 }, (i) =>
      i < 1000 ? 1024 * i : 1024 * i + 80_000,
    ),
  'OGG, Opus, packets across pages': () => oggOpus(36, 7),
  'OGG, Opus, pages lost before and after the checkpoints': () => oggOpus(36, 50, [30, 31, 150, 151, 200]),
  'OGG, recordings of some seconds': () => concat(...times(36, formatFixture('ogg-opus-speech-mono.opus'))),
  'OGG, recordings of two minutes': async () => concat(await oggOpus(20, 50), await oggOpus(20, 50, [20, 21])),
  'OGG, Vorbis': () => concat(...times(54, formatFixture('ogg-vorbis-8000-mono.ogg'))),
  'Matroska, Opus with a pause': async () =>
    matroskaOf('A_OPUS', opusHead(), times(36, await opusPackets()).flat(), (i) => (i < 2000 ? 20 * i : 20 * i + 3000)),
  'Matroska, PCM': () => {
    const bytes = Uint8Array.from(signal(1000, 1, SECONDS), (value) => 128 + 100 * value);
    const packets = Array.from({ length: SECONDS * 10 }, (_, i) => bytes.slice(100 * i, 100 * i + 100));
    return matroskaOf('A_PCM/INT/LIT', new Uint8Array(0), packets, (i) => 100 * i);
  },
  'MPEG-TS, AAC, past the end of its clock': () =>
    transportStreamOf('mpegts-aac-44100-stereo.mpegts', 0x100, 90_112 / 44_100, 108, 2 ** 33 / 90_000 - 95),
  'MPEG-TS, AAC in LATM': () => transportStreamOf('mpegts-latm-heaac-44100-mono.mpegts', 0x100, 2.04, 108),
  'MPEG-TS, audio that moves to another PID and back': () => {
    const file = formatFixture('mpegts-aac-44100-stereo.mpegts');
    const seconds = 90_112 / 44_100;
    return concat(
      ...Array.from({ length: 108 }, (_, i) => {
        const part = moved(file, 0x100, i * seconds);
        return i % 3 === 1 ? renamed(withStreams(part, [[15, 0x12c]]), 0x100, 0x12c) : part;
      }),
    );
  },
};

/** Expects the same samples and end from each checkpoint. */
async function expectSame(file: Uint8Array, { samples, end, checkpoints }: Reading): Promise<void> {
  for (const checkpoint of checkpoints) {
    const { sample } = checkpoint;
    const resumed = await readAll(file, ports, [], checkpoint);
    const expected = samples.subarray(sample);
    expect({ sample, worst: worstDifference(resumed.samples, expected) }).toEqual({ sample, worst: 0 });
    expect(resumed.end).toEqual(end);
  }
}

const samplesAt = (checkpointSeconds: readonly number[]) =>
  checkpointSeconds.map((seconds) => Math.round(seconds * RATE));

/** One format per container, the cheapest to decode. */
const ONE_PER_CONTAINER = [
  'WAV at 16 kHz',
  'AIFF',
  'FLAC',
  'MP3, 44.1 kHz',
  'AAC in ADTS, with noise from the decoder',
  'AMR-NB',
  'CAF, AAC',
  'MP4, index after the packets',
  'MP4 in fragments with a pause',
  'OGG, recordings of some seconds',
  'OGG, Vorbis',
  'Matroska, PCM',
  'MPEG-TS, AAC, past the end of its clock',
];

describe('another process continues with the same samples', () => {
  it.each(RUNS_ALL_CASES ? Object.keys(files) : ONE_PER_CONTAINER)('%s', { timeout: 60_000 }, async (name) => {
    const file = await files[name]();
    const whole = await readAll(file, ports, samplesAt(CHECKPOINT_SECONDS));
    expect(whole.end).toMatchObject({ ok: true, value: { totalSamples: whole.samples.length } });
    expect(whole.samples.length).toBeGreaterThan(samplesAt([212])[0]);
    expect(whole.checkpoints).toHaveLength(CHECKPOINT_SECONDS.length);
    // Only checkpoints before the first restart begin at the start of the file.
    expect(whole.checkpoints.slice(1).every(({ restart }) => restart !== undefined)).toBe(true);
    await expectSame(file, whole);
    // Checkpoints of the resumed process.
    const [, first, second] = whole.checkpoints;
    const resumed = await readAll(file, ports, samplesAt([150, 193.5]), first);
    expect(resumed.checkpoints.every(({ restart }) => restart !== undefined)).toBe(true);
    // With several parts, other restarts may be kept.
    if (first.restart?.partStartByte === undefined) {
      expect(resumed.checkpoints).toEqual([{ ...first, sample: samplesAt([150])[0] }, second]);
    } else await expectSame(file, { ...whole, checkpoints: resumed.checkpoints });
  });
});

describe('another process gives the same warnings', () => {
  it('about damage before the checkpoint', { timeout: 60_000 }, async () => {
    const adts = formatFixture('adts-aac-8000-mono.aac');
    const file = concat(...times(5, adts), new Uint8Array(500), ...times(50, adts), adts.subarray(0, -3));
    const whole = await readAll(file, ports, samplesAt([100, 195]));
    expect(whole.end).toMatchObject({
      value: { warning: expect.stringMatching(/is incomplete.* 500 bytes inside the AAC file are damaged/) },
    });
    await expectSame(file, whole);
  });

  it('about pauses before and after the checkpoint, with one sum', { timeout: 60_000 }, async () => {
    const packets = times(36, await opusPackets()).flat();
    const file = matroskaOf('A_OPUS', opusHead(), packets, (i) => 20 * i + (i < 1000 ? 0 : i < 9000 ? 2000 : 5000));
    const whole = await readAll(file, ports, samplesAt([100, 195]));
    expect(whole.end).toMatchObject({ value: { warning: expect.stringMatching(/Pauses .* 5\.0 s in all/) } });
    await expectSame(file, whole);
  });

  it('about an edit list that was followed or ignored', { timeout: 60_000 }, async () => {
    const packets = times(55, await aacPackets()).flat();
    const plain = packetMovie({ ...aacEntry(), packets, ticksPerPacket: 1024, isIndexLast: true });
    const back = await readAll(withEdits(plain, [750, 40_000], [250, 1024]), ports, samplesAt([100, 195]));
    expect(back.end).toMatchObject({ value: { warning: expect.stringMatching(/edit list .* jumps back/) } });
    await expectSame(withEdits(plain, [750, 40_000], [250, 1024]), back);
    const entries: EditEntry[] = [
      [500, EMPTY],
      [70_000, 16_000 * 10],
      [2000, EMPTY],
      [120_000, 16_000 * 85],
    ];
    const file = withEdits(plain, ...entries);
    const whole = await readAll(file, ports, samplesAt([90, 150, 190]));
    expect(whole.end).toEqual({ ok: true, value: { totalSamples: 3_080_000, durationSeconds: 192.5 } });
    expect(whole.checkpoints.map(({ restart }) => restart?.entry !== undefined)).toEqual([true, true, true]);
    await expectSame(file, whole);
  });

  it('about packets that share the same bytes', { timeout: 60_000 }, async () => {
    const next = random(1);
    const noise = Array.from({ length: 10 }, () => Uint8Array.from({ length: 4000 }, () => Math.floor(next() * 256)));
    const packets = times(400, noise).flat();
    const entry = { type: 'sowt', channels: 1, bits: 16, rateHz: 16_000, timescale: 16_000 };
    const movie = packetMovie({ ...entry, packets, ticksPerPacket: 2000 });
    const view = new DataView(movie.buffer, movie.byteOffset);
    const stco = find(movie, 'stco') + 8;
    for (let i = 0; i < view.getUint32(stco); i++) view.setUint32(stco + 4 + 4 * i, view.getUint32(stco + 4));
    const file = movie.subarray(0, 4_000_001);
    const whole = await readAll(file, ports, samplesAt([100, 195]));
    expect(whole.samples).toHaveLength(2000 * 2000);
    expect(whole.end).toMatchObject({ value: { warning: expect.stringMatching(/same bytes repeatedly/) } });
    await expectSame(file, whole);
  });
});

describe('a source that cannot seek', () => {
  const open = (file: Uint8Array, from?: Checkpoint) => Recording.open(memorySource(file, false), ports, from);
  const movie = async (isIndexLast: boolean, packets: number) => {
    const silence = new Uint8Array(4000);
    const entry = { type: 'sowt', channels: 1, bits: 16, rateHz: 16_000, timescale: 16_000 };
    return packetMovie({ ...entry, packets: times(packets, silence), ticksPerPacket: 2000, isIndexLast });
  };

  it('is read to the end if the index is before the packets', async () => {
    const recording = await open(await movie(false, 3000));
    if (!recording.ok) throw new Error(recording.error.message);
    expect(await collect(recording.value.samples())).toHaveLength(3000 * 2000);
    expect(recording.value.end).toEqual({ ok: true, value: { totalSamples: 6_000_000, durationSeconds: 375 } });
  });

  it('causes SeekNeeded if the MP4 index is after the packets', async () => {
    const file = await movie(true, 3000);
    const source = memorySource(file, false);
    const opened = Recording.open(source, ports);
    await expect(opened).rejects.toThrow(SeekNeeded);
    await expect(opened).rejects.toMatchObject({ name: 'SeekNeeded' });
    const seekable = await readAll(file, ports);
    expect(seekable.samples).toHaveLength(6_000_000);
  });

  it('causes SeekNeeded if the table of a Core Audio file is after the packets', async () => {
    const head = cafFile({ formatId: 'alac', bytesPerPacket: 0, declaredBytes: 20 << 20 }, []);
    const source = memorySource(concat(head, new Uint8Array(30 << 20)), false);
    await expect(Recording.open(source, ports)).rejects.toThrow(SeekNeeded);
    let bytes = 0;
    const open = async (offset: number) => {
      const { read, close } = await source.open(offset);
      return {
        close,
        read: async () => {
          const chunk = await read();
          bytes += chunk?.length ?? 0;
          return chunk;
        },
      };
    };
    await expect(Recording.open({ ...source, open }, ports)).rejects.toThrow(SeekNeeded);
    expect(bytes).toBeLessThan(2 << 20);
  });

  it('is read if the index at the end is in a buffered block', async () => {
    const recording = await open(await movie(true, 1000));
    if (!recording.ok) throw new Error(recording.error.message);
    expect(await collect(recording.value.samples())).toHaveLength(2_000_000);
  });

  it('continues from a checkpoint by reading from the start', async () => {
    const file = concat(...times(75, formatFixture('mp3-8000-mono.mp3')));
    const whole = await readAll(file, ports, samplesAt([193.5]));
    const recording = await open(file, whole.checkpoints[0]);
    if (!recording.ok) throw new Error(recording.error.message);
    const rest = await collect(recording.value.samples());
    expect(worstDifference(rest, whole.samples.subarray(whole.checkpoints[0].sample))).toBe(0);
  });
});

describe('the head of a recording', () => {
  it('is available before the first sample', async () => {
    const recording = await openRecording(formatFixture('mp4-heaac-44100-mono.m4a'), ports);
    expect(recording.facts).toEqual({ format: 'mp4', codec: 'aac', sampleRateHz: 44_100, channels: 1 });
    expect(() => recording.end).toThrow(/has not ended/);
    recording.close();
  });

  it('is a failure for an empty file', async () => {
    const opened = await Recording.open(memorySource(new Uint8Array(0)), ports);
    expect(opened).toEqual({ ok: false, error: { kind: 'empty', message: 'The file is empty.' } });
  });
});

it('closes decoders and the resampler if the reader stops early', async () => {
  let open = 0;
  const counted = <T extends { close(): void }>(made: T): T => {
    open++;
    const close = made.close.bind(made);
    made.close = () => {
      open--;
      close();
    };
    return made;
  };
  const counting = {
    decoder: { open: (...args: Parameters<typeof ports.decoder.open>) => counted(ports.decoder.open(...args)) },
    resampler: {
      contextInputSamples: ports.resampler.contextInputSamples,
      open: (...args: Parameters<typeof ports.resampler.open>) => counted(ports.resampler.open(...args)),
    },
  };
  const recording = await openRecording(concat(...times(20, formatFixture('mp3-44100-stereo.mp3'))), counting);
  for await (const _ of recording.samples()) {
    expect(open).toBe(2);
    break;
  }
  expect(open).toBe(0);
});
