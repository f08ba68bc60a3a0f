import { SAMPLE_RATE_HZ } from '../audio/audio-ports.ts';
import { LIVE } from './live-parameters.ts';
import { type BlockSource, keptBlocks } from './stream-buffer.ts';
import type { Speakers } from './stream-speakers.ts';

/** A span that was sent for one speaker: frames [from, until) of the stream. */
interface SentSpan {
  /** Label according to the latest clustering. */
  label: number;
  /**
   * Label that the client has, corrections included. Differs from `label` while that has no public number: only starts
   * give numbers.
   */
  sentAs: number;
  readonly from: number;
  readonly until: number;
  /** [dimension] of unit length in steps of 1/127; empty without enough clean speech. */
  readonly embedding: Int8Array;
  /** Clean speech in the embedding. */
  readonly seconds: number;
}

/** Relabels `label` as `to` in the frames [from, until). */
interface Change {
  readonly label: number;
  readonly to: number;
  readonly from: number;
  readonly until: number;
}

/** As stored in a snapshot: `told` is `sentAs`. */
export interface CorrectionsState {
  readonly pieces: readonly (Omit<SentSpan, 'sentAs'> & { readonly told: number })[];
  readonly open: readonly { readonly label: number; readonly from: number }[];
}

const EMBEDDING_STEPS = 127;
const NO_EMBEDDING = new Int8Array(0);

/**
 * Keeps the sent turns as spans of a few seconds and relabels them after each clustering. That joins a speaker who was
 * sent under two labels and separates two who shared one. Starts and ends of turns do not change.
 */
export class Corrections {
  #spans: SentSpan[] = [];
  /** By label: first frame of the open turn that is not in a span yet. */
  readonly #open = new Map<number, number>();

  constructor(private readonly frameShiftSamples: number) {}

  /** Records the start of a turn. */
  start(label: number, frame: number): void {
    this.#open.set(label, frame);
  }

  /** Records the end of a turn. @param isAlone whether a frame was sent for this label only */
  async end(label: number, frame: number, buffer: BlockSource, isAlone: (frame: number) => boolean): Promise<void> {
    const from = this.#open.get(label);
    this.#open.delete(label);
    if (from !== undefined && from < frame) await this.#add(label, from, frame, buffer, isAlone);
  }

  /** Ends the spans of long open turns while the buffer still has their audio. */
  async cut(until: number, buffer: BlockSource, isAlone: (label: number, frame: number) => boolean): Promise<void> {
    const longest = (LIVE.sentSpanSeconds * SAMPLE_RATE_HZ) / this.frameShiftSamples;
    for (const [label, from] of this.#open) {
      if (until - from < longest) continue;
      this.#open.set(label, until);
      await this.#add(label, from, until, buffer, (frame) => isAlone(label, frame));
    }
  }

  /**
   * Relabels all spans according to the latest clustering.
   *
   * @param hasNumber whether a label has a public number; changes to others wait for a later correction
   * @returns changes for the client, in order of time
   */
  revise(speakers: Speakers, hasNumber: (label: number) => boolean): Change[] {
    const targets = this.#spans.map((span) => closestSpeaker(span, speakers));
    const successors = successorsOf(this.#spans, targets);
    const changes = new Map<number, { label: number; to: number; from: number; until: number }[]>();
    const inUse = new Set(speakers.inUse());
    this.#spans.forEach((span, index) => {
      const { label, sentAs } = span;
      span.label = targets[index] ?? (inUse.has(label) ? label : (successors.get(label) ?? label));
      const to = hasNumber(span.label) ? span.label : sentAs;
      const own = changes.get(sentAs) ?? [];
      changes.set(sentAs, own);
      const last = own.at(-1);
      // There are no other spans of this label between the two: they can be joined.
      if (last?.to === to) {
        // Spans are in the order of their ends, and those corrected to one label may overlap.
        last.from = Math.min(last.from, span.from);
        last.until = Math.max(last.until, span.until);
      } else own.push({ label: sentAs, to, from: span.from, until: span.until });
      span.sentAs = to;
    });
    return [...changes.values()]
      .flat()
      .filter(({ label, to }) => label !== to)
      .sort((a, b) => a.from - b.from || a.label - b.label);
  }

  save(): CorrectionsState {
    const pieces = this.#spans.map(({ label, sentAs, from, until, embedding, seconds }) => {
      return { label, told: sentAs, from, until, embedding, seconds };
    });
    return { pieces, open: Array.from(this.#open, ([label, from]) => ({ label, from })) };
  }

  restore({ pieces, open }: CorrectionsState): void {
    this.#spans = pieces.map(({ told, ...span }) => ({ ...span, sentAs: told }));
    this.#open.clear();
    for (const { label, from } of open) this.#open.set(label, from);
  }

  async #add(label: number, from: number, until: number, buffer: BlockSource, isAlone: (frame: number) => boolean) {
    const shift = this.frameShiftSamples;
    const kept = keptBlocks(buffer, from * shift, until * shift, shift, (f) => f >= from && f < until && isAlone(f));
    const voice = kept && (await buffer.embed(kept.blocks));
    const embedding = voice ? Int8Array.from(voice, (value) => Math.round(EMBEDDING_STEPS * value)) : NO_EMBEDDING;
    this.#spans.push({ label, sentAs: label, from, until, embedding, seconds: kept?.seconds ?? 0 });
    if (this.#spans.length > LIVE.maxSentSpans) this.#spans.shift();
  }
}

/**
 * The speaker that a span is most similar to; a different one only by a margin. Undefined without enough speech. Also
 * undefined for a span of an unused label that is similar to no speaker in use: labels of people who are silent for
 * long become unused too.
 */
function closestSpeaker({ label, embedding, seconds }: SentSpan, speakers: Speakers): number | undefined {
  if (embedding.length === 0) return undefined;
  const inUse = speakers.inUse();
  const voice = Float32Array.from(embedding, (value) => value / EMBEDDING_STEPS);
  let best: number | undefined;
  let highest = Number.NEGATIVE_INFINITY;
  for (const other of inUse) {
    const margin = other === label ? 0 : LIVE.correctionMargin / Math.min(1, seconds);
    const similarity = speakers.similarity(voice, other) - margin;
    if (similarity > highest) [best, highest] = [other, similarity];
  }
  return highest < LIVE.reuseSimilarity && !inUse.includes(label) ? undefined : best;
}

/** For each label the label that most of its speech was moved to, which may be itself. */
function successorsOf(
  spans: readonly SentSpan[],
  targets: readonly (number | undefined)[],
): ReadonlyMap<number, number> {
  const shares = new Map<number, Map<number, number>>();
  spans.forEach(({ label, embedding, seconds }, index) => {
    if (embedding.length === 0) return;
    const to = targets[index] ?? label;
    const own = shares.get(label) ?? new Map<number, number>();
    shares.set(label, own.set(to, (own.get(to) ?? 0) + seconds));
  });
  return new Map(Array.from(shares, ([label, own]) => [label, [...own].sort((a, b) => b[1] - a[1])[0][0]]));
}
