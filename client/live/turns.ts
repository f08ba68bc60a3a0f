/** A turn of a stream. */
export interface LiveTurn<Speaker> {
  readonly speaker: Speaker;
  readonly start: number;
  readonly end: number;
}

interface TurnEvent<Speaker> {
  readonly kind: string;
  readonly speaker?: Speaker;
  readonly timestampSeconds?: number;
}

/**
 * The turns that start and end events tell, by start, then by speaker.
 *
 * @param untilSeconds where turns end that are still open, as after a lost connection; such turns are left out without it
 */
export function collectTurns<Speaker extends string | number>(
  events: Iterable<TurnEvent<Speaker>>,
  untilSeconds?: number,
): LiveTurn<Speaker>[] {
  const open = new Map<Speaker, number>();
  const turns: LiveTurn<Speaker>[] = [];
  const close = (speaker: Speaker, end: number): void => {
    const start = open.get(speaker);
    open.delete(speaker);
    if (start !== undefined && end > start) turns.push({ speaker, start, end });
  };
  for (const { kind, speaker, timestampSeconds } of events) {
    if (speaker === undefined || timestampSeconds === undefined) continue;
    if (kind === 'start') open.set(speaker, timestampSeconds);
    else if (kind === 'end') close(speaker, timestampSeconds);
  }
  if (untilSeconds !== undefined) for (const speaker of [...open.keys()]) close(speaker, untilSeconds);
  return turns.sort((a, b) => a.start - b.start || (a.speaker < b.speaker ? -1 : 1));
}
