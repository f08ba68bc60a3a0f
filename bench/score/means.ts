import { type DiarizationError, type LabelledSegment, pool, rate } from './der.ts';

/** Errors of a set, in the order of its recordings. */
export interface SetErrors {
  readonly set: string;
  readonly errors: readonly DiarizationError[];
}

/** In per cent. */
interface MeanOverSets {
  readonly mean: number;
  /** Bounds of the 95 % interval. */
  readonly low: number;
  readonly high: number;
}

/** Excluded from the mean: parameters were chosen on these conversations. */
const ONLY_REPORTED = 'simulated';
const RESAMPLINGS = 2000;

/** DER of a set; for monologues only the confusion, because their references include the pauses. */
export function rateOfSet({ set, errors }: SetErrors): number {
  const { der, confusion } = rate(pool(errors));
  return set === 'monologues' ? confusion : der;
}

/**
 * Mean of the sets' error rates, equally weighted, and its 95 % percentile bootstrap interval (Efron, 1979): the
 * recordings of every set are resampled with replacement 2,000 times, with a fixed seed.
 */
export function meanOverSets(all: readonly SetErrors[]): MeanOverSets {
  const sets = all.filter(({ set }) => set !== ONLY_REPORTED);
  const meanOf = (drawn: readonly SetErrors[]): number =>
    drawn.reduce((total, one) => total + rateOfSet(one), 0) / drawn.length;
  const random = mulberry32(1);
  const means = Array.from({ length: RESAMPLINGS }, () =>
    meanOf(
      sets.map(({ set, errors }) => ({
        set,
        errors: errors.map(() => errors[Math.floor(random() * errors.length)]),
      })),
    ),
  ).sort((a, b) => a - b);
  const at = (share: number): number => means[Math.round(share * (RESAMPLINGS - 1))];
  return { mean: meanOf(sets), low: at(0.025), high: at(0.975) };
}

/** Numbers in [0, 1) from a seed (mulberry32, public domain). */
function mulberry32(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

/** A span `[startMicros, endMicros)` in which no speaker starts or stops in either annotation. */
interface Span {
  readonly startMicros: number;
  readonly endMicros: number;
  /** Active speakers, as indices into the label lists of `sweep`. */
  readonly reference: readonly number[];
  readonly hypothesis: readonly number[];
}

/** Labels in order of first appearance. */
export function labelsOf(segments: readonly LabelledSegment[]): string[] {
  return [...new Set(segments.map((segment) => segment.speaker))];
}

interface Boundary {
  readonly timeMicros: number;
  readonly side: 0 | 1;
  readonly speaker: number;
  readonly change: 1 | -1;
}

function boundaries(segments: readonly LabelledSegment[], labels: readonly string[], side: 0 | 1): Boundary[] {
  const indexOf = new Map(labels.map((label, index) => [label, index]));
  return segments.flatMap(({ speaker: label, startMicros, endMicros }) => {
    const speaker = indexOf.get(label)!;
    return [
      { timeMicros: startMicros, side, speaker, change: 1 as const },
      { timeMicros: endMicros, side, speaker, change: -1 as const },
    ];
  });
}

/**
 * Cuts the time line at every boundary of either annotation and yields the spans with an active speaker. Overlapping
 * segments of a speaker count once.
 */
export function* sweep(
  reference: readonly LabelledSegment[],
  hypothesis: readonly LabelledSegment[],
  referenceLabels: readonly string[] = labelsOf(reference),
  hypothesisLabels: readonly string[] = labelsOf(hypothesis),
): Generator<Span> {
  const events = [...boundaries(reference, referenceLabels, 0), ...boundaries(hypothesis, hypothesisLabels, 1)].sort(
    (a, b) => a.timeMicros - b.timeMicros,
  );
  const depth = [new Array<number>(referenceLabels.length).fill(0), new Array<number>(hypothesisLabels.length).fill(0)];
  const active = (side: 0 | 1): number[] => depth[side].flatMap((count, speaker) => (count > 0 ? [speaker] : []));
  let previousMicros = 0;
  for (const event of events) {
    if (event.timeMicros > previousMicros) {
      const span = {
        startMicros: previousMicros,
        endMicros: event.timeMicros,
        reference: active(0),
        hypothesis: active(1),
      };
      if (span.reference.length + span.hypothesis.length > 0) yield span;
    }
    previousMicros = event.timeMicros;
    depth[event.side][event.speaker] += event.change;
  }
}
