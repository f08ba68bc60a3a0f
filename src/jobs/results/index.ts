import type { Result } from '../../audio/audio-ports.ts';
import type { DiarizeRequest } from '../../contract/diarize.ts';
import { type Diarization, writeOutput } from '../../diarization/diarization.ts';
import { voiceprintsMember } from '../../voiceprint/identification.ts';
import type { JobRecord } from '../ports.ts';
import { type Assembly, diarizeParts, type JobFault, type OutputText } from './diarized.ts';
import { identification } from './identification.ts';
import { voiceprint } from './voiceprint.ts';

export { type Assembly, diarizeParts, type JobFault, type OutputText } from './diarized.ts';

/** The output document of a job as JSON text in chunks. */
export function resultOf(assembly: Assembly): Promise<Result<OutputText, JobFault>> {
  const { job } = assembly;
  switch (job.kind) {
    case 'diarize':
      return diarization(assembly, job);
    case 'voiceprint':
      return voiceprint(assembly);
    case 'identify':
      return identification(assembly, job);
  }
}

async function diarization(
  assembly: Assembly,
  { request }: Extract<JobRecord, { kind: 'diarize' }>,
): Promise<Result<OutputText, JobFault>> {
  const diarized = await diarizeParts(assembly, { voices: request.embeddings === true });
  return diarized.ok ? { ok: true, value: writeDiarization(diarized.value, request) } : diarized;
}

/** The document of a diarize job, without a transcription. */
export function writeDiarization(diarized: Diarization, request: DiarizeRequest): AsyncGenerator<string> {
  return writeOutput(diarized, request, request.embeddings && voiceprintsMember(diarized.voices ?? []));
}
