import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DiarizationSettings } from '../src/diarization/parameters.ts';
import { openPart, type PartReader } from '../src/diarization/part.ts';
import type { AnalysisPorts } from '../src/diarization/shard.ts';
import type { MeasuredPack } from './packs.ts';
import { analysedBytes } from './pipeline.ts';
import { cacheDir } from './shared.ts';

/** The settings that decide the analysis, as a key: a kept part of other settings must not be used. */
export function analysisOf({ windows, localSpeakers, subsegments }: DiarizationSettings): string {
  return JSON.stringify([windows, localSpeakers, subsegments.minCleanSeconds]);
}

/** The part of a recording from an earlier run, else a new one, which is kept: by its samples, the models and what has a say in the analysis. */
export async function keptPart(
  samples: Float32Array,
  engine: AnalysisPorts,
  { pack: { segmentation, embedding } }: MeasuredPack,
  settings: DiarizationSettings,
): Promise<PartReader> {
  const digest = createHash('sha256')
    .update(JSON.stringify([segmentation, embedding]))
    .update(analysisOf(settings))
    .update(samples)
    .digest('hex')
    .slice(0, 24);
  const folder = join(cacheDir(), 'parts');
  const path = join(folder, digest);
  if (!existsSync(path)) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(`${path}.${process.pid}`, await analysedBytes(samples, engine, settings));
    renameSync(`${path}.${process.pid}`, path);
  }
  const bytes = readFileSync(path);
  return openPart(async (offset, length) => new Uint8Array(bytes.subarray(offset, offset + length)));
}
