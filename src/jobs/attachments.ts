import { isDataUrl } from '../contract/data-url.ts';
import type { SubmittedVoiceprint } from '../contract/identify.ts';
import type { JobSpec } from './app-services.ts';
import { INLINE_URL, inlineUrlKey, voiceprintsKey } from './keys.ts';
import type { JobPorts } from './ports.ts';

/** A job as its row keeps it: what is large or must not outlive the job is an object of its own. */
export type StoredSpec =
  | Extract<JobSpec, { kind: 'diarize' | 'voiceprint' }>
  | {
      readonly kind: 'identify';
      readonly request: Omit<Extract<JobSpec, { kind: 'identify' }>['request'], 'voiceprints'>;
    };

interface Attachment {
  readonly key: string;
  readonly text: string;
}

/**
 * Takes a `data:` URL and voiceprints out of a request. They would not fit into a row or a queue message; and below the job's
 * working data they go when the job ends.
 */
export function detach(
  spec: JobSpec,
  jobId: string,
): { readonly stored: StoredSpec; readonly attachments: Attachment[] } {
  const attachments: Attachment[] = [];
  let { url } = spec.request;
  if (isDataUrl(url)) {
    attachments.push({ key: inlineUrlKey(jobId), text: url });
    url = INLINE_URL;
  }
  if (spec.kind !== 'identify')
    return { stored: { ...spec, request: { ...spec.request, url } } as StoredSpec, attachments };
  const { voiceprints, ...request } = spec.request;
  attachments.push({ key: voiceprintsKey(jobId), text: JSON.stringify(voiceprints) });
  return { stored: { kind: 'identify', request: { ...request, url } }, attachments };
}

/** @throws when the job has ended: its voiceprints are erased */
export async function readVoiceprints(
  ports: Pick<JobPorts, 'objects'>,
  jobId: string,
): Promise<readonly SubmittedVoiceprint[]> {
  const bytes = await ports.objects.get(voiceprintsKey(jobId));
  if (!bytes) throw new Error(`job ${jobId} has no voiceprints`);
  return JSON.parse(new TextDecoder().decode(bytes)) as SubmittedVoiceprint[];
}
