import type { RollcallClient } from '../../client/sdk/client.ts';
import { randomId } from '../../client/sdk/id.ts';
import type { ClientError, JobCreated, JobState, Outcome, Turn } from '../../client/sdk/types.ts';
import { decodeChunks, wavFile } from './decode.ts';
import { aloneRanges, type Range } from './marks.ts';
import type { Voice } from './memory.ts';
import { type Problem, problemOf, problemOfJob } from './problem.ts';

const VOICE_RATE_HZ = 16_000;
/** A voiceprint job accepts at most 30 s. */
const MAX_CLIP_SECONDS = 28;
const MIN_CLIP_SECONDS = 2;
/** Lowest confidence of a match that is suggested. */
const MATCH_THRESHOLD = 50;

export type Answer<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly problem: Problem };

/** A speaker of the recording who matches a known voice. */
export interface Suggestion {
  readonly turns: readonly Turn[];
  readonly name: string;
  /** Confidence of the match, 0 to 100. */
  readonly confidence: number;
}

const refused = (message: string): { ok: false; problem: Problem } => ({
  ok: false,
  problem: { message, details: [] },
});
const failed = (error: ClientError): { ok: false; problem: Problem } => ({ ok: false, problem: problemOf(error) });

/** Creates a WAV file of the longest ranges in which a speaker talks alone, at most 28 s. */
export async function voiceClip(file: Blob, ranges: readonly Range[], speaker: string): Promise<Answer<Blob>> {
  const selected: Range[] = [];
  let seconds = 0;
  for (const range of aloneRanges(ranges, speaker)) {
    if (seconds >= MAX_CLIP_SECONDS) break;
    const end = Math.min(range.end, range.start + MAX_CLIP_SECONDS - seconds);
    selected.push({ ...range, end });
    seconds += end - range.start;
  }
  if (seconds < MIN_CLIP_SECONDS) return refused('This speaker does not talk alone for long enough.');
  selected.sort((a, b) => a.start - b.start);
  const clip: Float32Array[] = [];
  try {
    for await (const { startSeconds, samples } of decodeChunks(file, VOICE_RATE_HZ)) {
      for (const { start, end } of selected) {
        const [from, to] = [start, end].map((at) => Math.round((at - startSeconds) * VOICE_RATE_HZ));
        if (to > 0 && from < samples.length) clip.push(samples.slice(Math.max(0, from), to));
      }
      if (startSeconds + samples.length / VOICE_RATE_HZ > (selected.at(-1)?.end ?? 0)) break;
    }
  } catch {
    return refused('This browser cannot decode the recording. Add the voice from a separate file.');
  }
  return { ok: true, value: wavFile(clip, VOICE_RATE_HZ) };
}

/** Runs a voiceprint job on a recording of one person. */
export async function makeVoiceprint(client: RollcallClient, clip: Blob): Promise<Answer<string>> {
  const stored = await client.upload(`playground/voice-${randomId()}`, clip);
  if (!stored.ok) return failed(stored.error);
  const ended = await endOf(client, await client.voiceprint({ url: stored.value }));
  if (!ended.ok) return ended;
  const { output } = ended.value;
  return output && 'voiceprint' in output
    ? { ok: true, value: output.voiceprint }
    : { ok: false, problem: problemOfJob(ended.value) };
}

/** Compares the speakers of a recording with voices. Runs an identify job, which is billed. */
export async function compareVoices(
  client: RollcallClient,
  url: string,
  voices: readonly Voice[],
  onUpdate: (job: JobState) => void,
): Promise<Answer<Suggestion[]>> {
  const voiceprints = voices.map(({ name, voiceprint }) => ({ label: name, voiceprint }));
  const created = await client.identify({ url, voiceprints, matching: { threshold: MATCH_THRESHOLD } });
  const ended = await endOf(client, created, onUpdate);
  if (!ended.ok) return ended;
  const { output } = ended.value;
  if (!output || !('identification' in output)) return { ok: false, problem: problemOfJob(ended.value) };
  const value = output.voiceprints.flatMap(({ speaker, match, confidence }) => {
    if (match === null) return [];
    const turns = output.diarization.filter((turn) => turn.speaker === speaker);
    return [{ turns, name: match, confidence: confidence[match] ?? 0 }];
  });
  return { ok: true, value };
}

/** Waits for the end of a job. */
async function endOf(
  client: RollcallClient,
  created: Outcome<JobCreated>,
  onUpdate?: (job: JobState) => void,
): Promise<Answer<JobState>> {
  if (!created.ok) return failed(created.error);
  const ended = await client.wait(created.value.jobId, { onUpdate });
  return ended.ok ? ended : failed(ended.error);
}
