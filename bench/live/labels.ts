import type { LabelledSegment } from '../score/rttm.ts';
import { turnsOf } from './delay.ts';

export interface LabelChanges {
  /** Turns of the reference in which anybody was found, but for the first of each speaker. */
  readonly turns: number;
  /** Those whose label is another than in the same speaker's turn before. */
  readonly changes: number;
}

/**
 * How often a speaker gets another label than in his turn before. The label of a turn is the one that covers most of it; turns in
 * which nobody was found are left out.
 */
export function labelChanges(reference: readonly LabelledSegment[], found: readonly LabelledSegment[]): LabelChanges {
  const before = new Map<string, string>();
  let turns = 0;
  let changes = 0;
  for (const turn of turnsOf(reference)) {
    const label = majorityLabel(turn, found);
    if (label === undefined) continue;
    const previous = before.get(turn.speaker);
    before.set(turn.speaker, label);
    if (previous === undefined) continue;
    turns++;
    if (previous !== label) changes++;
  }
  return { turns, changes };
}

function majorityLabel(turn: LabelledSegment, found: readonly LabelledSegment[]): string | undefined {
  const shared = new Map<string, number>();
  for (const { speaker, startMicros, endMicros } of found) {
    const micros = Math.min(endMicros, turn.endMicros) - Math.max(startMicros, turn.startMicros);
    if (micros > 0) shared.set(speaker, (shared.get(speaker) ?? 0) + micros);
  }
  const [most] = [...shared].sort(([, a], [, b]) => b - a);
  return most?.[0];
}
