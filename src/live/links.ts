import type { Look } from './look.ts';

/** Of less speech than this, in frames, a link says less. */
const CERTAIN_FRAMES = 25;

/** What was told in the frames so far. */
export interface ToldFrames {
  has(frame: number, label: number): boolean;
  count(frame: number): number;
}

/**
 * A second opinion on somebody who seems new: of which labels a look that goes further back takes the same person to have been. Short voices are
 * unlike even to themselves; the segmentation hears more than the voice, and it need not be asked but for them.
 *
 * @param wide the look that goes further back
 * @param seen the look in which somebody seems new
 * @param local who
 * @param until frames before this one were told about
 * @returns [labels] share of that person's earlier speech that was told as each label's; smaller where there was hardly any
 */
export function linksOf(
  wide: Look,
  seen: Look,
  local: number,
  until: number,
  labels: number,
  told: ToldFrames,
): Float64Array {
  const same = likest(wide, seen, local);
  const shares = new Float64Array(labels);
  let total = 0;
  for (let frame = Math.max(0, wide.firstFrame); frame < Math.min(until, wide.endFrame); frame++) {
    if (!wide.isAlone(same, frame) || seen.isActive(local, frame) || told.count(frame) === 0) continue;
    total++;
    for (let label = 0; label < labels; label++) if (told.has(frame, label)) shares[label]++;
  }
  const certainty = Math.min(1, total / CERTAIN_FRAMES);
  return total === 0 ? shares : shares.map((share) => (certainty * share) / total);
}

/** The local speaker of `wide` who talks in most of the frames in which `local` does. */
function likest(wide: Look, seen: Look, local: number): number {
  let [best, most] = [0, -1];
  for (let other = 0; other < wide.speakers; other++) {
    let shared = 0;
    for (let frame = seen.firstFrame; frame < Math.min(seen.endFrame, wide.endFrame); frame++) {
      if (seen.isActive(local, frame) && wide.isActive(other, frame)) shared++;
    }
    if (shared > most) [best, most] = [other, shared];
  }
  return best;
}
