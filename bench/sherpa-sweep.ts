import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type MeasuredPack, sherpaModels } from './packs.ts';
import type { LabelledRecording } from './recordings.ts';
import { type DiarizationError, diarizationError, pool, rate } from './score/der.ts';
import { segmentsFromTurns } from './score/rttm.ts';
import { cacheDir, say } from './shared.ts';
import { SherpaDiarizer, sherpaVersion } from './sherpa.ts';

/** For short recordings. */
export const THRESHOLDS = [0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1, 1.05, 1.1];
/** For long ones, where every threshold costs the engine the whole analysis again. */
export const FEW_THRESHOLDS = [0.6, 0.7, 0.8, 0.9, 1];

/** Errors of every recording, in their order, at one threshold. */
export interface SweepRow {
  readonly threshold: number;
  readonly errors: readonly DiarizationError[];
}

/**
 * Runs the other engine at a row of clustering thresholds. It is deterministic, so rows are kept in the cache under the hash
 * of engine, weights and audio.
 *
 * @returns undefined where the pack has no form that the engine can load
 */
export function sweepSherpa(
  measured: MeasuredPack,
  recordings: readonly LabelledRecording[],
  thresholds: readonly number[],
): SweepRow[] | undefined {
  const models = sherpaModels(measured);
  if (!models) return undefined;
  const hash = createHash('sha256').update(sherpaVersion());
  for (const path of Object.values(models)) hash.update(readFileSync(path));
  for (const { samples } of recordings)
    hash.update(new Uint8Array(samples.buffer, samples.byteOffset, samples.byteLength));
  const file = join(cacheDir(), `sherpa-${hash.digest('hex').slice(0, 16)}.json`);
  const known = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as KeptRow[]) : [];
  let engine: SherpaDiarizer | undefined;
  return thresholds.map((threshold) => {
    let kept = known.find((row) => row.threshold === threshold);
    if (!kept) {
      say(`sherpa-onnx with ${measured.label} at threshold ${threshold}`);
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

/** The row with the smallest pooled DER over the recordings that `pick` keeps; the lowest threshold of several. */
export function bestRow(rows: readonly SweepRow[], pick: (index: number) => boolean): SweepRow {
  const derOf = (row: SweepRow): number => rate(pool(row.errors.filter((_, index) => pick(index)))).der;
  return rows.reduce((best, row) => (derOf(row) < derOf(best) ? row : best));
}
