import { SAMPLE_RATE_HZ } from '../audio/audio-ports.ts';
import { assignOptimally } from '../diarization/numerics.ts';
import type { Segmenter } from '../diarization/segmenter.ts';
import { LIVE, type LiveTiming } from './live-parameters.ts';
import { type SegmentedWindow, segmentWindow } from './segmented-window.ts';
import { type BlockSource, keptBlocks, type StreamBuffer } from './stream-buffer.ts';
import type { Speakers, Voice } from './stream-speakers.ts';
import type { SentActivity } from './turn-events.ts';

/** A local speaker of a window, as input of the assignment. */
export interface LocalSpeaker {
  readonly local: number;
  readonly voice: Voice | undefined;
  /** [labels] share of its speech in the decided frames that was sent under each label */
  readonly continuity: Float64Array;
  /** [labels] see `priorSharesOf`; only for local speakers that seem new */
  readonly priorShares?: Float64Array;
  /** Whether the latency allows waiting for more speech before a label must be sent. */
  readonly mayWait: boolean;
}

/** Score of a forbidden pair: far below any sum of other scores. */
const FORBIDDEN = -1000;
/** Score of no label when waiting is over: any allowed label is better. */
const OVERDUE = -2;
/** The weight of a local speaker rises with the seconds of its voice, up to this length. */
const CERTAIN_SECONDS = 1.5;
const MIN_WEIGHT = 0.2;
/** A local speaker without a voice gets a label only if at least this share of its speech was sent under it. */
const MIN_CONTINUITY = 0.3;

/**
 * Assigns labels to local speakers, each label once, by similarity of the voice and by continuity (optimal assignment).
 * A local speaker that is similar to no label gets a new one, or none until there is enough speech. If the stream is
 * limited to fewer speakers than there are local ones, the rest get their best label, so that no speech is lost.
 *
 * @param minNewSeconds speech that a new speaker needs
 * @returns [locals] label, −1 while it is undecided
 */
export function assignLabels(locals: readonly LocalSpeaker[], speakers: Speakers, minNewSeconds: number): Int32Array {
  const labels = speakers.inUse();
  // One column per label; then, for each local speaker, one for a new label and one for no label yet.
  const columns = labels.length + 2 * locals.length;
  const scores = new Float64Array(locals.length * columns).fill(FORBIDDEN);
  locals.forEach((local, row) => {
    const { voice, continuity } = local;
    const similarities = labels.map((label) => (voice === undefined ? 0 : speakers.similarity(voice.embedding, label)));
    // Local speakers with more speech decide first.
    const weight = MIN_WEIGHT + Math.min(1, (voice?.seconds ?? 0) / CERTAIN_SECONDS);
    const at = row * columns;
    labels.forEach((label, column) => {
      const share = continuity[label] ?? 0;
      if (voice === undefined && share < MIN_CONTINUITY) return;
      scores[at + column] = weight * (similarities[column] + LIVE.continuityWeight * share);
    });
    const own = at + labels.length;
    if (mayBeNew(local, speakers, labels, similarities, minNewSeconds))
      scores[own + row] = weight * LIVE.newSpeakerSimilarity;
    scores[own + locals.length + row] = weight * unassignedScore(local, minNewSeconds);
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
    const best = own.indexOf(Math.max(...own));
    return best >= 0 && own[best] > FORBIDDEN ? labels[best] : -1;
  });
}

/** Score of no label yet: that of a new speaker while it may wait for more speech. */
function unassignedScore({ voice, continuity, mayWait }: LocalSpeaker, minNewSeconds: number): number {
  if (voice === undefined) return 0;
  const isTooShort = voice.seconds < minNewSeconds;
  return mayWait && isTooShort && !continuity.some((share) => share >= MIN_CONTINUITY)
    ? LIVE.newSpeakerSimilarity
    : OVERDUE;
}

