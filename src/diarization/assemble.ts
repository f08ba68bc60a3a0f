import { type Result, SAMPLE_RATE_HZ } from '../audio/audio-ports.ts';
import { release } from '../audio/memory.ts';
import { assignSpeakers, type ClusterModel, findSpeakers, type SpeakerBounds } from './clustering/cluster.ts';
import type { Plda } from './clustering/plda.ts';
import { Representatives } from './clustering/representatives.ts';
import type { Diarization, ScoredTurn, SpeakerTurn, SpeakerVoice } from './diarization.ts';
import type { TrackSpill } from './frame-collector.ts';
import type { Representing } from './local-speakers.ts';
import { normalise } from './numerics.ts';
import { type DiarizationSettings, withTuning } from './parameters.ts';
import { type EmbeddingsSection, type ModelFacts, type Parts, readAhead, SILENCE_DB, totalCounts } from './part.ts';
import { reconstructAtLeast } from './reconstruct.ts';
import { confidenceFactor, type SpeakerCount, speakerCountOf } from './speaker-count.ts';
import {
  joinSubsegments,
  SUBSEGMENT_SHIFT_SECONDS,
  type Subsegments,
  type ThinnedSubsegments,
  thinned,
  windowCount,
} from './windows.ts';

/** Number of speakers that the caller requests. Nulls count as absent. */
export interface SpeakerRequest {
  readonly numSpeakers?: number | null;
  readonly minSpeakers?: number | null;
  readonly maxSpeakers?: number | null;
}

interface AssembleOptions {
  /** Called at intervals during long computations, so that the isolate can serve other requests. */
  readonly pause?: () => Promise<void>;
  /** Whether to keep the probability of each speaker, one byte per 20 ms; true by default. */
  readonly speakerTracks?: boolean;
  /** Storage for the speakers' tracks of a long recording until the output is written; without it, memory. */
  readonly trackSpill?: TrackSpill;
  /** Whether to return each speaker's voice. */
  readonly voices?: boolean;
  /** The PLDA of an embedder by its id; undefined if it has none. */
  readonly pldaOf?: (embeddingId: string) => Promise<Plda | undefined>;
}

interface NoSpeech {
  readonly kind: 'no_speech';
  readonly message: string;
  /** As in `Assembled`. */
  readonly loudestDb: number;
}

interface Assembled extends Diarization {
  /** Mean power of the loudest tenth of a second, dB of full scale. */
  readonly loudestDb: number;
}

/** Maximum number of speakers: time and memory for the frames of a day grow with it. */
const MAX_SPEAKERS = 100;

/**
 * Last step of the pipeline: clusters the local speakers of all parts and reconstructs the turns. It reads the
 * embeddings of all parts first, then each part again with its frames. Memory holds the representatives, the turns and
 * the frame-wise tracks of a day of audio, but only the last hours of the speakers' tracks.
 *
 * @param audio length of the recording at 16 kHz, and in seconds at its own rate if that differs
 */
export async function assemble(
  parts: Parts,
  audio: { readonly totalSamples: number; readonly durationSeconds?: number },
  settings: DiarizationSettings,
  request: SpeakerRequest,
  options: AssembleOptions = {},
): Promise<Result<Assembled, NoSpeech>> {
  const { pause = async () => undefined, speakerTracks = true, pldaOf = async () => undefined } = options;
  const bounds = boundsOf(request);
  const input = await gather(parts, audio.totalSamples, settings, pause);
  if (input === undefined || input.speakers.count === 0) return noSpeech(input?.loudestDb);
  const { facts, tuned, speakers, subsegments, loudestDb } = input;
  const model = await findSpeakers(
    speakers,
    tuned.clustering,
    bounds,
    { step: facts.stepSamples / SAMPLE_RATE_HZ, window: facts.windowSamples / SAMPLE_RATE_HZ },
    { pause, plda: await pldaOf(facts.embeddingId), subsegments, countMargins: true },
  );
  const context = {
    facts,
    settings: tuned,
    totalSamples: audio.totalSamples,
    durationSeconds: audio.durationSeconds ?? audio.totalSamples / SAMPLE_RATE_HZ,
    speakerTracks,
    trackSpill: options.trackSpill,
  };
  const { diarization, clusterOf } = await reconstructAtLeast(parts, bounds.min, model, pause, context);
  if (diarization.turns.length === 0) return noSpeech(loudestDb);
  const warning = warningFor(diarization.speakers, request);
  const speakerCount = model.margins && speakerCountOf(diarization.speakers, model.margins, bounds);
  if (speakerCount) discount(diarization.tracks.confidence, speakerCount);
  const turns = speakerCount ? diarization.turns.map((turn) => discounted(turn, speakerCount)) : diarization.turns;
  const voices = options.voices
    ? await speakerVoices(parts, model, clusterOf, facts.embeddingId, diarization, pause)
    : undefined;
  return {
    ok: true,
    value: {
      ...diarization,
      turns,
      ...(speakerCount && { speakerCount }),
      ...(voices && { voices }),
      ...(warning !== undefined && { warning }),
      loudestDb,
    },
  };
}

