import { assignOptimally } from '../diarization/numerics.ts';
import type { Look } from './look.ts';
import { LIVE } from './parameters.ts';
import type { Speakers } from './speakers.ts';

/** How a local speaker of a look sounds. */
export interface Voice {
  /** [dimension] of unit length */
  readonly embedding: Float32Array;
  /** Speech alone that it was taken of. */
  readonly seconds: number;
}

/** What is known about a local speaker of a look. */
export interface Local {
  readonly local: number;
  readonly voice: Voice | undefined;
  /** [labels] share of its speech in the decided past that was told as each label's */
  readonly continuity: Float64Array;
  /** [labels] share of its speech further back that was told as each label's, see `linksOf`; where it seemed new without */
  readonly links?: Float64Array;
  /** Whether there is time to hear more before it is told as somebody's. */
  readonly mayWait: boolean;
}

/** Score of what cannot be; far below all others, however many are added up. */
const IMPOSSIBLE = -1000;
/** Score of leaving somebody unnamed who has been waited for long enough: anybody is better, if hardly. */
const FORCED = -2;
/** A voice of so many seconds is known as well as it gets; none at all still counts for something. */
const CERTAIN_SECONDS = 1.5;
const LEAST_WEIGHT = 0.2;
/** Somebody who was told as a label for less than this share of the speech has to sound like it. */
const MIN_CONTINUITY = 0.3;

/**
 * Which speaker of the stream each local speaker is: the assignment with the most likeness and continuity, each speaker once. Somebody
 * who is like nobody is new, or left unnamed until there is enough speech to tell. Where the stream may have fewer speakers than there are
 * local ones, who is left over is told as the one that is likest: a bound on their number is no reason to leave speech out.
 *
 * @param minNewSeconds of speech, before which nobody is new
 * @returns [locals] label, or −1 where it is not clear yet
 */
export function mapLocals(locals: readonly Local[], speakers: Speakers, minNewSeconds: number): Int32Array {
  const labels = speakers.inUse();
  // A column for each label, and for each local speaker one to be new and one to be nobody yet.
  const columns = labels.length + 2 * locals.length;
  const scores = new Float64Array(locals.length * columns).fill(IMPOSSIBLE);
  locals.forEach((local, row) => {
    const { voice, continuity } = local;
    const likeness = labels.map((label) => (voice === undefined ? 0 : speakers.similarity(voice.embedding, label)));
    // What is known well decides before what is hardly known.
    const weight = LEAST_WEIGHT + Math.min(1, (voice?.seconds ?? 0) / CERTAIN_SECONDS);
    const at = row * columns;
    labels.forEach((label, column) => {
      const share = continuity[label] ?? 0;
      if (voice === undefined && share < MIN_CONTINUITY) return;
      scores[at + column] = weight * (likeness[column] + LIVE.continuityWeight * share);
    });
    const own = at + labels.length;
    if (mayBeNew(local, speakers, labels, likeness, minNewSeconds))
      scores[own + row] = weight * LIVE.newSpeakerSimilarity;
    scores[own + locals.length + row] = weight * scoreOfNobody(local, minNewSeconds);
  });
  const chosen = assignOptimally(scores, locals.length, columns).map((column) => {
    if (column < labels.length) return labels[column];
    if (column >= labels.length + locals.length || speakers.isFull) return -1;
    const { voice, continuity } = locals[column - labels.length];
    return speakers.add(voice, continuity);
  });
  if (!speakers.isFull || labels.length >= locals.length) return chosen;
  return chosen.map((label, row) => {
    if (label >= 0) return label;
    const own = scores.subarray(row * columns, row * columns + labels.length);
    const likest = own.indexOf(Math.max(...own));
    return likest >= 0 && own[likest] > IMPOSSIBLE ? labels[likest] : -1;
  });
}

/** What it is worth to leave somebody unnamed: as much as a new speaker while more speech may still tell who it is. */
function scoreOfNobody({ voice, continuity, mayWait }: Local, minNewSeconds: number): number {
  if (voice === undefined) return 0;
  const isTooShort = voice.seconds < minNewSeconds;
  return mayWait && isTooShort && !continuity.some((share) => share >= MIN_CONTINUITY)
    ? LIVE.newSpeakerSimilarity
    : FORCED;
}

/** Whether a local speaker may be somebody new: it is like nobody, or there is nobody yet; with enough speech, where there is time to wait for it. */
function mayBeNew(
  { voice, mayWait, links }: Local,
  speakers: Speakers,
  labels: readonly number[],
  likeness: readonly number[],
  minNewSeconds: number,
): boolean {
  if (speakers.isFull || voice === undefined) return false;
  if (voice.seconds < minNewSeconds) return likeness.length === 0 && !mayWait;
  const doubt = LIVE.shortVoiceDoubt * Math.max(0, 1 - voice.seconds / CERTAIN_SECONDS);
  const threshold = LIVE.newSpeakerSimilarity - doubt;
  return likeness.every((value, row) => value < threshold - LIVE.linkWeight * (links?.[labels[row]] ?? 0));
}

/** Whether somebody would be new among others, so that a second opinion is worth having. */
export function seemsNew(local: Local, speakers: Speakers, minNewSeconds: number): boolean {
  const labels = speakers.inUse();
  const { voice } = local;
  if (labels.length === 0 || voice === undefined) return false;
  const likeness = labels.map((label) => speakers.similarity(voice.embedding, label));
  return mayBeNew(local, speakers, labels, likeness, minNewSeconds);
}

/** Of less speech than this, in frames, the continuity counts less. */
const CERTAIN_FRAMES = 25;

/**
 * [labels] shares of a local speaker's speech in frames before `until` that were told as each label's; smaller where there was hardly
 * any speech.
 */
export function continuityOf(
  look: Look,
  local: number,
  until: number,
  labels: number,
  toldAs: (frame: number, label: number) => boolean,
): Float64Array {
  const shares = new Float64Array(labels);
  let total = 0;
  let frames = 0;
  for (let frame = Math.max(0, look.firstFrame); frame < Math.min(until, look.endFrame); frame++) {
    if (!look.isActive(local, frame)) continue;
    // What was said lately says more about who is talking now.
    const weight = 1 + (frame - look.firstFrame) / look.frames;
    total += weight;
    frames++;
    for (let label = 0; label < labels; label++) if (toldAs(frame, label)) shares[label] += weight;
  }
  const certainty = Math.min(1, frames / CERTAIN_FRAMES);
  return total === 0 ? shares : shares.map((share) => (certainty * share) / total);
}