/** Whether a local speaker may get a new label: it is similar to none, and has enough speech or cannot wait. */
function mayBeNew(
  { voice, mayWait, priorShares }: LocalSpeaker,
  speakers: Speakers,
  labels: readonly number[],
  similarities: readonly number[],
  minNewSeconds: number,
): boolean {
  if (speakers.isFull || voice === undefined) return false;
  if (voice.seconds < minNewSeconds) return similarities.length === 0 && !mayWait;
  const penalty = LIVE.shortSpeechPenalty * Math.max(0, 1 - voice.seconds / CERTAIN_SECONDS);
  const threshold = LIVE.newSpeakerSimilarity - penalty;
  return similarities.every(
    (value, row) => value < threshold - LIVE.priorShareWeight * (priorShares?.[labels[row]] ?? 0),
  );
}

/** Whether a local speaker would get a further label: then a longer window is segmented too. */
function seemsNew(local: LocalSpeaker, speakers: Speakers, minNewSeconds: number): boolean {
  const labels = speakers.inUse();
  const { voice } = local;
  if (labels.length === 0 || voice === undefined) return false;
  const similarities = labels.map((label) => speakers.similarity(voice.embedding, label));
  return mayBeNew(local, speakers, labels, similarities, minNewSeconds);
}

/** Shares of fewer frames of speech are scaled down. */
const CERTAIN_FRAMES = 25;

/**
 * Shares of a local speaker's speech before frame `until` that were sent under each label, scaled down for little
 * speech. Late frames count up to twice as much as early ones.
 *
 * @returns [labels] 0…1
 */
function continuityOf(
  window: SegmentedWindow,
  local: number,
  until: number,
  labels: number,
  sentAs: (frame: number, label: number) => boolean,
): Float64Array {
  const shares = new Float64Array(labels);
  let total = 0;
  let frames = 0;
  for (let frame = Math.max(0, window.firstFrame); frame < Math.min(until, window.endFrame); frame++) {
    if (!window.isActive(local, frame)) continue;
    const weight = 1 + (frame - window.firstFrame) / window.frames;
    total += weight;
    frames++;
    for (let label = 0; label < labels; label++) if (sentAs(frame, label)) shares[label] += weight;
  }
  const certainty = Math.min(1, frames / CERTAIN_FRAMES);
  return total === 0 ? shares : shares.map((share) => (certainty * share) / total);
}

/**
 * For a local speaker that seems new: labels of the same person's earlier speech, by the segmentation of a longer
 * window. That is more reliable than embeddings of short speech.
 *
 * @param wide the longer window
 * @param window the window in which `local` seems new
 * @param until frames before this one were sent
 * @returns [labels] share of the person's earlier clean speech that was sent under each label, scaled down for little
 *   speech
 */
export function priorSharesOf(
  wide: SegmentedWindow,
  window: SegmentedWindow,
  local: number,
  until: number,
  labels: number,
  sent: Pick<SentActivity, 'has' | 'count'>,
): Float64Array {
  const same = correspondingLocal(wide, window, local);
  const shares = new Float64Array(labels);
  let total = 0;
  for (let frame = Math.max(0, wide.firstFrame); frame < Math.min(until, wide.endFrame); frame++) {
    if (!wide.isAlone(same, frame) || window.isActive(local, frame) || sent.count(frame) === 0) continue;
    total++;
    for (let label = 0; label < labels; label++) if (sent.has(frame, label)) shares[label]++;
  }
  const certainty = Math.min(1, total / CERTAIN_FRAMES);
  return total === 0 ? shares : shares.map((share) => (certainty * share) / total);
}

/** The local speaker of `wide` that shares the most active frames with `local`. */
function correspondingLocal(wide: SegmentedWindow, window: SegmentedWindow, local: number): number {
  let [best, most] = [0, -1];
  for (let other = 0; other < wide.speakers; other++) {
    let shared = 0;
    for (let frame = window.firstFrame; frame < Math.min(window.endFrame, wide.endFrame); frame++) {
      if (window.isActive(local, frame) && wide.isActive(other, frame)) shared++;
    }
    if (shared > most) [best, most] = [other, shared];
  }
  return best;
}

