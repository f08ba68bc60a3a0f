import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { SpeakerVoice } from '../../src/diarization/diarization.ts';
import type { Observed } from './observe.ts';

/** Writes the voices of a half for `training/identification/fit.py`: `voices.json` beside its trials. */
export function dumpVoices(half: string, observed: Observed): void {
  const voiceOf = ({ embedding, secondsAlone }: SpeakerVoice) => ({ secondsAlone, embedding: Array.from(embedding) });
  const document = {
    prints: Object.fromEntries(
      [...observed.prints].flatMap(([name, voice]) => (voice === undefined ? [] : [[name, voiceOf(voice)]])),
    ),
    conversations: observed.conversations.map(({ trial, speakers }) => ({
      enrolled: trial.enrolled,
      speakers: speakers
        .filter(({ voice }) => voice.embedding.length > 0)
        .map(({ voice, truth, seconds }) => ({ ...voiceOf(voice), truth: truth ?? null, seconds })),
    })),
  };
  writeFileSync(join(process.env.ROLLCALL_ENROLLED ?? '.', half, 'voices.json'), JSON.stringify(document));
}