/** Confidence of a turn, less the doubt about the number of speakers. */
function discounted(turn: ScoredTurn, count: SpeakerCount): ScoredTurn {
  const factor = confidenceFactor(count);
  return { ...turn, confidence: turn.confidence.map((value) => Math.round(factor * value)) };
}

/** The same for the frames, in place. */
function discount(frames: Uint8Array, count: SpeakerCount): void {
  const factor = confidenceFactor(count);
  for (let frame = 0; frame < frames.length; frame++) frames[frame] = Math.round(factor * frames[frame]);
}

function boundsOf({ numSpeakers, minSpeakers, maxSpeakers }: SpeakerRequest): SpeakerBounds {
  const bounded = (count: number) => Math.min(count, MAX_SPEAKERS);
  if (numSpeakers != null) return { min: bounded(numSpeakers), max: bounded(numSpeakers) };
  return { min: bounded(minSpeakers ?? 1), max: bounded(maxSpeakers ?? MAX_SPEAKERS) };
}

/** Input of the clustering. */
interface ClusteringInput {
  readonly facts: ModelFacts;
  readonly tuned: DiarizationSettings;
  readonly speakers: Representing;
  readonly subsegments: ThinnedSubsegments;
  readonly loudestDb: number;
}

async function gather(
  parts: Parts,
  totalSamples: number,
  settings: DiarizationSettings,
  pause: () => Promise<void>,
): Promise<ClusteringInput | undefined> {
  if (parts.count === 0) return undefined;
  const facts = parts.factsOf(0);
  const tuned = facts.tuned.reduce(withTuning, settings);
  const windows = windowCount({ windowSamples: facts.windowSamples, stepSamples: facts.stepSamples, totalSamples });
  // Thinning depends on the amount of speech, not on the recording's length: hours of silence must not thin the speech.
  const { speakers: speakerCount, subsegments: subsegmentCount } = totalCounts(parts);
  const representatives = new Representatives(facts.dimension, speakerCount, tuned.clustering.maxItems, pause);
  const every = Math.max(1, Math.ceil(subsegmentCount / tuned.clustering.maxSubsegments));
  const subsegments: Subsegments[] = [];
  let nextSubsegment = 0;
  let nextWindow = 0;
  let loudestDb = SILENCE_DB;
  for await (const part of readAhead(parts.count, parts.readEmbeddings)) {
    checkSequence(part, facts, nextWindow);
    nextWindow += part.windowCount;
    await representatives.add(part.speakers);
    subsegments.push(thinned(part.subsegments, every, nextSubsegment));
    nextSubsegment += part.subsegments.count;
    loudestDb = Math.max(loudestDb, part.loudestDb);
    release(part.speakers.embeddings);
    if (every > 1) release(part.subsegments.embeddings);
  }
  if (nextWindow !== windows) throw new Error(`the parts hold ${nextWindow} windows, the recording has ${windows}`);
  return {
    facts,
    tuned,
    speakers: await representatives.finish(),
    subsegments: { ...joinSubsegments(subsegments, facts.dimension), every },
    loudestDb,
  };
}

