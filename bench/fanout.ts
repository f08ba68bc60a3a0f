import { readFileSync } from 'node:fs';
import { nodeAudio } from '../client/audio/ports.ts';
import { SAMPLE_RATE_HZ } from '../src/audio/audio-ports.ts';
import { assemble } from '../src/diarization/assemble.ts';
import { writeOutput } from '../src/diarization/diarization.ts';
import { settingsOf } from '../src/diarization/parameters.ts';
import type { EmbeddingsSection, PartReader, Parts } from '../src/diarization/part.ts';
import { SUBSEGMENT_SHIFT_SAMPLES, windowCount } from '../src/diarization/windows.ts';
import { BYTES_PER_SAMPLE, CHUNK_SAMPLES, readChunks } from '../src/ingest/chunks.ts';
import { ingest } from '../src/ingest/pass.ts';
import { readyShards, SHARD_SAMPLES, SHARD_SECONDS } from '../src/jobs/ingest-state.ts';
import { bytesSource } from '../src/platform/r2-objects.ts';
import { ALL_FIELDS, nodeEngine, packOfService, pldaOf } from './pipeline.ts';
import { type LabelledRecording, tenVoices } from './recordings.ts';
import { table } from './report.ts';
import { renderScale } from './scale.ts';
import { analyseInShards } from './shards.ts';
import { logProgress, longestHours } from './shared.ts';
import { SETTINGS, type Setting } from './speed.ts';

/**
 * Parts of a longer recording: those of a shorter one repeated, moved along the grid. The last part of the shorter
 * recording is left out, because it may be incomplete.
 *
 * @param shards number of shards of the longer recording, all of `shardSamples`
 */
async function replayedParts(
  readers: readonly PartReader[],
  shards: number,
  shardSamples: number,
): Promise<Parts & { readonly totalSamples: number }> {
  const completeShards = readers.length - 1;
  const { facts } = readers[0];
  const totalSamples = shards * shardSamples;
  const perShard = shardSamples / facts.stepSamples;
  const windows = windowCount({ windowSamples: facts.windowSamples, stepSamples: facts.stepSamples, totalSamples });
  const rangeOf = (shard: number) => ({
    firstWindow: shard * perShard,
    windowCount: Math.min(perShard, windows - shard * perShard),
  });
  const moved = <Section extends EmbeddingsSection>(shard: number, section: Section): Section => {
    const { speakers, subsegments } = section;
    const range = rangeOf(shard);
    const windowOffset = range.firstWindow - (shard % completeShards) * perShard;
    const subsegmentOffset = ((shard - (shard % completeShards)) * shardSamples) / SUBSEGMENT_SHIFT_SAMPLES;
    const end = range.firstWindow + range.windowCount;
    const count = speakers.windows.filter((window) => window + windowOffset < end).length;
    return {
      ...section,
      ...range,
      facts,
      speakers: { ...speakers, count, windows: speakers.windows.map((window) => window + windowOffset) },
      subsegments: { ...subsegments, indices: subsegments.indices.map((index) => index + subsegmentOffset) },
    };
  };
  return {
    totalSamples,
    count: shards,
    factsOf: () => facts,
    // The last shard may have fewer windows: a few speakers too many are counted.
    countsOf: (shard) => readers[shard % completeShards].counts,
    readEmbeddings: async (shard) => moved(shard, await readers[shard % completeShards].readEmbeddings()),
    async readPart(shard) {
      const part = moved(shard, await readers[shard % completeShards].readPart());
      const length = part.windowCount * facts.framesPerWindow * facts.classes;
      return { ...part, probabilities: part.probabilities.subarray(0, length) };
    },
  };
}

const MEASURED_SECONDS = 3600;
const HOURS = [1, 8, 24].filter((hours) => hours <= longestHours());
/** Concurrent isolates; the platform runs at most 250 consumers of a queue. */
const CONSUMERS = [1, 10, 50, 100, 250];
/** Start of an isolate: runtime and models (assumed; measured locally: 0.3 to 0.7 s). */
const COLD_START_MS = 1000;
/** From sending to handling of a message (assumed). */
const QUEUE_MS = 500;
/** Time after which a reading invocation hands over to the next one (src/ingest/pass.ts). */
const SLICE_MS = 8000;

