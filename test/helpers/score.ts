import type { Turn } from '../../client/sdk/types.ts';

const FRAMES_PER_SECOND = 100;

export function readRttm(text: string): Turn[] {
  return text
    .split('\n')
    .filter((line) => line.startsWith('SPEAKER '))
    .map((line) => {
      const columns = line.split(/\s+/);
      const start = Number(columns[3]);
      return { speaker: columns[7], start, end: start + Number(columns[4]) };
    });
}

/**
 * Diarization error rate without a collar, overlap counted, on frames of 10 ms, with the best mapping of few speakers
 * found by trying all: missed speech, false alarm and confusion over the speech of the reference.
 */
export function errorRate(reference: readonly Turn[], hypothesis: readonly Turn[]): number {
  const frames = Math.ceil(Math.max(...[...reference, ...hypothesis].map(({ end }) => end)) * FRAMES_PER_SECOND);
  const truth = activity(reference, frames);
  const heard = activity(hypothesis, frames);
  const speech = sum(truth.map((row) => sum(row)));
  let right = 0; // speech in both, regardless of the speaker
  let wrongCount = 0; // missed speech or false alarm, regardless of the speaker
  for (let frame = 0; frame < frames; frame++) {
    const n = sum(truth.map((row) => row[frame]));
    const m = sum(heard.map((row) => row[frame]));
    right += Math.min(n, m);
    wrongCount += Math.max(n, m) - Math.min(n, m);
  }
  const together = truth.map((a) => heard.map((b) => a.reduce((count, on, frame) => count + (on & b[frame]), 0)));
  return (wrongCount + right - bestMapping(together, 0, new Set())) / speech;
}

function activity(turns: readonly Turn[], frames: number): Uint8Array[] {
  const speakers = [...new Set(turns.map(({ speaker }) => speaker))];
  return speakers.map((speaker) => {
    const row = new Uint8Array(frames);
    for (const turn of turns) {
      if (turn.speaker !== speaker) continue;
      row.fill(1, Math.round(turn.start * FRAMES_PER_SECOND), Math.round(turn.end * FRAMES_PER_SECOND));
    }
    return row;
  });
}

function bestMapping(together: readonly (readonly number[])[], row: number, used: ReadonlySet<number>): number {
  if (row === together.length) return 0;
  let best = bestMapping(together, row + 1, used);
  together[row].forEach((frames, column) => {
    if (!used.has(column)) best = Math.max(best, frames + bestMapping(together, row + 1, new Set([...used, column])));
  });
  return best;
}

function sum(values: Iterable<number>): number {
  let total = 0;
  for (const value of values) total += value;
  return total;
}
