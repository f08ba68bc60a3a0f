import { optimalMapping } from '../score/der.ts';
import type { LabelledSegment } from '../score/rttm.ts';
import type { ObservedStream, ToldEvent } from './observe.ts';

/** An event counts for a moment of the reference that is at most this far from its timestamp. */
export const MATCH_WITHIN_SECONDS = 1;

/** A moment at which a speaker of the reference begins or ends a turn. */
export interface Moment {
  readonly kind: 'start' | 'end';
  readonly speaker: string;
  readonly seconds: number;
}

/** How long it took until a moment was told. */
export interface EventDelay {
  /** Index of the push that told it. */
  readonly push: number;
  readonly kind: Moment['kind'];
  /** From the moment until the audio had arrived that the event came with. */
  readonly audioMs: number;
  /** Computing time on that audio. */
  readonly computeMs: number;
}

export interface EventDelays {
  readonly delays: readonly EventDelay[];
  /** Moments of the reference, told or not. */
  readonly moments: number;
}

/** Where speakers begin and end; segments of a speaker that touch or overlap are one turn. */
function momentsOf(reference: readonly LabelledSegment[]): Moment[] {
  return turnsOf(reference).flatMap(({ speaker, startMicros, endMicros }) => [
    { kind: 'start' as const, speaker, seconds: startMicros / 1e6 },
    { kind: 'end' as const, speaker, seconds: endMicros / 1e6 },
  ]);
}

/** The segments with those of a speaker joined that touch or overlap, by start. */
export function turnsOf(reference: readonly LabelledSegment[]): LabelledSegment[] {
  const turns: LabelledSegment[] = [];
  const last = new Map<string, number>();
  for (const segment of [...reference].sort((a, b) => a.startMicros - b.startMicros)) {
    const index = last.get(segment.speaker);
    const before = index === undefined ? undefined : turns[index];
    if (index !== undefined && before && segment.startMicros <= before.endMicros) {
      turns[index] = { ...before, endMicros: Math.max(before.endMicros, segment.endMicros) };
    } else {
      last.set(segment.speaker, turns.length);
      turns.push(segment);
    }
  }
  return turns;
}

/**
 * How long it took until the moments of the reference were told. A moment is matched with an event of the same kind whose
 * speaker is mapped to the moment's speaker by the optimal mapping of the recording, within `MATCH_WITHIN_SECONDS`; one to one,
 * the closest pairs first. Moments without such an event are errors of the diarization, not delays.
 */
export function eventDelays(reference: readonly LabelledSegment[], { found, told }: ObservedStream): EventDelays {
  const mapping = optimalMapping(reference, found);
  const moments = momentsOf(reference);
  const pairs = moments.flatMap((moment) =>
    told
      .filter((event) => event.kind === moment.kind && mapping.get(String(event.speaker)) === moment.speaker)
      .map((event) => ({ moment, event, distance: Math.abs(event.timestampSeconds - moment.seconds) }))
      .filter(({ distance }) => distance <= MATCH_WITHIN_SECONDS),
  );
  const taken = new Set<Moment | ToldEvent>();
  const delays: EventDelay[] = [];
  for (const { moment, event } of pairs.sort((a, b) => a.distance - b.distance)) {
    if (taken.has(moment) || taken.has(event)) continue;
    taken.add(moment).add(event);
    const { push, kind, streamSeconds, computeMs } = event;
    delays.push({ push, kind, audioMs: 1000 * (streamSeconds - moment.seconds), computeMs });
  }
  return { delays, moments: moments.length };
}
