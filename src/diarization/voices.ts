import { release } from '../audio/memory.ts';
import { assignSpeakers } from './clustering/cluster.ts';
import type { ClusterModel } from './clustering/types.ts';
import type { Diarization, SpeakerTurn, SpeakerVoice } from './diarization.ts';
import { type Parts, readAhead } from './parts.ts';
import { SUBSEGMENT_SHIFT_SECONDS } from './subsegments.ts';
import { normalise } from './vectors.ts';

/** Share of the subsegments in a voice where there are any; the rest comes from the local speakers of the windows. */
const SUBSEGMENT_SHARE = 0.5;

/**
 * How each speaker of a recording sounds: the mean of the embeddings of local speakers that were assigned to it, by
 * their speech alone, and of the subsegments whose centre lies where it talks alone. Reads the parts once more.
 *
 * @param clusterOf [speakers] the cluster of each speaker
 */
export async function speakerVoices(
  parts: Parts,
  model: ClusterModel,
  clusterOf: readonly number[],
  embeddingId: string,
  diarization: Pick<Diarization, 'speakers' | 'turns'>,
  pause: () => Promise<void>,
): Promise<SpeakerVoice[]> {
  const alone = turnsAlone(diarization.turns);
  const fromWindows = new Means(diarization.speakers, model.dimension);
  const fromPieces = new Means(diarization.speakers, model.dimension);
  const speakerOf = new Map(clusterOf.map((cluster, speaker) => [cluster, speaker]));
  for await (const { speakers, subsegments } of readAhead(parts.count, parts.readEmbeddings)) {
    const assigned = assignSpeakers(model, speakers).clusterOf;
    for (let row = 0; row < speakers.count; row++) {
      const speaker = speakerOf.get(assigned[row]);
      if (speaker !== undefined) fromWindows.add(speaker, speakers.embeddings, row, speakers.cleanSeconds[row]);
    }
    for (let row = 0; row < subsegments.count; row++) {
      const turn = turnAt(alone, subsegments.indices[row] * SUBSEGMENT_SHIFT_SECONDS);
      if (turn !== undefined) fromPieces.add(turn.speaker, subsegments.embeddings, row, 1);
    }
    release(speakers.embeddings, subsegments.embeddings);
    await pause();
  }
  const seconds = new Float64Array(diarization.speakers);
  for (const turn of alone) seconds[turn.speaker] += turn.endSeconds - turn.startSeconds;
  return Array.from(seconds, (secondsAlone, speaker) => ({
    embeddingId,
    embedding: blend(fromWindows.of(speaker), fromPieces.of(speaker)),
    secondsAlone,
  }));
}

/** Stretches in which exactly one speaker talks, in order; `turns` are sorted by their start. */
export function turnsAlone(turns: readonly SpeakerTurn[]): SpeakerTurn[] {
  const edges = [...new Set(turns.flatMap((turn) => [turn.startSeconds, turn.endSeconds]))].sort((a, b) => a - b);
  const alone: SpeakerTurn[] = [];
  const open = new Set<SpeakerTurn>();
  let next = 0;
  for (let index = 0; index + 1 < edges.length; index++) {
    const [startSeconds, endSeconds] = [edges[index], edges[index + 1]];
    while (next < turns.length && turns[next].startSeconds <= startSeconds) open.add(turns[next++]);
    for (const turn of open) if (turn.endSeconds <= startSeconds) open.delete(turn);
    if (open.size !== 1) continue;
    const [{ speaker }] = open;
    alone.push({ speaker, startSeconds, endSeconds });
  }
  return alone;
}

/** The turn that holds a moment, of turns in order that do not overlap. */
function turnAt(turns: readonly SpeakerTurn[], seconds: number): SpeakerTurn | undefined {
  let low = 0;
  let high = turns.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (turns[middle].startSeconds <= seconds) low = middle + 1;
    else high = middle;
  }
  const turn = turns[low - 1];
  return turn !== undefined && seconds < turn.endSeconds ? turn : undefined;
}

function blend(windows: Float32Array | undefined, pieces: Float32Array | undefined): Float32Array {
  if (windows === undefined || pieces === undefined) return windows ?? pieces ?? new Float32Array(0);
  const blended = windows.map((value, d) => (1 - SUBSEGMENT_SHARE) * value + SUBSEGMENT_SHARE * pieces[d]);
  normalise(blended, 0, blended.length);
  return blended;
}

/** Weighted mean directions, one a speaker. */
class Means {
  readonly #sums: Float64Array;
  readonly #weights: Float64Array;

  constructor(
    speakers: number,
    private readonly dimension: number,
  ) {
    this.#sums = new Float64Array(speakers * dimension);
    this.#weights = new Float64Array(speakers);
  }

  add(speaker: number, embeddings: Float32Array, row: number, weight: number): void {
    this.#weights[speaker] += weight;
    for (let d = 0; d < this.dimension; d++) {
      this.#sums[speaker * this.dimension + d] += weight * embeddings[row * this.dimension + d];
    }
  }

  /** [dimension] of unit length; undefined where nothing was added. */
  of(speaker: number): Float32Array | undefined {
    if (this.#weights[speaker] === 0) return undefined;
    const mean = Float32Array.from(this.#sums.subarray(speaker * this.dimension, (speaker + 1) * this.dimension));
    normalise(mean, 0, this.dimension);
    return mean;
  }
}
