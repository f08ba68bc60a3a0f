import type { PlayedSpan } from './container.ts';

/** Most recordings: silence, then the decoded samples from `from` up to `to` or to the end. */
export const oneSpan = (from: number, to?: number, leadSamples = 0): readonly PlayedSpan[] =>
  joined([{ samples: leadSamples }, { position: from, samples: to === undefined ? undefined : to - from }]);

/** Merges adjacent spans and drops empty ones. */
export function joined(spans: readonly PlayedSpan[]): readonly PlayedSpan[] {
  const out: PlayedSpan[] = [];
  for (const span of spans) {
    if (span.samples !== undefined && !(span.samples > 0)) continue;
    const before = out.at(-1);
    const isNext =
      before?.samples !== undefined &&
      (before.position === undefined
        ? span.position === undefined
        : span.position === before.position + before.samples);
    if (before?.samples !== undefined && isNext) {
      const samples = span.samples === undefined ? undefined : before.samples + span.samples;
      out[out.length - 1] = { ...before, ...span, position: before.position, samples };
    } else out.push(span);
  }
  return out;
}

/** Longest block of output, samples. */
const BLOCK_SAMPLES = 1 << 16;

/**
 * Makes the recording from the decoded samples in order: plays the spans and inserts silence. Begins with the sample
 * `startSample` of the recording.
 */
export class SpanPlayer {
  #index = 0;
  /** Samples of the current span that were played, or skipped because they are before `startSample`. */
  #done: number;
  /** End position of the decoded samples. */
  #end = 0;

  constructor(
    private spans: readonly PlayedSpan[],
    startSample: number,
  ) {
    this.#done = startSample;
    // The length of the last audio span is unknown until the end.
    for (const last = this.#lastAudio; this.#index < spans.length && this.#index !== last; this.#index++) {
      const { samples = 0 } = spans[this.#index];
      if (this.#done < samples) break;
      this.#done -= samples;
    }
  }

  /** Total of samples of the recording, independent of `startSample`; valid after `endAt`. */
  get totalSamples(): number {
    return this.spans.reduce((sum, _, i) => sum + this.#lengthOf(i), 0);
  }

  get #lastAudio(): number {
    return this.spans.findLastIndex(({ position }) => position !== undefined);
  }

  /** Samples of a span: the last audio span ends with the decoded samples. */
  #lengthOf(index: number): number {
    const { position = 0, samples = Number.POSITIVE_INFINITY } = this.spans[index];
    return index === this.#lastAudio ? Math.min(samples, Math.max(0, this.#end - position)) : samples;
  }

  /**
   * Plays decoded samples from `position`; each call continues at the end of the previous one. Yields views of the
   * samples, and silence.
   */
  *play(samples: Float32Array, position: number): Generator<Float32Array> {
    const end = position + samples.length;
    for (let span = this.spans[this.#index]; span; span = this.spans[this.#index]) {
      if (span.position === undefined) yield* this.#silence((span.samples ?? 0) - this.#done);
      else {
        const from = span.position + this.#done;
        const until = Math.min(end, span.samples === undefined ? end : span.position + span.samples);
        if (from >= end) return;
        if (until > from) {
          // Samples before the first available one are lost: silence.
          if (from < position) yield* this.#silence(Math.min(position, until) - from);
          const view = samples.subarray(Math.max(from, position) - position, until - position);
          this.#done += view.length;
          if (view.length > 0) yield view;
        }
        if (span.samples === undefined || this.#done < span.samples) return;
      }
      this.#index++;
      this.#done = Math.max(0, this.#done - (span.samples ?? 0));
    }
  }

  /** Sets the end of the decoded samples; must be called before the last of them are played. */
  endAt(position: number): void {
    this.#end = position;
    this.spans = this.spans.map((span) => {
      const { position: from, samples, slackSamples = 0 } = span;
      const isRest = from !== undefined && samples !== undefined && from + samples >= position - slackSamples;
      return isRest && slackSamples > 0 ? { position: from } : span;
    });
  }

  /** Yields silence for the remaining spans, except for the last audio span, which ends with the decoded samples. */
  *finish(): Generator<Float32Array> {
    const last = this.#lastAudio;
    for (; this.#index < this.spans.length; this.#index++) {
      const length = this.#lengthOf(this.#index);
      // `startSample` may be after the end of the audio.
      const skipped = Math.max(0, this.#done - length);
      if (this.#index !== last) yield* this.#silence(length - this.#done);
      this.#done = skipped;
    }
  }

  *#silence(samples: number): Generator<Float32Array> {
    for (let left = samples; left > 0; ) {
      const length = Math.min(left, BLOCK_SAMPLES);
      left -= length;
      this.#done += length;
      yield new Float32Array(length);
    }
  }
}
