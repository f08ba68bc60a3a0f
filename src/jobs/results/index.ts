import type { Result } from '../../audio/types.ts';
import { writeOutput } from '../../diarization/index.ts';
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
  const diarized = await diarizeParts(assembly, { voices: false });
  return diarized.ok ? { ok: true, value: writeOutput(diarized.value, request) } : diarized;
}
