import type { Result } from '../../audio/audio-ports.ts';
import type { SpeakerVoice } from '../../diarization/diarization.ts';
import { logOddsOf, matchSpeakers, writeIdentification } from '../../voiceprint/identification.ts';
import { decodeVoiceprint } from '../../voiceprint/voiceprint.ts';
import { readVoiceprints } from '../attachments.ts';
import type { JobRecord } from '../ports.ts';
import { type Assembly, diarizeParts, type JobFault, type OutputText } from './diarized.ts';

/** The output of an identify job. */
export async function identification(
  assembly: Assembly,
  { id, request }: Extract<JobRecord, { kind: 'identify' }>,
): Promise<Result<OutputText, JobFault>> {
  const { ports } = assembly;
  const submitted = await readVoiceprints(ports, id);
  const references = submitted.flatMap(({ voiceprint }) => {
    const decoded = decodeVoiceprint(voiceprint);
    return decoded.ok ? [decoded.value] : [];
  });
  const diarized = await diarizeParts(assembly, { voices: true });
  if (!diarized.ok) return diarized;
  const voices = diarized.value.voices ?? [];
  const embeddingId = voices[0]?.embeddingId ?? '';
  // They were checked when the job was made; the models may have been changed since.
  if (references.length < submitted.length || references.some((reference) => !isComparable(reference, voices))) {
    const message = `The voiceprints were made with other models than ${embeddingId}, which is in use; make them again.`;
    return { ok: false, error: { code: 'voiceprint_outdated', message } };
  }
  const logOdds = logOddsOf(voices, references, ports.identification(embeddingId));
  const matches = matchSpeakers(logOdds, voices.length, references.length, request.matching);
  const labels = submitted.map(({ label }) => label);
  return { ok: true, value: writeIdentification(diarized.value, matches, labels, request) };
}

function isComparable(reference: SpeakerVoice, voices: readonly SpeakerVoice[]): boolean {
  return voices.every(
    ({ embeddingId, embedding }) =>
      reference.embeddingId === embeddingId &&
      (embedding.length === 0 || reference.embedding.length === embedding.length),
  );
}
