import type { LiveEvent } from '../../src/live/live-session.ts';

/** Turns of a stream's events. @throws for faulty events */
export function turnsOf(events: readonly LiveEvent[]): { speaker: string; start: number; end: number }[] {
  const open = new Map<number, number>();
  const lastTime = new Map<number, number>();
  const turns: { speaker: string; start: number; end: number }[] = [];
  for (const event of events) {
    if (event.kind === 'correction') continue;
    const { kind, speaker, timestampSeconds } = event;
    if (timestampSeconds < (lastTime.get(speaker) ?? 0)) throw new Error(`speaker ${speaker} goes back in time`);
    lastTime.set(speaker, timestampSeconds);
    const start = open.get(speaker);
    if (kind === 'start') {
      if (start !== undefined) throw new Error(`speaker ${speaker} starts twice`);
      open.set(speaker, timestampSeconds);
    } else {
      if (start === undefined) throw new Error(`speaker ${speaker} ends without a start`);
      if (timestampSeconds <= start) throw new Error(`speaker ${speaker} ends before the start`);
      turns.push({ speaker: `SPEAKER_${speaker}`, start, end: timestampSeconds });
      open.delete(speaker);
    }
  }
  if (open.size > 0) throw new Error(`left open: ${[...open.keys()].join(', ')}`);
  return turns;
}
