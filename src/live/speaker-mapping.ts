import { SAMPLE_RATE_HZ } from '../audio/audio-ports.ts';
import { assignOptimally } from '../diarization/numerics.ts';
import type { Segmenter } from '../diarization/segmenter.ts';
import { LIVE, type LiveTiming } from './live-parameters.ts';
import { type Look, look } from './segmented-window.ts';
import { type Blocks, type Ear, keptBlocks } from './stream-buffer.ts';
import type { Speakers, Voice } from './stream-speakers.ts';
import type { Told } from './turn-events.ts';

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
function seemsNew(local: Local, speakers: Speakers, minNewSeconds: number): boolean {
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
function continuityOf(
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

/** Of less speech than this, in frames, a link says less. */
const CERTAIN_LINK_FRAMES = 25;

/** What was told in the frames so far. */
interface ToldFrames {
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
  const certainty = Math.min(1, total / CERTAIN_LINK_FRAMES);
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

/** What a session knows that tells who somebody is. */
interface Hearing {
  readonly segmenter: Segmenter;
  readonly ear: Ear;
  readonly speakers: Speakers;
  readonly told: Told;
}

/** Which speaker of the stream each local speaker of a look is: by the voice, by what was told of it, and by a look further back for those who seem new. */
export class Naming {
  /** Looks whose voices were kept. */
  #kept = 0;

  constructor(
    private readonly hearing: Hearing,
    private readonly timing: LiveTiming,
    private readonly frameShiftSamples: number,
    private readonly pause: () => Promise<void>,
  ) {}

  get kept(): number {
    return this.#kept;
  }

  restore(kept: number): void {
    this.#kept = kept;
  }

  /**
   * @param decidedUntil frames before this one were told about
   * @param isLast whether nobody may be waited for any more
   * @returns [local speakers] the label of each, −1 for those that are silent or not known yet
   */
  async name(seen: Look, decidedUntil: number, isLast: boolean): Promise<Int32Array> {
    const locals: Local[] = [];
    for (let local = 0; local < seen.speakers; local++) {
      if (seen.sum(local, 0, seen.endFrame) === 0) continue;
      locals.push({
        local,
        voice: await this.#voiceOf(seen, local),
        continuity: continuityOf(seen, local, decidedUntil, this.hearing.speakers.labels, (f, l) =>
          this.hearing.told.has(f, l),
        ),
        mayWait:
          !isLast &&
          this.#pending(seen, local, decidedUntil).length * this.frameShiftSamples < this.timing.maxPendingSamples,
      });
    }
    const asked = await this.#lookFurtherBack(seen, locals, decidedUntil);
    const chosen = mapLocals(asked, this.hearing.speakers, this.timing.minNewSpeakerSeconds);
    const labels = new Int32Array(seen.speakers).fill(-1);
    const isKept = this.hearing.ear.end >= this.#kept * LIVE.itemEverySeconds * SAMPLE_RATE_HZ;
    locals.forEach(({ local, voice }, row) => {
      const label = chosen[row];
      labels[local] = label;
      if (label < 0 || voice === undefined) return;
      this.hearing.speakers.hear(label, voice);
      if (isKept) this.hearing.speakers.keep(label, voice, this.#kept);
    });
    if (isKept) this.#kept++;
    return labels;
  }

  /**
   * Where the speech begins that a local speaker was at in the end of the decided past without being told; `decidedUntil` where there is none. A pause
   * longer than those within a turn ends it: else its turn would begin in the pause, by as much as was said before it.
   */
  pendingSince(seen: Look, local: number, decidedUntil: number): number {
    const longestPause = Math.round((LIVE.minOffSeconds * SAMPLE_RATE_HZ) / this.frameShiftSamples);
    let since = decidedUntil;
    for (const frame of this.#pending(seen, local, decidedUntil)) {
      if (since - frame > longestPause + 1) break;
      since = frame;
    }
    return since;
  }

  /** Frames at the end of the decided past in which a local speaker talked and nobody was told in its place, the latest first. */
  #pending(seen: Look, local: number, decidedUntil: number): number[] {
    const frames: number[] = [];
    const oldest = decidedUntil - Math.round((2 * LIVE.maxPendingSeconds * SAMPLE_RATE_HZ) / this.frameShiftSamples);
    for (let frame = decidedUntil - 1; frame >= Math.max(0, oldest, seen.firstFrame); frame--) {
      if (!seen.isActive(local, frame)) continue;
      if (this.hearing.told.count(frame) >= seen.count(frame)) break;
      frames.push(frame);
    }
    return frames;
  }

  /** How a local speaker sounds in this look; undefined where it hardly speaks alone. */
  async #voiceOf(seen: Look, local: number): Promise<Voice | undefined> {
    const now = this.hearing.ear.end;
    const kept = keptBlocks(this.hearing.ear, now - this.timing.windowSamples, now, this.frameShiftSamples, (frame) =>
      seen.isAlone(local, frame),
    );
    const embedding = kept && (await this.hearing.ear.embed(kept.blocks));
    return embedding && { embedding, seconds: kept.seconds };
  }

  /** The same, with what a look further back says of those who seem new. */
  async #lookFurtherBack(seen: Look, locals: readonly Local[], decidedUntil: number): Promise<Local[]> {
    const { wideSamples, minNewSpeakerSeconds } = this.timing;
    let wide: Look | undefined;
    const asked: Local[] = [];
    for (const local of locals) {
      if (!seemsNew(local, this.hearing.speakers, minNewSpeakerSeconds)) {
        asked.push(local);
        continue;
      }
      if (!wide) {
        const now = this.hearing.ear.end;
        const start = Math.max(now - wideSamples, Math.min(0, now - LIVE.leastWindowSamples));
        const kept = this.hearing.ear.start > 0 ? Math.max(start, this.hearing.ear.start) : start;
        await this.pause();
        wide = await look(this.hearing.segmenter, this.hearing.ear.window(kept, now), kept);
      }
      const links = linksOf(wide, seen, local.local, decidedUntil, this.hearing.speakers.labels, this.hearing.told);
      asked.push({ ...local, links });
    }
    return asked;
  }
}

/** Distance of two moments whose neighbourhood is listened to. */
const GRID_SAMPLES = 8000;

/**
 * Who talks around moments in which one person does, by the sound of that second and a half alone: local speakers of the segmentation are
 * sometimes two people (as `src/diarization/resegmentation.ts` does for recordings).
 */
export class Revision {
  /** By moment on the grid: [labels] probabilities. */
  readonly #posteriors = new Map<number, Float64Array>();

  constructor(
    private readonly speakers: Speakers,
    private readonly frameShiftSamples: number,
  ) {}

  /** Listens around the frames [from, to). */
  async listen(ear: Blocks, seen: Look, from: number, to: number): Promise<void> {
    const labels = this.speakers.inUse();
    if (labels.length < 2) return;
    const first = Math.max(0, Math.floor((from * this.frameShiftSamples) / GRID_SAMPLES));
    const last = Math.ceil((to * this.frameShiftSamples) / GRID_SAMPLES);
    const reach = (LIVE.revisionSeconds / 2) * SAMPLE_RATE_HZ;
    for (let moment = first; moment <= last; moment++) {
      const centre = moment * GRID_SAMPLES;
      const kept = keptBlocks(ear, centre - reach, centre + reach, this.frameShiftSamples, (f) => seen.count(f) === 1);
      const embedding = kept && (await ear.embed(kept.blocks));
      if (embedding !== undefined) this.#posteriors.set(moment, this.#posterior(embedding, labels));
    }
  }

  #posterior(embedding: Float32Array, labels: readonly number[]): Float64Array {
    const out = new Float64Array(this.speakers.labels);
    let sum = 0;
    for (const label of labels) {
      out[label] = Math.exp(this.speakers.similarity(embedding, label) / LIVE.revisionTemperature);
      sum += out[label];
    }
    return out.map((value) => value / sum);
  }

  /** The label of a frame in which one person talks, whom the mapping takes for `mapped`. */
  labelOf(frame: number, mapped: number): number {
    const position = (frame * this.frameShiftSamples) / GRID_SAMPLES;
    const before = Math.floor(position);
    const [left, right] = [this.#posteriors.get(before), this.#posteriors.get(before + 1)];
    if (left === undefined && right === undefined) return mapped;
    const towardsRight = left === undefined ? 1 : right === undefined ? 0 : position - before;
    let best = mapped;
    let highest = -1;
    for (let label = 0; label < this.speakers.labels; label++) {
      const heard = (1 - towardsRight) * (left?.[label] ?? 0) + towardsRight * (right?.[label] ?? 0);
      const value = LIVE.revisionWeight * heard + (label === mapped ? 1 - LIVE.revisionWeight : 0);
      if (value > highest) [best, highest] = [label, value];
    }
    return best;
  }
}
