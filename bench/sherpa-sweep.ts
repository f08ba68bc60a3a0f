import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sherpaModels } from './packs.ts';
import type { LabelledRecording } from './recordings.ts';
import { type DiarizationError, diarizationError } from './score/der.ts';
import { segmentsFromTurns } from './score/rttm.ts';
import { cacheDir, say } from './shared.ts';
import { SherpaDiarizer, sherpaVersion } from './sherpa.ts';

/** Clustering thresholds: the engine's default, and the best one of an earlier sweep. Each is a full run. */
const THRESHOLDS = [0.5, 0.8];

/** Errors of every recording, in their order, at one threshold. */
export interface SweepRow {
  readonly threshold: number;
  readonly errors: readonly DiarizationError[];
}

/**
 * Runs the other engine at a row of clustering thresholds. It is deterministic, so rows are kept in the cache under the hash
 * of engine, weights and audio.
 *
 * @returns undefined where its models are not at hand
 */
export function sweepSherpa(recordings: readonly LabelledRecording[]): SweepRow[] | undefined {
  const models = sherpaModels();
  if (!models) return undefined;
  const hash = createHash('sha256').update(sherpaVersion());
  for (const path of Object.values(models)) hash.update(readFileSync(path));
  for (const { samples } of recordings)
    hash.update(new Uint8Array(samples.buffer, samples.byteOffset, samples.byteLength));
  const file = join(cacheDir(), `sherpa-${hash.digest('hex').slice(0, 16)}.json`);
  const known = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as KeptRow[]) : [];
  let engine: SherpaDiarizer | undefined;
  return THRESHOLDS.map((threshold) => {
    let kept = known.find((row) => row.threshold === threshold);
    if (!kept) {
      say(`sherpa-onnx at threshold ${threshold}`);
      engine ??= new SherpaDiarizer(models.segmentation, models.embedder);
      engine.setThreshold(threshold);
      const running = engine;
      kept = { threshold, turns: recordings.map(({ samples }) => running.process(samples)) };
      known.push(kept);
      writeFileSync(file, JSON.stringify(known));
    }
    const errors = recordings.map(({ reference }, index) =>
      diarizationError(reference, segmentsFromTurns(kept.turns[index])),
    );
    return { threshold, errors };
  });
}

interface KeptRow {
  readonly threshold: number;
  readonly turns: ReturnType<SherpaDiarizer['process']>[];
}
