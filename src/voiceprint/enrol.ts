import type { Diarization, SpeakerVoice } from '../diarization/diarization.ts';

/** Minimum speech of one person for a voiceprint. */
const MIN_SPEECH_SECONDS = 1;
/** A voiceprint of less speech comes with a warning. */
const GOOD_SPEECH_SECONDS = 5;
/** Speech of other voices below either bound is left out with a warning: it may be an error of the diarization. */
const MAX_OTHER_SECONDS = 2;
const MAX_OTHER_SHARE = 0.2;
/**
 * Voices of one recording with at least these log-odds count as the same person. They share microphone and room, and
 * the log-odds are those of separate recordings: different people of one recording often have more than 0.
 */
const SAME_PERSON_LOG_ODDS = 4;

type EnrolmentFault =
  | { readonly kind: 'too_little_speech'; readonly message: string }
  | { readonly kind: 'several_speakers'; readonly message: string };

export type Enrolment =
  | { readonly ok: true; readonly value: { readonly voice: SpeakerVoice; readonly warning?: string } }
  | { readonly ok: false; readonly error: EnrolmentFault };

/**
 * The voice of the speaker who talks most in a recording of one person. Fails if other people talk too, or if there is
 * too little speech.
 *
 * @param diarization with voices
 * @param sameLogOdds log-odds that two voices of separate recordings are one person's
 */
export function enrol(diarization: Diarization, sameLogOdds: (a: SpeakerVoice, b: SpeakerVoice) => number): Enrolment {
  const voices = diarization.voices ?? [];
  const seconds = secondsBySpeaker(diarization);
  const main = seconds.indexOf(Math.max(...seconds));
  const voice = voices[main];
  if (voice === undefined || !hasEnoughSpeech(voice)) {
    // Rounded down: 0.98 s must not be reported as the required 1.0 s.
    const found = (Math.floor(10 * (voice?.secondsAlone ?? 0)) / 10).toFixed(1);
    const message =
      `The recording has ${found} s of speech of one person; ` + `a voiceprint needs at least ${MIN_SPEECH_SECONDS} s.`;
    return { ok: false, error: { kind: 'too_little_speech', message } };
  }
  const others = voices.filter((other, index) => index !== main && sameLogOdds(voice, other) < SAME_PERSON_LOG_ODDS);
  const otherSeconds = others.reduce((sum, other) => sum + seconds[voices.indexOf(other)], 0);
  const total = seconds.reduce((sum, value) => sum + value, 0);
  if (otherSeconds >= MAX_OTHER_SECONDS && otherSeconds >= MAX_OTHER_SHARE * total) {
    const message =
      `The recording has more than one voice (${otherSeconds.toFixed(1)} s of others); ` +
      'send the voice of one person only.';
    return { ok: false, error: { kind: 'several_speakers', message } };
  }
  const warnings = [];
  if (others.length > 0) {
    warnings.push(`${otherSeconds.toFixed(1)} s of other voices were left out.`);
  }
  if (voice.secondsAlone < GOOD_SPEECH_SECONDS) {
    warnings.push(`Made from ${voice.secondsAlone.toFixed(1)} s of speech; 10 to 30 s match more reliably.`);
  }
  return { ok: true, value: { voice, ...(warnings.length > 0 && { warning: warnings.join(' ') }) } };
}

/** Whether a voice has enough speech for a voiceprint. */
export const hasEnoughSpeech = ({ embedding, secondsAlone }: SpeakerVoice): boolean =>
  embedding.length > 0 && secondsAlone >= MIN_SPEECH_SECONDS;

function secondsBySpeaker({ speakers, turns }: Diarization): number[] {
  const seconds = new Array<number>(speakers).fill(0);
  for (const turn of turns) seconds[turn.speaker] += turn.endSeconds - turn.startSeconds;
  return seconds;
}
