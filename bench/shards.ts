import { decodeFile } from '../client/audio/file.ts';
import { nodeAudio } from '../client/audio/ports.ts';
import { SAMPLE_RATE_HZ } from '../src/audio/audio-ports.ts';
import { assemble } from '../src/diarization/assemble.ts';
import { type DiarizationSettings, settingsOf } from '../src/diarization/parameters.ts';
import { encodePart, openPart, type PartReader, partsOf } from '../src/diarization/part.ts';
import { analyseShard } from '../src/diarization/shard.ts';
import type { Engine } from '../src/jobs/job-ports.ts';
import { nodeEngine, packOfService, pldaOf } from './pipeline.ts';
import { type LabelledRecording, loadGeneratedMeetings, tenVoices } from './recordings.ts';
import { table } from './report.ts';
import { diarizationError, type LabelledSegment, rate, segmentsFromTurns, toMicros } from './score/der.ts';
import { logProgress } from './shared.ts';
import { SETTINGS, type Setting } from './speed.ts';

const OVERRUN_SAMPLES = 160_000;
const BLOCK_SAMPLES = SAMPLE_RATE_HZ;

interface AnalysedShard {
  readonly reader: PartReader;
  /** CPU time of this process for the analysis of the shard, from decoded samples to the part. */
  readonly cpuMs: number;
}

/** Analyses a decoded recording in shards of the given length, like jobs, and stores the parts in memory. */
export async function analyseInShards(
  samples: Float32Array,
  shardSamples: number,
  engine: Engine,
  settings: DiarizationSettings,
): Promise<AnalysedShard[]> {
  const shards: AnalysedShard[] = [];
  for (let startSample = 0; startSample < samples.length; startSample += shardSamples) {
    const endSample = Math.min(samples.length, startSample + shardSamples);
    const from = process.cpuUsage();
    const blocks = blocksOf(samples, startSample, Math.min(samples.length, endSample + OVERRUN_SAMPLES));
    const shard = { startSample, endSample, totalSamples: samples.length };
    const bytes = encodePart(await analyseShard(blocks, shard, engine, settings, async () => undefined));
    const { user, system } = process.cpuUsage(from);
    const reader = await openPart(async (offset, length) => bytes.slice(offset, offset + length));
    shards.push({ reader, cpuMs: (user + system) / 1000 });
  }
  return shards;
}

async function* blocksOf(samples: Float32Array, start: number, end: number): AsyncGenerator<Float32Array> {
  for (let at = start; at < end; at += BLOCK_SAMPLES) yield samples.subarray(at, Math.min(end, at + BLOCK_SAMPLES));
}

/** The service's length, and a short one for many joins. */
const SHARD_SECONDS = [300, 60];
const MAX_MEETINGS = 3;

interface LongRecording {
  readonly name: string;
  readonly samples: Float32Array;
  readonly reference: readonly LabelledSegment[];
}

/** A recording long enough for local speakers to be reduced to representatives. */
const REDUCED = { seconds: 3 * 3600, setting: 'community-1', cuts: [300] } as const;

/** Accuracy of long recordings as a whole and in shards. */
export async function measureShards(recordings: readonly LabelledRecording[] | undefined): Promise<string> {
  if (!recordings) return '**Not measured:** the recordings need `../shared/audio`.';
  const meetings = (await loadGeneratedMeetings(nodeAudio())) ?? [];
  const longest = [...meetings].sort((a, b) => b.samples.length - a.samples.length).slice(0, MAX_MEETINGS);
  const joined = ['meetings', 'simulated'].map((set) => join(set, recordings));
  const rows: string[][] = [];
  for (const recording of [...joined, ...longest]) {
    for (const setting of SETTINGS) rows.push(await measureOne(recording, setting, SHARD_SECONDS));
  }
  const long = await tenVoices(recordings, REDUCED.seconds, 'compact');
  if (long) {
    const samples = await decodeFile(long.path, nodeAudio());
    const recording = { name: 'the same ten people', samples, reference: long.reference };
    rows.push(await measureOne(recording, REDUCED.setting, REDUCED.cuts));
  }
  const cuts = SHARD_SECONDS.map((seconds) => `in shards of ${seconds} s`);
  return `DER in per cent of recordings analysed as a whole and in shards, as in jobs, in Node with the Worker's code
and WebAssembly. "Joined": the labelled recordings of a folder in sequence; people that occur in several count once. The
generated meetings are the ${MAX_MEETINGS} longest (\`ROLLCALL_MEETINGS\`). The ten people are those of "Lengths", in a
recording whose local speakers are reduced to representatives before clustering (with ffmpeg). Windows and stretches lie
on one grid for the recording, so that all turns should be equal.

${table(['recording', 'setting', 'minutes', 'whole', ...cuts, 'turns'], rows, 2)}`;
}

async function measureOne(
  { name, samples, reference }: LongRecording,
  setting: Setting,
  shardSeconds: readonly number[],
): Promise<string[]> {
  logProgress(`${setting}: ${name}`);
  const engine = await nodeEngine(packOfService(setting));
  const seconds = samples.length / SAMPLE_RATE_HZ;
  const cuts = [Math.ceil(seconds / 10) * 10, ...shardSeconds];
  const found: LabelledSegment[][] = [];
  for (const cut of cuts) found.push(await turnsOf(samples, cut, setting, engine));
  const ders = found.map((turns) => rate(diarizationError(reference, turns)).der.toFixed(2));
  while (ders.length <= SHARD_SECONDS.length) ders.push('–');
  const isEqual = found.every((turns) => JSON.stringify(turns) === JSON.stringify(found[0]));
  return [name, setting, (seconds / 60).toFixed(1), ...ders, isEqual ? 'equal' : '**differ**'];
}

async function turnsOf(samples: Float32Array, shardSeconds: number, setting: Setting, engine: Engine) {
  const settings = settingsOf(setting);
  const shards = await analyseInShards(samples, shardSeconds * SAMPLE_RATE_HZ, engine, settings);
  const plda = pldaOf(packOfService());
  const parts = partsOf(shards.map(({ reader }) => reader));
  const options = { speakerTracks: false, pldaOf: async () => plda };
  const result = await assemble(parts, { totalSamples: samples.length }, settings, {}, options);
  if (!result.ok) return [];
  const { turns } = result.value;
  return segmentsFromTurns(turns.map((turn) => ({ ...turn, start: turn.startSeconds, end: turn.endSeconds })));
}

function join(set: string, recordings: readonly LabelledRecording[]): LongRecording {
  const chosen = recordings.filter((recording) => recording.set === set);
  const samples = new Float32Array(chosen.reduce((sum, recording) => sum + recording.samples.length, 0));
  const reference: LabelledSegment[] = [];
  let filled = 0;
  for (const recording of chosen) {
    samples.set(recording.samples, filled);
    const offset = toMicros(filled / SAMPLE_RATE_HZ);
    for (const { speaker, startMicros, endMicros } of recording.reference) {
      reference.push({ speaker, startMicros: offset + startMicros, endMicros: offset + endMicros });
    }
    filled += recording.samples.length;
  }
  return { name: `${set}, joined`, samples, reference };
}
