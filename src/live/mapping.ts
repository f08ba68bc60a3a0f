import { assignOptimally } from '../diarization/assignment.ts';
import type { Look } from './look.ts';
import { LIVE } from './parameters.ts';
import { type Piece, secondsOf } from './pieces.ts';
import type { Speakers } from './speakers.ts';

/** What is known about a local speaker of a look. */
export interface Local {
  readonly local: number;
  readonly pieces: readonly Piece[];
  /** [labels] share of its speech in the decided past that was told as each label's */
  readonly continuity: Float64Array;
  /** Seconds for which it has talked without being told as anybody's. */
  readonly pendingSeconds: number;
}

/** Below this a pair is no pair. */
const IMPOSSIBLE = -10;
/** Somebody who was told as a label for less than this share of the speech has to sound like it. */
const MIN_CONTINUITY = 0.3;

/**
 * Which speaker of the stream each local speaker is: the assignment with the most likeness and continuity, each speaker once; somebody who is
 * like nobody is new.
 *
 * @returns [locals] label, or −1 where it is not clear yet
 */
export function mapLocals(locals: readonly Local[], speakers: Speakers): Int32Array {
  const labels = speakers.inUse();
  const columns = labels.length + locals.length;
  const scores = new Float64Array(locals.length * columns).fill(IMPOSSIBLE);
  locals.forEach(({ pieces, continuity }, row) => {
    labels.forEach((label, column) => {
      const share = continuity[label] ?? 0;
      const known = pieces.length > 0 ? speakers.similarity(pieces, label) : 0;
      if (pieces.length === 0 && share < MIN_CONTINUITY) return;
      scores[row * columns + column] = known + LIVE.continuityWeight * share;
    });
    if (mayBeNew(locals[row]!, speakers, labels)) {
      scores[row * columns + labels.length + row] = LIVE.newSpeakerSimilarity;
    }
  });
  const chosen = assignOptimally(scores, locals.length, columns);
  return Int32Array.from(locals, (local, row) => {
    const column = chosen[row]!;
    const score = column < 0 ? IMPOSSIBLE : scores[row * columns + column]!;
    if (score <= IMPOSSIBLE) return -1;
    if (column >= labels.length) return speakers.add();
    const label = labels[column]!;
    return isUnlike(local, label, score) ? -1 : label;
  });
}

/** Whether to wait for more speech: it is hardly like the label, and may turn out to be somebody new. */
function isUnlike({ pieces, continuity, pendingSeconds }: Local, label: number, score: number): boolean {
  if ((continuity[label] ?? 0) >= MIN_CONTINUITY || pendingSeconds >= LIVE.maxPendingSeconds) return false;
  return score < LIVE.newSpeakerSimilarity && secondsOf(pieces) < LIVE.minNewSpeakerSeconds;
}

function mayBeNew({ pieces, continuity }: Local, speakers: Speakers, labels: readonly number[]): boolean {
  if (speakers.isFull || pieces.length === 0) return false;
  if (labels.length === 0) return true;
  if (continuity.some((share) => share >= MIN_CONTINUITY)) return secondsOf(pieces) >= 2 * LIVE.minNewSpeakerSeconds;
  return secondsOf(pieces) >= LIVE.minNewSpeakerSeconds;
}

/** [labels] shares of a local speaker's speech in frames before `until` that were told as each label's. */
export function continuityOf(
  look: Look,
  local: number,
  until: number,
  labels: number,
  toldAs: (frame: number, label: number) => boolean,
): Float64Array {
  const shares = new Float64Array(labels);
  let total = 0;
  for (let frame = Math.max(0, look.firstFrame); frame < Math.min(until, look.endFrame); frame++) {
    if (!look.isActive(local, frame)) continue;
    // What was said lately says more about who is talking now.
    const weight = 1 + (frame - look.firstFrame) / look.frames;
    total += weight;
    for (let label = 0; label < labels; label++) if (toldAs(frame, label)) shares[label]! += weight;
  }
  return total === 0 ? shares : shares.map((share) => share / total);
}
