import { release } from '../audio/memory.ts';
import type { SpeakerCount } from './speaker-count.ts';

/** Frame-wise results, one byte per frame of `resolutionSeconds`, 255 for certainty (confidence: 0…100). */
export interface FrameTracks {
  readonly resolutionSeconds: number;
  /** Calibrated probability, 0…100, that the frame's set of speakers is correct. */
  readonly confidence: Uint8Array;
  /** Probability that at least one person speaks. */
  readonly speech: Uint8Array;
  /** Probability that two or more speak. */
  readonly crosstalk: Uint8Array;
  /** [speakers] probability that each speaks; empty if not requested. */
  readonly speakers: readonly SpeakerTrack[];
}

/** The track of one speaker: in memory, or in stored blocks for a long recording. */
export type SpeakerTrack = Uint8Array | { blocks(): AsyncGenerator<Uint8Array> };

export interface SpeakerTurn {
  /** Index of the speaker: its label's number. */
  readonly speaker: number;
  readonly startSeconds: number;
  readonly endSeconds: number;
  /** From 0; only if the channels of the recording were diarized separately. */
  readonly channel?: number;
}

export interface ScoredTurn extends SpeakerTurn {
  /** [speakers] confidence, 0…100, that each one speaks in this turn. */
  readonly confidence: readonly number[];
}

/** Who spoke when. Times are seconds from the start of the recording, to the millisecond. */
export interface Diarization {
  readonly durationSeconds: number;
  /** Speakers are 0…speakers−1, numbered by first appearance. */
  readonly speakers: number;
  /** By start, then speaker. */
  readonly turns: readonly ScoredTurn[];
  /** Turns without overlap. */
  readonly exclusiveTurns: readonly SpeakerTurn[];
  readonly tracks: FrameTracks;
  /** Absent if the caller gave the number. */
  readonly speakerCount?: SpeakerCount;
  /** [speakers] only on request. */
  readonly voices?: readonly SpeakerVoice[];
  readonly warning?: string;
}

/** The embedding of a speaker over a whole recording. */
export interface SpeakerVoice {
  /** Id of the embedder: voices of different embedders cannot be compared. */
  readonly embeddingId: string;
  /** [dimension] unit length; empty without clean speech of the speaker */
  readonly embedding: Float32Array;
  /** Speech without another speaker. */
  readonly secondsAlone: number;
}

/** `SPEAKER_00`, `SPEAKER_01`, … */
export function speakerLabel(speaker: number): string {
  return `SPEAKER_${String(speaker).padStart(2, '0')}`;
}

/** Optional parts of the output document. */
export interface OutputFlags {
  readonly exclusive?: boolean | null;
  readonly confidence?: boolean | null;
  readonly turnLevelConfidence?: boolean | null;
  readonly speechProbability?: boolean | null;
  readonly crosstalkProbability?: boolean | null;
  readonly speakerProbability?: boolean | null;
}

/** Maximum number of values per chunk, so that a day of audio is never one string. */
const CHUNK_VALUES = 1024;
/** A chunk of long values ends at this size: a turn with confidences for 50 long names may have tens of kilobytes. */
const CHUNK_CHARS = 64 * 1024;

/**
 * The output of a diarize job as JSON text, in chunks. Keys are always in the same order: diarization,
 * exclusiveDiarization, confidence, speechProbability, crosstalkProbability, speakerProbability, speakerCount, warning.
 * `speakerProbability` needs a diarization that was assembled with speaker tracks.
 *
 * @param further more members, each with the comma before it; written before the warning
 */
export async function* writeOutput(
  diarization: Diarization,
  flags: OutputFlags,
  further: Iterable<string> = [],
): AsyncGenerator<string> {
  const { tracks } = diarization;
  const labels = Array.from({ length: diarization.speakers }, (_, speaker) => speakerLabel(speaker));
  const resolution = JSON.stringify(tracks.resolutionSeconds);

  yield '{"diarization":[';
  yield* joined(diarization.turns, ({ speaker, startSeconds, endSeconds, channel, confidence }) =>
    JSON.stringify({
      speaker: labels[speaker],
      start: startSeconds,
      end: endSeconds,
      channel,
      ...(flags.turnLevelConfidence ? { confidence: byLabel(labels, confidence) } : {}),
    }),
  );
  yield ']';
  if (flags.exclusive) {
    yield ',"exclusiveDiarization":[';
    yield* joined(diarization.exclusiveTurns, ({ speaker, startSeconds, endSeconds, channel }) =>
      JSON.stringify({ speaker: labels[speaker], start: startSeconds, end: endSeconds, channel }),
    );
    yield ']';
  }
  if (flags.confidence) {
    yield ',"confidence":{"score":[';
    yield* joined(tracks.confidence, String);
    yield `],"resolution":${resolution}}`;
  }
  if (flags.speechProbability) yield* probability('speechProbability', tracks.speech, resolution);
  if (flags.crosstalkProbability) yield* probability('crosstalkProbability', tracks.crosstalk, resolution);
  if (flags.speakerProbability) {
    yield ',"speakerProbability":{"score":{';
    for (let speaker = 0; speaker < labels.length; speaker++) {
      yield `${speaker > 0 ? ',' : ''}${JSON.stringify(labels[speaker])}:[`;
      const track = tracks.speakers[speaker];
      if (track instanceof Uint8Array) yield* joined(track, probabilityText);
      else yield* joinedBlocks(track.blocks());
      yield ']';
    }
    yield `},"resolution":${resolution}}`;
  }
  if (diarization.speakerCount !== undefined) yield `,"speakerCount":${JSON.stringify(diarization.speakerCount)}`;
  yield* further;
  if (diarization.warning !== undefined) yield `,"warning":${JSON.stringify(diarization.warning)}`;
  yield '}';
}

function* probability(name: string, track: Uint8Array, resolution: string): Generator<string> {
  yield `,"${name}":{"score":[`;
  yield* joined(track, probabilityText);
  yield `],"resolution":${resolution}}`;
}

async function* joinedBlocks(blocks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let isFirst = true;
  for await (const block of blocks) {
    if (!isFirst) yield ',';
    isFirst = false;
    yield* joined(block, probabilityText);
    release(block);
  }
}

/** The texts of all values with commas between them, in chunks of up to 1024 values or about 64 KiB. */
export function* joined<T>(values: ArrayLike<T>, write: (value: T) => string): Generator<string> {
  // One array for all chunks: thousands of growing arrays would outlive the young generation of the heap.
  const texts = new Array<string>(Math.min(CHUNK_VALUES, values.length));
  for (let start = 0; start < values.length; start += texts.length) {
    texts.length = Math.min(CHUNK_VALUES, values.length - start);
    let count = 0;
    for (let chars = 0; count < texts.length && chars < CHUNK_CHARS; count++) {
      texts[count] = write(values[start + count]!);
      chars += texts[count].length;
    }
    texts.length = count;
    yield (start > 0 ? ',' : '') + texts.join(',');
  }
}

const PROBABILITY_TEXTS = Array.from({ length: 256 }, (_, byte) => String(Math.round((1000 * byte) / 255) / 1000));

function probabilityText(byte: number): string {
  return PROBABILITY_TEXTS[byte];
}

/** Values by label. A caller's label may be `__proto__`, which only an own property keeps. */
export function byLabel(labels: readonly string[], values: readonly number[]): Record<string, number> {
  return Object.fromEntries(labels.map((label, index) => [label, values[index]]));
}