/** Live streams that one thread can follow at a latency of 1 s, measured by `bench live`. */
const STREAMS_A_THREAD = 6;

interface Times {
  readonly setting: Setting;
  readonly shardMs: readonly number[];
  /** By hours. */
  readonly assembleMs: ReadonlyMap<number, number>;
}

/**
 * Wall clock of a job whose shards run in parallel: measured shard times, replayed on numbers of consumers. The
 * assembly is measured on the replayed parts of the full length.
 */
export async function measureFanout(recordings: readonly LabelledRecording[] | undefined): Promise<string> {
  const recording = recordings && (await tenVoices(recordings, MEASURED_SECONDS, 'music'));
  if (!recording) return '**Not measured:** the recording needs `../shared/audio` and ffmpeg.';
  logProgress('ingest of an hour');
  const ingested = await ingestInMemory(recording.path);
  const times: Times[] = [];
  for (const setting of SETTINGS) times.push(await measureSetting(setting, ingested));
  const [{ shardMs, assembleMs }] = times;
  const scale = renderScale({
    ingestMs: ingested.ingestMs,
    analysisMs: shardMs.reduce((sum, ms) => sum + ms, 0),
    assembleMs: assembleMs.get(1)!,
    streamsAThread: STREAMS_A_THREAD,
  });
  return `${render(times, ingested.ingestMs)}

### At scale, precision-2

${scale}`;
}

interface Ingested {
  /** Chunks, as shards read them. */
  readonly samples: Float32Array;
  /** CPU time of reading, decoding and coding all chunks. */
  readonly ingestMs: number;
  /** CPU time of reading the chunks of one shard. */
  readonly chunksMs: number;
}

/** Reads the recording as the step `ingest` does, with its chunks in memory. */
async function ingestInMemory(path: string): Promise<Ingested> {
  const source = bytesSource(readFileSync(path));
  const chunks: Uint8Array[] = [];
  const ingestFrom = process.cpuUsage();
  const end = await ingest(
    source,
    {
      audio: nodeAudio(),
      admit: async () => undefined,
      // A constant clock: one slice reads all.
      now: () => 0,
      pause: () => new Promise((wake) => setImmediate(wake)),
      store: async (_chunk, bytes) => void chunks.push(bytes),
      stored: async () => undefined,
      progress: async () => undefined,
    },
    { maxSeconds: 2 * MEASURED_SECONDS, endsWhenSlow: false },
  );
  const ingestMs = cpuMsSince(ingestFrom);
  if (end.kind !== 'whole') throw new Error(`the ingest ended as ${end.kind}`);
  const { totalSamples } = end.end;
  const samples = new Float32Array(totalSamples);
  const readFrom = process.cpuUsage();
  const read = async (chunk: number, offset: number, length: number): Promise<Uint8Array> =>
    chunks[chunk].subarray(offset, offset + length);
  let filled = 0;
  for await (const block of readChunks(read, 0, totalSamples)) {
    samples.set(block, filled);
    filled += block.length;
  }
  return { samples, ingestMs, chunksMs: cpuMsSince(readFrom) / (totalSamples / SHARD_SAMPLES) };
}

function cpuMsSince(from: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(from);
  return (user + system) / 1000;
}

async function measureSetting(setting: Setting, { samples, chunksMs }: Ingested): Promise<Times> {
  logProgress(`${setting}: shards of an hour`);
  const pack = packOfService(setting);
  const shards = await analyseInShards(samples, SHARD_SAMPLES, await nodeEngine(pack), settingsOf(setting));
  const assembleMs = new Map<number, number>();
  const readers = shards.map(({ reader }) => reader);
  for (const hours of HOURS) {
    logProgress(`${setting}: assembly of ${hours} h`);
    const parts = await replayedParts(readers, (hours * 3600) / SHARD_SECONDS, SHARD_SAMPLES);
    const from = process.cpuUsage();
    const plda = pldaOf(pack);
    const options = { speakerTracks: false, pldaOf: async () => plda };
    const result = await assemble(parts, parts, settingsOf(setting), {}, options);
    if (!result.ok) throw new Error(result.error.message);
    for await (const _ of writeOutput(result.value, { ...ALL_FIELDS, speakerProbability: false }));
    assembleMs.set(hours, cpuMsSince(from));
  }
  return { setting, shardMs: shards.map(({ cpuMs }) => cpuMs + chunksMs), assembleMs };
}

