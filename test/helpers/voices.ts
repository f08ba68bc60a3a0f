import { readFileSync } from 'node:fs';
import { decodeFile } from '../../client/audio/file.ts';
import type { Turn } from '../../client/sdk/types.ts';
import { audioPorts } from './audio.ts';
import { conversation } from './local-process.ts';
import { readRttm } from './score.ts';
import { wav16 } from './wav.ts';

const SAMPLE_RATE_HZ = 16_000;

/** Reference turns of the conversation fixture or of its first seconds. */
export const conversationTurns = (maxSeconds = Number.POSITIVE_INFINITY): Turn[] =>
  readRttm(readFileSync(conversation.replace(/mp3$/, 'rttm'), 'utf8')).flatMap((turn) =>
    turn.start < maxSeconds ? { ...turn, end: Math.min(turn.end, maxSeconds) } : [],
  );

let decoded: Promise<Float32Array> | undefined;
/** Samples of the conversation fixture or of its first seconds, at 16 kHz. */
export async function conversationSamples(maxSeconds = Number.POSITIVE_INFINITY): Promise<Float32Array> {
  decoded ??= decodeFile(conversation, audioPorts());
  return (await decoded).slice(0, maxSeconds * SAMPLE_RATE_HZ);
}

/** The first seconds of the conversation fixture as a WAV file. */
export const conversationFile = async (seconds: number): Promise<Uint8Array<ArrayBuffer>> =>
  new Uint8Array(wav16(await conversationSamples(seconds), SAMPLE_RATE_HZ));

/**
 * Speech of one speaker of the conversation without overlap, concatenated, as a WAV file of at most `maxSeconds`.
 */
export async function voiceSample(speaker: string, maxSeconds = 12): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(wav16((await speechOf(speaker)).slice(0, maxSeconds * SAMPLE_RATE_HZ), SAMPLE_RATE_HZ));
}

/** Speech of one speaker of the conversation without overlap. */
async function speechOf(speaker: string): Promise<Float32Array> {
  const samples = await conversationSamples();
  const turns = conversationTurns();
  const alone = turns.filter(
    (turn) =>
      turn.speaker === speaker &&
      turns.every((other) => other.speaker === speaker || other.end <= turn.start || other.start >= turn.end),
  );
  return Float32Array.from(
    alone.flatMap(({ start, end }) => [
      ...samples.subarray(Math.round(start * SAMPLE_RATE_HZ), Math.round(end * SAMPLE_RATE_HZ)),
    ]),
  );
}

/**
 * Three people who take turns of 0.6 s, and after 12 s of 2.5 s: at low latency some of the first labels are wrong, and
 * corrected later.
 */
export async function quickExchange(): Promise<{ readonly samples: Float32Array; readonly turns: readonly Turn[] }> {
  const speakers = ['adam', 'beth', 'carl'];
  const voices = await Promise.all(speakers.map(speechOf));
  const used = speakers.map(() => 0);
  const samples = new Float32Array(29.5 * SAMPLE_RATE_HZ);
  const turns: Turn[] = [];
  for (let at = 0; at < samples.length; ) {
    const next = turns.length % speakers.length;
    const length = (at < 12 * SAMPLE_RATE_HZ ? 0.6 : 2.5) * SAMPLE_RATE_HZ;
    samples.set(voices[next].subarray(used[next], used[next] + length), at);
    turns.push({ speaker: speakers[next], start: at / SAMPLE_RATE_HZ, end: (at + length) / SAMPLE_RATE_HZ });
    used[next] += length;
    at += length;
  }
  return { samples, turns };
}
