import type { DiarizeOutput } from '../client/sdk/types.ts';
import { assemble, type SpeakerRequest } from '../src/diarization/assemble.ts';
import type { Plda } from '../src/diarization/clustering/plda.ts';
import { type Diarization, writeOutput } from '../src/diarization/diarization.ts';
import type { DiarizationSettings } from '../src/diarization/parameters.ts';
import { encodePart, openPart, type PartReader, partsOf } from '../src/diarization/part.ts';
import { type AnalysisPorts, analyseShard } from '../src/diarization/shard.ts';

/** Every optional field of the output. */
export const ALL_FIELDS = {
  exclusive: true,
  confidence: true,
  turnLevelConfidence: true,
  speechProbability: true,
  crosstalkProbability: true,
  speakerProbability: true,
} as const;

const BLOCK_SAMPLES = 16000;

async function* blocksOf(samples: Float32Array): AsyncGenerator<Float32Array> {
  for (let at = 0; at < samples.length; at += BLOCK_SAMPLES) yield samples.subarray(at, at + BLOCK_SAMPLES);
}

const noPause = async (): Promise<void> => undefined;

/** Runs the models over a whole recording as one shard: the part as the service stores it. */
export async function analysedBytes(
  samples: Float32Array,
  engine: AnalysisPorts,
  settings: DiarizationSettings,
): Promise<Uint8Array> {
  const shard = { startSample: 0, endSample: samples.length, totalSamples: samples.length };
  return encodePart(await analyseShard(blocksOf(samples), shard, engine, settings, noPause));
}

/** The same, to read. */
export async function analyse(
  samples: Float32Array,
  engine: AnalysisPorts,
  settings: DiarizationSettings,
): Promise<PartReader> {
  const bytes = await analysedBytes(samples, engine, settings);
  return openPart(async (offset, length) => bytes.subarray(offset, offset + length));
}

/** The output document of a job on this part with all its fields; undefined when there is no speech. */
export async function finish(
  part: PartReader,
  totalSamples: number,
  settings: DiarizationSettings,
  plda: Plda | undefined,
  request: SpeakerRequest = {},
): Promise<DiarizeOutput | undefined> {
  const parts = partsOf([part]);
  const result = await assemble(parts, { totalSamples }, settings, request, { pldaOf: async () => plda });
  return result.ok ? toOutput(result.value) : undefined;
}

/** As a client sees it. */
export async function toOutput(diarization: Diarization): Promise<DiarizeOutput> {
  const chunks: string[] = [];
  for await (const chunk of writeOutput(diarization, ALL_FIELDS)) chunks.push(chunk);
  return JSON.parse(chunks.join('')) as DiarizeOutput;
}
