import type { Result } from '../../audio/audio-ports.ts';
import type { VoiceprintOutput } from '../../contract/outputs.ts';
import { enrol } from '../../voiceprint/enrol.ts';
import { logOddsOf } from '../../voiceprint/identification.ts';
import { encodeVoiceprint } from '../../voiceprint/voiceprint.ts';
import { type Assembly, diarizeParts, type JobFault, type OutputText } from './diarized.ts';

/** The output of a voiceprint job. */
export async function voiceprint(assembly: Assembly): Promise<Result<OutputText, JobFault>> {
  const { ports } = assembly;
  const diarized = await diarizeParts(assembly, { voices: true });
  if (!diarized.ok) return diarized;
  const enrolled = enrol(diarized.value, (a, b) => logOddsOf([a], [b], ports.identification(a.embeddingId)).at(0)!);
  if (!enrolled.ok) return { ok: false, error: { code: enrolled.error.kind, message: enrolled.error.message } };
  const { voice, warning } = enrolled.value;
  const warnings = [diarized.value.warning, warning].filter((text) => text !== undefined);
  const output: VoiceprintOutput = {
    voiceprint: encodeVoiceprint(voice),
    ...(warnings.length > 0 && { warning: warnings.join(' ') }),
  };
  return { ok: true, value: [JSON.stringify(output)] };
}