/**
 * When the message of each shard is sent, from the creation of the job: the recording is read once, forward, and a
 * shard's message is sent when the last chunk that it reads is stored.
 *
 * @param ingestMs of an hour of audio
 */
export function readyTimes(shards: number, ingestMs: number): number[] {
  const msPerSample = ingestMs / (3600 * SAMPLE_RATE_HZ);
  const totalSamples = shards * SHARD_SAMPLES;
  const times: number[] = [];
  for (let stored = CHUNK_SAMPLES; times.length < shards; stored += CHUNK_SAMPLES) {
    const isWhole = stored >= totalSamples;
    const workMs = Math.min(stored, totalSamples) * msPerSample;
    const sentAt = QUEUE_MS + COLD_START_MS + workMs + Math.floor(workMs / SLICE_MS) * QUEUE_MS;
    while (times.length < (isWhole ? shards : readyShards(stored))) times.push(sentAt);
  }
  return times;
}

/**
 * Wall clock of a job: each shard goes, in order, to the consumer that can begin first.
 *
 * @param shardMs times that repeat
 * @param sentMs when the message of each shard is sent
 */
export function fanOut(
  shardMs: readonly number[],
  sentMs: readonly number[],
  consumers: number,
  assembleMs: number,
): number {
  /** When each started consumer is free. */
  const freeAt: number[] = [];
  for (const [shard, sentAt] of sentMs.entries()) {
    const arrivesAt = sentAt + QUEUE_MS;
    const first = freeAt.indexOf(Math.min(...freeAt));
    const warmAt = first < 0 ? Number.POSITIVE_INFINITY : Math.max(arrivesAt, freeAt[first]);
    const coldAt = freeAt.length < consumers ? arrivesAt + COLD_START_MS : Number.POSITIVE_INFINITY;
    const endsAt = Math.min(warmAt, coldAt) + shardMs[shard % shardMs.length];
    if (warmAt <= coldAt) freeAt[first] = endsAt;
    else freeAt.push(endsAt);
  }
  return Math.max(...freeAt) + QUEUE_MS + assembleMs;
}

function render(times: readonly Times[], ingestMs: number): string {
  const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;
  const rows = times.flatMap(({ setting, shardMs, assembleMs }) =>
    HOURS.map((hours) => {
      const shards = (hours * 3600) / SHARD_SECONDS;
      const assembly = assembleMs.get(hours)!;
      const sent = readyTimes(shards, ingestMs);
      const walls = CONSUMERS.map((consumers) => fanOut(shardMs, sent, consumers, assembly));
      return [
        `${setting}, ${hours} h`,
        String(shards),
        seconds(sent.at(-1)!),
        seconds(assembly),
        ...walls.map(seconds),
      ];
    }),
  );
  const slowest = times.map(({ setting, shardMs }) => `${setting} ${seconds(Math.max(...shardMs))}`).join(', ');
  const chunkBytes = CHUNK_SAMPLES * BYTES_PER_SAMPLE;
  return `Simulated from measured times: CPU of the ingest of an hour of MP3 (44.1 kHz stereo; ${seconds(ingestMs)}), of each
of its shards and of the assembly in Node with the Worker's code and WebAssembly; longer recordings repeat the hour.
The recording is read once, forward, at the speed of its decoding; a shard is sent when its last chunk is stored
(${(chunkBytes / 1e6).toFixed(1)} MB a chunk), and an invocation reads for ${SLICE_MS / 1000} s. Assumed:
${COLD_START_MS / 1000} s for an isolate to start with its models, ${QUEUE_MS / 1000} s for a message's way through a
queue; network and storage cost no time. Slowest shard: ${slowest}; the platform's limit is 300 s of CPU a message.

${table(['wall clock with … consumers', 'shards', 'last shard sent after', 'assembly', ...CONSUMERS.map(String)], rows)}`;
}