/** State of a session for the assignment of labels. */
interface StreamState {
  readonly segmenter: Segmenter;
  readonly buffer: StreamBuffer;
  readonly speakers: Speakers;
  readonly sent: SentActivity;
}

/** Assigns labels to the local speakers of each window, by voice, sent labels, and a longer window for new ones. */
export class LabelAssigner {
  /** Number of windows whose voices were kept as items for the clustering. */
  #kept = 0;

  constructor(
    private readonly stream: StreamState,
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
   * @param decidedUntil frames before this one were sent
   * @param isLast whether this is the last window of the stream
   * @returns [local speakers] label, −1 for silent and undecided ones
   */
  async assign(window: SegmentedWindow, decidedUntil: number, isLast: boolean): Promise<Int32Array> {
    const locals: LocalSpeaker[] = [];
    for (let local = 0; local < window.speakers; local++) {
      if (!window.talks(local)) continue;
      locals.push({
        local,
        voice: await this.#voiceOf(window, local),
        continuity: continuityOf(window, local, decidedUntil, this.stream.speakers.labels, (f, l) =>
          this.stream.sent.has(f, l),
        ),
        mayWait:
          !isLast &&
          this.#pending(window, local, decidedUntil).length * this.frameShiftSamples < this.timing.maxPendingSamples,
      });
    }
    const known = await this.#withPriorShares(window, locals, decidedUntil);
    const chosen = assignLabels(known, this.stream.speakers, this.timing.minNewSpeakerSeconds);
    const labels = new Int32Array(window.speakers).fill(-1);
    const isKept = this.stream.buffer.end >= this.#kept * LIVE.itemEverySeconds * SAMPLE_RATE_HZ;
    locals.forEach(({ local, voice }, row) => {
      const label = chosen[row];
      labels[local] = label;
      if (label < 0 || voice === undefined) return;
      this.stream.speakers.addVoice(label, voice);
      if (isKept) this.stream.speakers.addItem(label, voice, this.#kept);
    });
    if (isKept) this.#kept++;
    return labels;
  }

  /**
   * First frame of a local speaker's unsent speech at the end of the decided frames; `decidedUntil` without unsent
   * speech. The speech must not contain a pause longer than within a turn: the turn would start in the pause.
   */
  pendingSince(window: SegmentedWindow, local: number, decidedUntil: number): number {
    const longestPause = Math.round((LIVE.minOffSeconds * SAMPLE_RATE_HZ) / this.frameShiftSamples);
    let since = decidedUntil;
    for (const frame of this.#pending(window, local, decidedUntil)) {
      if (since - frame > longestPause + 1) break;
      since = frame;
    }
    return since;
  }

  /** Decided frames, latest first, in which a local speaker talked and not all speakers were sent. */
  #pending(window: SegmentedWindow, local: number, decidedUntil: number): number[] {
    const frames: number[] = [];
    const oldest = decidedUntil - Math.round((2 * LIVE.maxPendingSeconds * SAMPLE_RATE_HZ) / this.frameShiftSamples);
    for (let frame = decidedUntil - 1; frame >= Math.max(0, oldest, window.firstFrame); frame--) {
      if (!window.isActive(local, frame)) continue;
      if (this.stream.sent.count(frame) >= window.count(frame)) break;
      frames.push(frame);
    }
    return frames;
  }

  /** Voice of a local speaker in this window; undefined with too little clean speech. */
  async #voiceOf(window: SegmentedWindow, local: number): Promise<Voice | undefined> {
    const now = this.stream.buffer.end;
    const kept = keptBlocks(this.stream.buffer, now - this.timing.windowSamples, now, this.frameShiftSamples, (frame) =>
      window.isAlone(local, frame),
    );
    const embedding = kept && (await this.stream.buffer.embed(kept.blocks));
    return embedding && { embedding, seconds: kept.seconds };
  }

