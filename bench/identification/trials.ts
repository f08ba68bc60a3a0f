import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { decodeFile } from '../../client/audio/file.ts';
import type { AudioPorts } from '../../src/audio/recording.ts';
import { type LabelledSegment, parseSingleFileRttm } from '../score/rttm.ts';

/** A generated conversation, and whose voiceprints are sent with it. Made by `training/identification`. */
export interface Trial {
  readonly name: string;
  readonly kind: string;
  readonly samples: Float32Array;
  readonly reference: readonly LabelledSegment[];
  /** Names as in the reference; some of these people are not in the conversation. */
  readonly enrolled: readonly string[];
}

export interface TrialSet {
  readonly trials: readonly Trial[];
  /** Enrolment recordings by name. */
  readonly enrolments: ReadonlyMap<string, Float32Array>;
}

/** The conversations of one half, `fit` or `check`, below `ROLLCALL_ENROLLED`; undefined where it names no such folder. */
export async function loadTrials(half: 'fit' | 'check', ports: AudioPorts): Promise<TrialSet | undefined> {
  const root = process.env.ROLLCALL_ENROLLED;
  const folder = root && join(root, half);
  if (!folder || !existsSync(join(folder, 'trials.json'))) return undefined;
  const listed = JSON.parse(readFileSync(join(folder, 'trials.json'), 'utf8')) as Omit<
    Trial,
    'samples' | 'reference'
  >[];
  const trials: Trial[] = [];
  for (const { name, kind, enrolled } of listed) {
    const reference = parseSingleFileRttm(readFileSync(join(folder, `${name}.rttm`), 'utf8'));
    trials.push({ name, kind, enrolled, reference, samples: await decodeFile(join(folder, `${name}.flac`), ports) });
  }
  const enrolments = new Map<string, Float32Array>();
  for (const name of new Set(trials.flatMap(({ enrolled }) => enrolled))) {
    enrolments.set(name, await decodeFile(join(folder, 'prints', `${name}.flac`), ports));
  }
  return { trials, enrolments };
}
