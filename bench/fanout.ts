import { decodeFile } from '../client/audio/file.ts';
import { nodeAudio } from '../client/audio/ports.ts';
import { assemble, settingsOf, writeOutput } from '../src/diarization/index.ts';
import { SHARD_SECONDS } from '../src/jobs/plan.ts';
import { nodeEngine } from './node-engine.ts';
import { packOfService, pldaOf } from './packs.ts';
import { replayedParts } from './part-replay.ts';
import { ALL_FIELDS } from './pipeline.ts';
import type { LabelledRecording } from './recordings.ts';
import { table } from './report.ts';
import { analyseInShards } from './shard-analysis.ts';
import { longestHours, say } from './shared.ts';
import { SETTINGS, type Setting } from './speed.ts';
import { tenVoices } from './ten-voices.ts';

const MEASURED_SECONDS = 3600;
const HOURS = [1, 8, 24].filter((hours) => hours <= longestHours());
/** Isolates at work at the same time; the platform runs at most 250 consumers of a queue. */
const CONSUMERS = [1, 10, 50, 100, 250];
const SHARD_SAMPLES = SHARD_SECONDS * 16_000;
/** What an isolate needs before its first shard: runtime and models (assumed; measured locally: 0.3 to 0.7 s). */
const COLD_START_MS = 1000;
/** From a message's sending to its handling (assumed). */
const QUEUE_MS = 500;

interface Times {
  readonly setting: Setting;
  readonly shardMs: readonly number[];
  /** By hours. */
  readonly assembleMs: ReadonlyMap<number, number>;
}

/**
 * How long a job takes when its shards run side by side: measured shard times, replayed on so many consumers. The assembly is
 * measured on the replayed parts of the whole length.
 */
export async function measureFanout(recordings: readonly LabelledRecording[] | undefined): Promise<string> {
  const recording = recordings && (await tenVoices(recordings, MEASURED_SECONDS, 'music'));
  if (!recording) return '**Not measured:** the recording needs `../shared/audio` and ffmpeg.';
  const decodeFrom = process.cpuUsage();
  const samples = await decodeFile(recording.path, nodeAudio());
  const { user, system } = process.cpuUsage(decodeFrom);
  const decodeMs = (user + system) / 1000 / (MEASURED_SECONDS / SHARD_SECONDS);
  const times: Times[] = [];
  for (const setting of SETTINGS) times.push(await measureSetting(setting, samples, decodeMs));
  return render(times);
}

async function measureSetting(setting: Setting, samples: Float32Array, decodeMs: number): Promise<Times> {
  say(`${setting}: shards of an hour`);
  const pack = packOfService();
  const shards = await analyseInShards(samples, SHARD_SAMPLES, await nodeEngine(pack), settingsOf(setting));
  const assembleMs = new Map<number, number>();
  const readers = shards.map(({ reader }) => reader);
  for (const hours of HOURS) {
    say(`${setting}: assembly of ${hours} h`);
    const parts = await replayedParts(readers, (hours * 3600) / SHARD_SECONDS, SHARD_SAMPLES);
    const from = process.cpuUsage();
    const plda = pldaOf(pack);
    const options = { speakerTracks: false, pldaOf: async () => plda };
    const result = await assemble(parts, parts, settingsOf(setting), {}, options);
    if (!result.ok) throw new Error(result.error.message);
    for await (const _ of writeOutput(result.value, { ...ALL_FIELDS, speakerProbability: false }));
    const { user, system } = process.cpuUsage(from);
    assembleMs.set(hours, (user + system) / 1000);
  }
  return { setting, shardMs: shards.map(({ cpuMs }) => cpuMs + decodeMs), assembleMs };
}

/**
 * Wall clock of a job: its shards go, in order, to whichever consumer is free first.
 *
 * @param shardMs times that repeat
 */
export function fanOut(shardMs: readonly number[], shards: number, consumers: number, assembleMs: number): number {
  const freeAt = new Array<number>(Math.min(consumers, shards)).fill(QUEUE_MS + COLD_START_MS);
  for (let shard = 0; shard < shards; shard++) {
    const first = freeAt.indexOf(Math.min(...freeAt));
    freeAt[first] += shardMs[shard % shardMs.length];
  }
  return QUEUE_MS + Math.max(...freeAt) + QUEUE_MS + assembleMs;
}

function render(times: readonly Times[]): string {
  const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;
  const rows = times.flatMap(({ setting, shardMs, assembleMs }) =>
    HOURS.map((hours) => {
      const shards = (hours * 3600) / SHARD_SECONDS;
      const assembly = assembleMs.get(hours)!;
      const walls = CONSUMERS.map((consumers) => fanOut(shardMs, shards, consumers, assembly));
      return [`${setting}, ${hours} h`, String(shards), seconds(assembly), ...walls.map(seconds)];
    }),
  );
  const slowest = times.map(({ setting, shardMs }) => `${setting} ${seconds(Math.max(...shardMs))}`).join(', ');
  return `Simulated from measured times: CPU of each shard of an hour of MP3 (44.1 kHz stereo) and of the assembly in Node with the Worker's code and
WebAssembly; longer recordings repeat the hour. Assumed: ${COLD_START_MS / 1000} s for an isolate to start with its models, ${QUEUE_MS / 1000} s for a message's way through a queue; plan
without its network. Slowest shard: ${slowest}; the platform's limit is 300 s of CPU a message.

${table(['wall clock with … consumers', 'shards', 'assembly', ...CONSUMERS.map(String)], rows)}`;
}
