import { concatenated } from '../audio/memory.ts';
/**
 * Local speakers of consecutive windows with their embeddings, as a structure of arrays. Row i of `embeddings` ([count,
 * dimension], unit length) belongs to local speaker `locals[i]` of window `windows[i]`. Rows are in order of window,
 * then local speaker.
 */
export interface LocalSpeakers {
  readonly count: number;
  readonly dimension: number;
  readonly embeddings: Float32Array;
  /** Index on the recording's window grid. */
  readonly windows: Int32Array;
  readonly locals: Uint8Array;
  /** Seconds of speech in the window without overlap. */
  readonly cleanSeconds: Float32Array;
  /** Seconds of speech in the window. */
  readonly activeSeconds: Float32Array;
}

/** Kinds of rows. */
export const KIND = { local: 0, representative: 1 } as const;

/** Local speakers, some of which may be representatives. */
export type Representing = LocalSpeakers & {
  /** [count] of `KIND`; absent if all are local speakers */
  readonly kinds?: Uint8Array;
};

/** Items of the clustering: local speakers or representatives, and subsegments. */
export interface Items {
  readonly count: number;
  readonly dimension: number;
  /** [count, dimension], unit length, before the recording's mean is subtracted */
  readonly embeddings: Float32Array;
  /** [count] distinct seconds of speech of each item: its weight as evidence */
  readonly seconds: Float64Array;
}

/** One local speaker of a window, before the embedding. */
interface SpeakerMask {
  readonly local: number;
  readonly activeFrames: number;
  readonly cleanFrames: number;
  /** [frames], 1 for frames that the embedding is taken from */
  readonly mask: Uint8Array;
}

/**
 * Masks of the local speakers: frames without overlap, or all frames of a speaker with too few of those.
 *
 * @param active [frames, speakers] of 0 and 1
 * @param minActiveFrames speakers with fewer active frames are left out
 */
export function speakerMasks(
  active: Uint8Array,
  speakers: number,
  minActiveFrames: number,
  minCleanFrames: number,
): SpeakerMask[] {
  const frames = active.length / speakers;
  const found: SpeakerMask[] = [];
  for (let local = 0; local < speakers; local++) {
    const all = new Uint8Array(frames);
    const clean = new Uint8Array(frames);
    let activeFrames = 0;
    let cleanFrames = 0;
    for (let frame = 0; frame < frames; frame++) {
      if (active[frame * speakers + local] === 0) continue;
      let atOnce = 0;
      for (let other = 0; other < speakers; other++) atOnce += active[frame * speakers + other];
      all[frame] = 1;
      activeFrames++;
      if (atOnce === 1) {
        clean[frame] = 1;
        cleanFrames++;
      }
    }
    if (activeFrames === 0 || activeFrames < minActiveFrames) continue;
    found.push({
      local,
      activeFrames,
      cleanFrames,
      mask: cleanFrames >= minCleanFrames && cleanFrames > 0 ? clean : all,
    });
  }
  return found;
}

/** Concatenates the rows of several sets. */
export function joinLocalSpeakers(sets: readonly LocalSpeakers[], dimension: number): LocalSpeakers {
  const count = sets.reduce((sum, set) => sum + set.count, 0);
  const each = <T>(part: (set: LocalSpeakers) => T): T[] => sets.map(part);
  return {
    count,
    dimension,
    embeddings: concatenated(
      Float32Array,
      each(({ embeddings }) => embeddings),
    ),
    windows: concatenated(
      Int32Array,
      each(({ windows }) => windows),
    ),
    locals: concatenated(
      Uint8Array,
      each(({ locals }) => locals),
    ),
    cleanSeconds: concatenated(
      Float32Array,
      each(({ cleanSeconds }) => cleanSeconds),
    ),
    activeSeconds: concatenated(
      Float32Array,
      each(({ activeSeconds }) => activeSeconds),
    ),
  };
}

/** The rows [from, to), as views. */
export function rowsBetween(set: LocalSpeakers, from: number, to: number): LocalSpeakers {
  const { dimension } = set;
  return {
    count: to - from,
    dimension,
    embeddings: set.embeddings.subarray(from * dimension, to * dimension),
    windows: set.windows.subarray(from, to),
    locals: set.locals.subarray(from, to),
    cleanSeconds: set.cleanSeconds.subarray(from, to),
    activeSeconds: set.activeSeconds.subarray(from, to),
  };
}

/** Copies of the rows at `indices`, in that order. */
export function select(set: LocalSpeakers, indices: readonly number[]): LocalSpeakers {
  const { dimension } = set;
  const embeddings = new Float32Array(indices.length * dimension);
  indices.forEach((from, to) => {
    embeddings.set(set.embeddings.subarray(from * dimension, (from + 1) * dimension), to * dimension);
  });
  return {
    count: indices.length,
    dimension,
    embeddings,
    windows: Int32Array.from(indices, (index) => set.windows[index]),
    locals: Uint8Array.from(indices, (index) => set.locals[index]),
    cleanSeconds: Float32Array.from(indices, (index) => set.cleanSeconds[index]),
    activeSeconds: Float32Array.from(indices, (index) => set.activeSeconds[index]),
  };
}
