/**
 * Places to start reading from: byte offsets of frames with the number of the frame's first sample. Kept as pairs of
 * differences to the point before (offset, sample), so that the JSON stays short.
 */
export interface SeekTable {
  readonly deltas: readonly number[];
}

export interface SeekPoint {
  readonly offset: number;
  readonly sample: number;
}

/** Points kept at most; past it every other one is dropped and the spacing doubles. */
const MAX_POINTS = 4096;

/** Collects about one point per `intervalSamples`, and fewer for very long recordings. */
export class SeekTableBuilder {
  #points: SeekPoint[] = [];
  #intervalSamples: number;

  constructor(intervalSamples: number) {
    this.#intervalSamples = Math.max(1, intervalSamples);
  }

  /** Frames in order, every one of them. */
  add(offset: number, sample: number): void {
    const last = this.#points.at(-1);
    if (last && sample - last.sample < this.#intervalSamples) return;
    this.#points.push({ offset, sample });
    if (this.#points.length <= MAX_POINTS) return;
    this.#points = this.#points.filter((_, i) => i % 2 === 0);
    this.#intervalSamples *= 2;
  }

  build(): SeekTable {
    const deltas: number[] = [];
    let before: SeekPoint = { offset: 0, sample: 0 };
    for (const point of this.#points) {
      deltas.push(point.offset - before.offset, point.sample - before.sample);
      before = point;
    }
    return { deltas };
  }
}

/** All points, in order. */
export function seekPoints(table: SeekTable): SeekPoint[] {
  const points: SeekPoint[] = [];
  let point: SeekPoint = { offset: 0, sample: 0 };
  for (let i = 0; i + 1 < table.deltas.length; i += 2) {
    point = { offset: point.offset + table.deltas[i], sample: point.sample + table.deltas[i + 1] };
    points.push(point);
  }
  return points;
}

/** The last point at or before `sample`; the first one where there is none. */
export function findSeekPoint(table: SeekTable, sample: number): SeekPoint {
  const { deltas } = table;
  let point: SeekPoint = { offset: deltas[0] ?? 0, sample: deltas[1] ?? 0 };
  for (let i = 2; i + 1 < deltas.length; i += 2) {
    const next = { offset: point.offset + deltas[i], sample: point.sample + deltas[i + 1] };
    if (next.sample > sample) break;
    point = next;
  }
  return point;
}
