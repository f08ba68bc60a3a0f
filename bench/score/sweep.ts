import type { LabelledSegment } from './rttm.ts';

/** A stretch `[startMicros, endMicros)` over which nobody starts or stops in either annotation. */
export interface Stretch {
  readonly startMicros: number;
  readonly endMicros: number;
  /** Indices of the speakers who are active, into the label lists that `sweep` was given. */
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
 * Cuts the time line at every boundary of either annotation and yields the stretches in between where somebody
 * is active. A speaker whose segments overlap each other counts once.
 */
export function* sweep(
  reference: readonly LabelledSegment[],
  hypothesis: readonly LabelledSegment[],
  referenceLabels: readonly string[] = labelsOf(reference),
  hypothesisLabels: readonly string[] = labelsOf(hypothesis),
): Generator<Stretch> {
  const events = [...boundaries(reference, referenceLabels, 0), ...boundaries(hypothesis, hypothesisLabels, 1)].sort(
    (a, b) => a.timeMicros - b.timeMicros,
  );
  const depth = [new Array<number>(referenceLabels.length).fill(0), new Array<number>(hypothesisLabels.length).fill(0)];
  const active = (side: 0 | 1): number[] => depth[side].flatMap((count, speaker) => (count > 0 ? [speaker] : []));
  let previousMicros = 0;
  for (const event of events) {
    if (event.timeMicros > previousMicros) {
      const stretch = {
        startMicros: previousMicros,
        endMicros: event.timeMicros,
        reference: active(0),
        hypothesis: active(1),
      };
      if (stretch.reference.length + stretch.hypothesis.length > 0) yield stretch;
    }
    previousMicros = event.timeMicros;
    depth[event.side][event.speaker] += event.change;
  }
}