/** @throws if parts were made by different models or leave a gap: they are not from one recording */
function checkSequence(part: EmbeddingsSection, facts: ModelFacts, nextWindow: number): void {
  const { segmentationId, embeddingId, stepSamples } = part.facts;
  if (
    segmentationId !== facts.segmentationId ||
    embeddingId !== facts.embeddingId ||
    stepSamples !== facts.stepSamples
  ) {
    throw new Error('the parts were made by different models');
  }
  if (part.windowCount > 0 && part.firstWindow !== nextWindow) throw new Error('the parts do not follow each other');
}

function warningFor(found: number, { numSpeakers, minSpeakers }: SpeakerRequest): string | undefined {
  const wanted = numSpeakers ?? minSpeakers ?? 1;
  if (found >= wanted) return undefined;
  const asked = numSpeakers != null ? `${wanted} speakers were` : `at least ${wanted} speakers were`;
  if (wanted > MAX_SPEAKERS)
    return `${asked} requested; at most ${MAX_SPEAKERS} can be distinguished, ${found} were found.`;
  return `${asked} requested; only ${found} could be distinguished.`;
}

function noSpeech(loudestDb = SILENCE_DB): Result<never, NoSpeech> {
  return { ok: false, error: { kind: 'no_speech', message: 'The recording has no speech.', loudestDb } };
}

/** Share of the subsegments in a voice that has any; the rest comes from the local speakers of the windows. */
const SUBSEGMENT_SHARE = 0.5;

/**
 * Voice of each speaker: the mean of the embeddings of its local speakers, weighted by their clean speech, blended with
 * the mean of the subsegments centred where it talks alone. Reads the parts once more.
 *
 * @param clusterOf [speakers] the cluster of each speaker
 */
async function speakerVoices(
  parts: Parts,
  model: ClusterModel,
  clusterOf: readonly number[],
  embeddingId: string,
  diarization: Pick<Diarization, 'speakers' | 'turns'>,
  pause: () => Promise<void>,
): Promise<SpeakerVoice[]> {
  const alone = turnsAlone(diarization.turns);
  const fromWindows = new Means(diarization.speakers, model.dimension);
  const fromSubsegments = new Means(diarization.speakers, model.dimension);
  const speakerOf = new Map(clusterOf.map((cluster, speaker) => [cluster, speaker]));
  for await (const { speakers, subsegments } of readAhead(parts.count, parts.readEmbeddings)) {
    const assigned = assignSpeakers(model, speakers).clusterOf;
    for (let row = 0; row < speakers.count; row++) {
      const speaker = speakerOf.get(assigned[row]);
      if (speaker !== undefined) fromWindows.add(speaker, speakers.embeddings, row, speakers.cleanSeconds[row]);
    }
    for (let row = 0; row < subsegments.count; row++) {
      const turn = turnAt(alone, subsegments.indices[row] * SUBSEGMENT_SHIFT_SECONDS);
      if (turn !== undefined) fromSubsegments.add(turn.speaker, subsegments.embeddings, row, 1);
    }
    release(speakers.embeddings, subsegments.embeddings);
    await pause();
  }
  const seconds = new Float64Array(diarization.speakers);
  for (const turn of alone) seconds[turn.speaker] += turn.endSeconds - turn.startSeconds;
  return Array.from(seconds, (secondsAlone, speaker) => ({
    embeddingId,
    embedding: blend(fromWindows.of(speaker), fromSubsegments.of(speaker)),
    secondsAlone,
  }));
}

/** Spans in which exactly one speaker talks, in order. @param turns sorted by start */
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

/** The turn at a moment. @param turns in order, without overlap */
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

function blend(windows: Float32Array | undefined, subsegments: Float32Array | undefined): Float32Array {
  if (windows === undefined || subsegments === undefined) return windows ?? subsegments ?? new Float32Array(0);
  const blended = windows.map((value, d) => (1 - SUBSEGMENT_SHARE) * value + SUBSEGMENT_SHARE * subsegments[d]);
  normalise(blended, 0, blended.length);
  return blended;
}

/** Weighted mean directions, one per speaker. */
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

  /** [dimension] unit length; undefined if nothing was added. */
  of(speaker: number): Float32Array | undefined {
    if (this.#weights[speaker] === 0) return undefined;
    const mean = Float32Array.from(this.#sums.subarray(speaker * this.dimension, (speaker + 1) * this.dimension));
    normalise(mean, 0, this.dimension);
    return mean;
  }
}
