import { MAX_GAP_SECONDS } from '../../packets/clock.ts';
import type { EditList } from './edits.ts';

/** What of a track tells when it begins: its clock, and where its packets are. */
export interface TrackClock {
  readonly id: number;
  readonly timescale: number;
  readonly edits: EditList | undefined;
  /** Whether packets of it are in the tables of the index: these come first, and begin at 0. */
  readonly isTabled: boolean;
}

/** Units of each track at its first packet in the fragments, by the track's number. */
export type FragmentStarts = Map<number, number>;

/** Tracks noted; a fragment may claim any number of them. */
const MAX_TRACKS = 100;

/** @param ticks decode time of the first packet of a fragment, and how much later than that it is played */
export function noteStart(starts: FragmentStarts, trackId: number, ticks: number): void {
  if (!starts.has(trackId) && starts.size < MAX_TRACKS) starts.set(trackId, ticks);
}

/**
 * How much later a track begins than the earliest of its file. Recordings that were cut out of a live stream begin at any time, all their tracks
 * alike: so only the difference counts.
 */
export function lateSeconds(track: TrackClock, all: readonly TrackClock[], starts: FragmentStarts): number {
  const own = startSeconds(track, starts);
  if (own === undefined) return 0;
  const earliest = all.reduce((least, other) => Math.min(least, startSeconds(other, starts) ?? own), own);
  const late = own - earliest;
  return late <= MAX_GAP_SECONDS ? late : 0;
}

/** Undefined where nothing is known of it. */
function startSeconds({ id, timescale, edits, isTabled }: TrackClock, starts: FragmentStarts): number | undefined {
  if (isTabled) return 0;
  const ticks = starts.get(id);
  if (ticks === undefined || timescale <= 0) return undefined;
  // Pictures are decoded before they are played, and a list that cuts the difference off puts the first of them back to where it belongs.
  const list = edits?.kind === 'edits' ? edits : undefined;
  const first = list?.edits.findIndex(({ mediaTime }) => mediaTime >= 0) ?? -1;
  if (!list || first < 0) return ticks / timescale;
  const emptySeconds =
    list.edits.slice(0, first).reduce((sum, { duration }) => sum + duration, 0) / list.movieTimescale;
  return emptySeconds + Math.max(0, ticks - list.edits[first].mediaTime) / timescale;
}
