import type { Result } from '../../src/audio/types.ts';
import { readVoiceprints } from '../../src/jobs/attachments.ts';
import { partKey } from '../../src/jobs/keys.ts';
import type { JobPorts } from '../../src/jobs/ports.ts';
import type { Assembly, JobFault, OutputText } from '../../src/jobs/results/index.ts';
import type { SimulatedSource } from './sources.ts';

/** In place of what the simulation is not about: codecs, models, the making of a result, the platform's base class. */

const SAMPLES_PER_READ = 64_000;

export const audio = {
  async probeAudio(source: SimulatedSource) {
    await source.read(0, 10);
    const { durationSeconds } = source.recording;
    return { ok: true, value: { durationSeconds, format: 'simulated', channels: 1 } };
  },
  outputSampleCount: (index: { readonly durationSeconds: number }) => index.durationSeconds * 16_000,
  async *readSamples(source: SimulatedSource) {
    for (const offset of [0, 100, 200]) {
      await source.read(offset, 100);
      yield new Float32Array(SAMPLES_PER_READ);
    }
  },
  release: () => {},
};

interface Whole {
  readonly startSample: number;
}

export const diarization = {
  async analyseShard(samples: AsyncIterable<Float32Array>, whole: Whole) {
    for await (const _ of samples);
    const nothing = new Float32Array(1);
    return {
      whole,
      probabilities: nothing,
      speakers: { embeddings: nothing },
      subsegments: { embeddings: nothing },
    };
  },
  encodePart: ({ whole }: { readonly whole: Whole }) => new TextEncoder().encode(`part ${whole.startSample}`),
};

export const results = {
  /** Reads every part, and what else a result of its kind is made of. */
  async resultOf({ ports, job, plan, pulse }: Assembly): Promise<Result<OutputText, JobFault>> {
    let text = '';
    for (const shard of plan.shards.keys()) {
      text += new TextDecoder().decode(await ports.objects.getRange(partKey(job.id, shard, ports.work), 0, 6));
      await ports.sleep(4000);
      await pulse();
    }
    if (job.kind === 'identify') text += JSON.stringify(await readVoiceprints(ports, job.id));
    if (job.request.metadata?.silent) return { ok: false, error: { code: 'no_speech', message: 'No speech.' } };
    return { ok: true, value: [JSON.stringify({ text })] };
  },
};

/** Ciphers work on another thread, whose answer comes at no simulated moment. */
export const signature = { signWebhook: async () => 'signature' };

export const workers = {
  DurableObject: class {
    constructor(
      readonly ctx: unknown,
      readonly env: unknown,
    ) {}
  },
};

/** What a simulated object is given as its environment. */
export interface SimulatedEnv {
  readonly ports: JobPorts;
}

export const services = { jobPorts: ({ ports }: SimulatedEnv) => ports };
