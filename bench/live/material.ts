import { type LabelledRecording, setsOf } from '../recordings.ts';
import type { LabelledSegment } from '../score/rttm.ts';
import { SAMPLE_RATE_HZ } from './observe.ts';

/** Bound on the audio of each part, from `ROLLCALL_LIVE_MINUTES`; infinite without it. */
export function boundMinutes(text = process.env.ROLLCALL_LIVE_MINUTES): number {
  if (text === undefined || text === '') return Number.POSITIVE_INFINITY;
  const minutes = Number(text);
  if (!(minutes > 0)) throw new Error(`ROLLCALL_LIVE_MINUTES must be a number above 0, not "${text}"`);
  return minutes;
}

/** Recordings of all sets in turn until the bound is reached, at least one of each; in their own order. */
export function within(recordings: readonly LabelledRecording[], minutes: number): LabelledRecording[] {
  const sets = setsOf(recordings).map((set) => recordings.filter((one) => one.set === set));
  const longest = Math.max(0, ...sets.map(({ length }) => length));
  const taken = new Set<LabelledRecording>();
  let samples = 0;
  for (let round = 0; round < longest; round++) {
    for (const set of sets) {
      const recording = set[round];
      if (!recording || (round > 0 && samples >= minutes * 60 * SAMPLE_RATE_HZ)) continue;
      taken.add(recording);
      samples += recording.samples.length;
    }
  }
  return recordings.filter((one) => taken.has(one));
}

export interface JoinedRecording {
  readonly samples: Float32Array;
  readonly reference: readonly LabelledSegment[];
  readonly speakers: number;
}

/**
 * One stream of the recordings one after the other, from the start again when they are used up. A speaker is named after his
 * recording: nobody is taken for another of the same name, and who comes again is the same.
 */
export function joined(recordings: readonly LabelledRecording[], seconds: number): JoinedRecording {
  const samples = new Float32Array(Math.round(seconds * SAMPLE_RATE_HZ));
  const reference: LabelledSegment[] = [];
  let filled = 0;
  for (let next = 0; filled < samples.length; next++) {
    const recording = recordings[next % recordings.length];
    const piece = recording.samples.subarray(0, samples.length - filled);
    const offsetMicros = Math.round((1e6 * filled) / SAMPLE_RATE_HZ);
    const lastMicros = Math.round((1e6 * samples.length) / SAMPLE_RATE_HZ);
    for (const { speaker, startMicros, endMicros } of recording.reference) {
      const segment = {
        speaker: `${recording.set}/${recording.name}/${speaker}`,
        startMicros: startMicros + offsetMicros,
        endMicros: Math.min(lastMicros, endMicros + offsetMicros),
      };
      if (segment.endMicros > segment.startMicros) reference.push(segment);
    }
    samples.set(piece, filled);
    filled += piece.length;
  }
  return { samples, reference, speakers: new Set(reference.map(({ speaker }) => speaker)).size };
}
