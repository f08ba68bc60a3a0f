import { type ByteSource, type ByteStream, type Result, SeekNeeded } from '../../src/audio/audio-ports.ts';
import type { AudioPorts, Checkpoint, RecordingEnd, RecordingFacts } from '../../src/audio/recording.ts';
import { readVoiceprints } from '../../src/jobs/create-job.ts';
import type { JobPorts } from '../../src/jobs/job-ports.ts';
import type { Assembly, JobFault, OutputText } from '../../src/jobs/results.ts';
import { copyRecording, type SimulatedClient } from './copying.ts';
import { RATE_HZ } from './rate.ts';
import { BYTES_PER_SECOND, fileOf, type SimulatedFile } from './sources.ts';

/** Replaces what the simulation does not test: codecs, models, results and the platform's base class. */

/** Sample values encode the file's version and the second, so that a chunk shows where it was read. */
const VERSION_STEP = 4000;
const FULL_SCALE = 32_768;
const valueAt = (version: number, second: number): number =>
  (version * VERSION_STEP + (second % VERSION_STEP)) / FULL_SCALE;
const positionOf = (value: number) => {
  const code = Math.round(value * FULL_SCALE);
  return { version: Math.floor(code / VERSION_STEP), second: code % VERSION_STEP };
};

/** Decoders restart this long before the checkpoint. */
const PRE_ROLL_SECONDS = 10;

export class Recording {
  readonly facts: RecordingFacts;
  readBytes = 0;
  #end: RecordingEnd | undefined;

  private constructor(
    private readonly stream: ByteStream,
    private readonly file: SimulatedFile,
    private readonly from: Checkpoint | undefined,
    private readonly head: Uint8Array | undefined,
  ) {
    this.facts = { format: 'simulated', codec: 'pcm', sampleRateHz: file.recording.sampleRateHz, channels: 1 };
  }

  /** Reads the head, which identifies the file, and continues after it or at the checkpoint. */
  static async open(source: ByteSource, _ports: AudioPorts, from?: Checkpoint) {
    let stream = await source.open(0);
    let head = (await stream.read())?.slice();
    if (!head) throw new Error('the file is empty');
    const file = fileOf(head[0]);
    if (file.recording.behaviour === 'indexed' && !source.canSeek) {
      stream.close();
      throw new SeekNeeded('the source cannot go back');
    }
    if (from?.restart && source.canSeek) {
      stream.close();
      stream = await source.open(Number(from.restart) * BYTES_PER_SECOND);
      head = undefined;
    }
    return { ok: true, value: new Recording(stream, file, from, head) };
  }

  checkpointAt(sample: number): Checkpoint {
    const restart = Math.max(0, sample / RATE_HZ - PRE_ROLL_SECONDS);
    return { sample, restart: restart as unknown as Checkpoint['restart'] };
  }

  async *samples(): AsyncGenerator<Float32Array> {
    const { file, from, head } = this;
    const firstSecond = (from?.sample ?? 0) / RATE_HZ;
    let second = head ? 0 : Number(from?.restart);
    for (let bytes = head ?? (await this.stream.read()); bytes; bytes = await this.stream.read()) {
      for (let at = 0; at < bytes.length; at += BYTES_PER_SECOND) {
        const { version } = fileOf(bytes[at]);
        if (second >= firstSecond) yield new Float32Array(RATE_HZ).fill(valueAt(version, second));
        second++;
      }
      this.readBytes = second * BYTES_PER_SECOND;
    }
    const durationSeconds = file.recording.seconds[file.version];
    this.#end = { durationSeconds, totalSamples: durationSeconds * RATE_HZ };
  }

  get end(): Result<RecordingEnd, never> {
    if (!this.#end) throw new Error('the recording has not ended');
    return { ok: true, value: this.#end };
  }

  close(): void {
    this.stream.close();
  }
}

interface ShardBounds {
  readonly startSample: number;
  readonly endSample: number;
}

/** Content of a part: the version of its file and its samples. */
const partText = (version: number | string, startSample: number, endSample: number, readSamples: number): string =>
  `${version}:${startSample}-${endSample}/${readSamples};`;
const PART_BYTES = 40;

const SHARD_SECONDS = 300;
const OVERRUN_SECONDS = 10;

/** The output of a job whose recording was read without faults. */
export function outputOf(seconds: number, version: number): string {
  let text = '';
  for (let start = 0; start < seconds; start += SHARD_SECONDS) {
    const end = Math.min(start + SHARD_SECONDS, seconds);
    const read = Math.min(end + OVERRUN_SECONDS, seconds) - start;
    text += partText(version, start * RATE_HZ, end * RATE_HZ, read * RATE_HZ);
  }
  return text;
}

export const diarization = {
  async analyseShard(samples: AsyncIterable<Float32Array>, bounds: ShardBounds) {
    const versions = new Set<number>();
    let sample = bounds.startSample;
    for await (const block of samples) {
      for (const value of block) {
        const { version, second } = positionOf(value);
        versions.add(version);
        if (second !== Math.floor(sample / RATE_HZ) % VERSION_STEP) versions.add(Number.NaN);
        sample++;
      }
    }
    const empty = new Float32Array(1);
    return {
      text: partText([...versions].join('+'), bounds.startSample, bounds.endSample, sample - bounds.startSample),
      probabilities: empty,
      speakers: { embeddings: empty },
      subsegments: { embeddings: empty },
    };
  },
  encodePart: ({ text }: { readonly text: string }) => new TextEncoder().encode(text.padEnd(PART_BYTES)),
};

/** The ports of the simulated service include `sleep`. */
type SimulatedAssembly = Assembly & { readonly ports: Pick<JobPorts, 'sleep'> };

export const results = {
  /** Reads every part, and the voiceprints of an identify job. */
  async resultOf({ ports, job, recording, readPart, pulse }: SimulatedAssembly): Promise<Result<OutputText, JobFault>> {
    let text = '';
    for (let shard = 0; shard < recording.shardCount; shard++) {
      const part = await readPart(shard, 0, PART_BYTES);
      text += new TextDecoder().decode(part).trim();
      // The assembly of a long recording takes a minute.
      await ports.sleep(Math.min(4000, 60_000 / recording.shardCount));
      await pulse();
    }
    const voiceprints = job.kind === 'identify' ? await readVoiceprints(ports, job.id) : undefined;
    if (job.request.metadata?.silent) return { ok: false, error: { code: 'no_speech', message: 'No speech.' } };
    return { ok: true, value: [JSON.stringify({ text, voiceprints })] };
  },
};

/** WebCrypto answers from another thread, outside simulated time. */
export const signature = { signWebhook: async () => 'signature' };

export const workers = {
  DurableObject: class {
    constructor(
      readonly ctx: unknown,
      readonly env: unknown,
    ) {}
  },
};

/** The environment of a simulated object. */
export interface SimulatedEnv {
  readonly ports: JobPorts;
  readonly client: SimulatedClient;
  /** The methods that a copy uses. */
  readonly BUCKET: Pick<R2Bucket, 'head' | 'put'>;
}

export const services = {
  jobPorts: ({ ports }: SimulatedEnv) => ports,
  copyClient: ({ client }: SimulatedEnv) => client,
};

export const copy = { copyRecording };
