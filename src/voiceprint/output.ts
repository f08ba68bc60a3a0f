import {
  byLabel,
  type Diarization,
  joined,
  type OutputFlags,
  type SpeakerVoice,
  speakerLabel,
  writeOutput,
} from '../diarization/diarization.ts';
import { hasEnoughSpeech } from './enrol.ts';
import { type SpeakerMatch, turnConfidence } from './match.ts';
import { encodeVoiceprint } from './voiceprint.ts';

/** Member of a diarize output: a voiceprint for each speaker with enough speech. @param voices [speakers] */
export function* voiceprintsMember(voices: readonly SpeakerVoice[]): Generator<string> {
  const prints = voices.flatMap((voice, speaker) =>
    hasEnoughSpeech(voice) ? [{ speaker: speakerLabel(speaker), voiceprint: encodeVoiceprint(voice) }] : [],
  );
  yield ',"voiceprints":[';
  yield* joined(prints, (print) => JSON.stringify(print));
  yield ']';
}

/**
 * The output of an identify job as JSON text, in chunks: that of the diarization with `identification`, a line a turn, and
 * `voiceprints`, a line a diarized speaker.
 *
 * @param matches [speakers]
 * @param labels [voiceprints] the caller's names
 */
export function writeIdentification(
  diarization: Diarization,
  matches: readonly SpeakerMatch[],
  labels: readonly string[],
  flags: OutputFlags,
): AsyncGenerator<string> {
  return writeOutput(diarization, flags, members(diarization, matches, labels, flags));
}

function* members(
  { turns }: Diarization,
  matches: readonly SpeakerMatch[],
  labels: readonly string[],
  flags: OutputFlags,
): Generator<string> {
  const names = matches.map(({ match }) => (match === undefined ? null : labels[match]));
  yield ',"identification":[';
  yield* joined(turns, ({ speaker, startSeconds, endSeconds, confidence }) =>
    JSON.stringify({
      speaker: names[speaker] ?? speakerLabel(speaker),
      start: startSeconds,
      end: endSeconds,
      diarizationSpeaker: speakerLabel(speaker),
      match: names[speaker],
      ...(flags.turnLevelConfidence ? { confidence: byLabel(labels, turnConfidence(confidence, matches)) } : {}),
    }),
  );
  yield '],"voiceprints":[';
  yield* joined(matches, (match) => {
    const speaker = matches.indexOf(match);
    return JSON.stringify({
      speaker: speakerLabel(speaker),
      match: names[speaker],
      confidence: byLabel(labels, match.confidence),
    });
  });
  yield ']';
}