  /** Adds `priorShares` to the local speakers that seem new. */
  async #withPriorShares(
    window: SegmentedWindow,
    locals: readonly LocalSpeaker[],
    decidedUntil: number,
  ): Promise<LocalSpeaker[]> {
    const { wideSamples, minNewSpeakerSeconds } = this.timing;
    let wide: SegmentedWindow | undefined;
    const result: LocalSpeaker[] = [];
    for (const local of locals) {
      if (!seemsNew(local, this.stream.speakers, minNewSpeakerSeconds)) {
        result.push(local);
        continue;
      }
      if (!wide) {
        const now = this.stream.buffer.end;
        const start = Math.max(now - wideSamples, Math.min(0, now - LIVE.minWindowSamples));
        const from = this.stream.buffer.start > 0 ? Math.max(start, this.stream.buffer.start) : start;
        await this.pause();
        wide = await segmentWindow(this.stream.segmenter, this.stream.buffer.samples(from, now), from);
      }
      const { speakers, sent } = this.stream;
      const priorShares = priorSharesOf(wide, window, local.local, decidedUntil, speakers.labels, sent);
      result.push({ ...local, priorShares });
    }
    return result;
  }
}

/** Distance of two embedding centres. */
const GRID_SAMPLES = 8000;

/**
 * Corrects the speaker of single-speaker frames by embeddings of 1.5 s, because a local speaker of the segmentation may
 * be two people. `src/diarization/resegmentation.ts` does the same for recordings.
 */
export class LiveResegmentation {
  /** By index of the centre on the grid: [labels] probabilities. */
  readonly #posteriors = new Map<number, Float64Array>();

  constructor(
    private readonly speakers: Speakers,
    private readonly frameShiftSamples: number,
  ) {}

  /** Embeds the speech around the frames [from, to). */
  async update(buffer: BlockSource, window: SegmentedWindow, from: number, to: number): Promise<void> {
    const labels = this.speakers.inUse();
    if (labels.length < 2) return;
    const first = Math.max(0, Math.floor((from * this.frameShiftSamples) / GRID_SAMPLES));
    const last = Math.ceil((to * this.frameShiftSamples) / GRID_SAMPLES);
    const reach = (LIVE.revisionSeconds / 2) * SAMPLE_RATE_HZ;
    for (let gridIndex = first; gridIndex <= last; gridIndex++) {
      const centre = gridIndex * GRID_SAMPLES;
      const kept = keptBlocks(
        buffer,
        centre - reach,
        centre + reach,
        this.frameShiftSamples,
        (f) => window.count(f) === 1,
      );
      const embedding = kept && (await buffer.embed(kept.blocks));
      if (embedding !== undefined) this.#posteriors.set(gridIndex, this.#posterior(embedding, labels));
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

  /** Label of a single-speaker frame. @param mapped label of its local speaker */
  labelOf(frame: number, mapped: number): number {
    const position = (frame * this.frameShiftSamples) / GRID_SAMPLES;
    const before = Math.floor(position);
    const [left, right] = [this.#posteriors.get(before), this.#posteriors.get(before + 1)];
    if (left === undefined && right === undefined) return mapped;
    const towardsRight = left === undefined ? 1 : right === undefined ? 0 : position - before;
    let best = mapped;
    let highest = -1;
    for (let label = 0; label < this.speakers.labels; label++) {
      const posterior = (1 - towardsRight) * (left?.[label] ?? 0) + towardsRight * (right?.[label] ?? 0);
      const value = LIVE.revisionWeight * posterior + (label === mapped ? 1 - LIVE.revisionWeight : 0);
      if (value > highest) [best, highest] = [label, value];
    }
    return best;
  }
}
