import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { outputSampleCount, probeAudio } from '../../src/audio/index.ts';
import { audioPorts, memorySource, readRange } from './audio.ts';
import { wav16 } from './wav.ts';

const FIXTURE = join(import.meta.dirname, '../fixtures/conversation');
const RATE_HZ = 16000;
const PAUSE_SAMPLES = 0.3 * RATE_HZ;

export const conversationMp3 = (): Uint8Array<ArrayBuffer> => new Uint8Array(readFileSync(`${FIXTURE}.mp3`));

export interface NamedTurn {
  readonly name: string;
  readonly start: number;
  readonly end: number;
}

/** The true turns of the test conversation, in order. */
export function conversationTurns(): NamedTurn[] {
  const lines = readFileSync(`${FIXTURE}.rttm`, 'utf8').trim().split('\n');
  return lines.map((line) => {
    const fields = line.split(' ');
    return { name: fields[7]!, start: Number(fields[3]), end: Number(fields[3]) + Number(fields[4]) };
  });
}

/** Single voices of the test conversation, cut out of its turns. */
export async function conversationVoices() {
  const bytes = conversationMp3();
  const probed = await probeAudio(memorySource(bytes));
  if (!probed.ok) throw new Error(probed.error.message);
  const samples = await readRange(bytes, probed.value, audioPorts(), 0, outputSampleCount(probed.value));
  const turns = conversationTurns();
  return {
    /**
     * A WAV file of the turns in which a person talks alone, from their `first` on, up to `seconds` of speech.
     */
    clip(name: string, seconds: number, first = 0): Uint8Array<ArrayBuffer> {
      const alone = turns.filter(
        (turn) => turn.name === name && turns.every((o) => o === turn || o.start >= turn.end || o.end <= turn.start),
      );
      const pieces: number[] = [];
      let left = Math.round(seconds * RATE_HZ);
      for (const { start, end } of alone.slice(first)) {
        const piece = samples.subarray(Math.round(start * RATE_HZ), Math.round(end * RATE_HZ)).subarray(0, left);
        pieces.push(...piece, ...new Array<number>(PAUSE_SAMPLES).fill(0));
        left -= piece.length;
        if (left <= 0) break;
      }
      return new Uint8Array(wav16(pieces, RATE_HZ));
    },
  };
}
