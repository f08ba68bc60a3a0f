import { readFileSync } from 'node:fs';
import { decodeFile } from '../../client/audio/file.ts';
import type { Turn } from '../../client/sdk/types.ts';
import { audioPorts, random } from './audio.ts';
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

/** The same with noise: with a latency of 300 ms some labels are wrong and corrected later. */
export async function noisyConversationSamples(maxSeconds?: number): Promise<Float32Array> {
  const next = random(5);
  return (await conversationSamples(maxSeconds)).map((value) => value + 0.03 * (next() + next() + next() - 1.5));
}

/**
 * Speech of one speaker of the conversation without overlap, concatenated, as a WAV file of at most `maxSeconds`.
 */
export async function voiceSample(speaker: string, maxSeconds = 12): Promise<Uint8Array<ArrayBuffer>> {
  const samples = await conversationSamples();
  const turns = conversationTurns();
  const alone = turns.filter(
    (turn) =>
      turn.speaker === speaker &&
      turns.every((other) => other.speaker === speaker || other.end <= turn.start || other.start >= turn.end),
  );
  const parts = alone.flatMap(({ start, end }) => [
    ...samples.subarray(Math.round(start * SAMPLE_RATE_HZ), Math.round(end * SAMPLE_RATE_HZ)),
  ]);
  return new Uint8Array(wav16(parts.slice(0, maxSeconds * SAMPLE_RATE_HZ), SAMPLE_RATE_HZ));
}
