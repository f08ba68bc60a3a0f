import { z } from '@hono/zod-openapi';
import type { Parsed } from './errors.ts';
import { optionalSpeakerCount } from './fields.ts';
import { speakerCountErrors } from './job-fields.ts';
import { parseBody } from './parse-body.ts';

/** Body of POST /v1/jobs/{jobId}/recount as a caller may send it. */
export const recountBodySchema = z
  .object({
    numSpeakers: optionalSpeakerCount(),
    minSpeakers: optionalSpeakerCount(),
    maxSpeakers: optionalSpeakerCount(),
  })
  .openapi('RecountRequest', { example: { numSpeakers: 3 } });

/** The bounds of a recount; each replaces the job's own. */
export interface RecountRequest {
  readonly numSpeakers: number | undefined;
  readonly minSpeakers: number | undefined;
  readonly maxSpeakers: number | undefined;
}

/** Reads the body of POST /v1/jobs/{jobId}/recount. Reports all faulty fields at once. */
export function parseRecountBody(body: unknown): Parsed<RecountRequest> {
  const parsed = parseBody(body, recountBodySchema, speakerCountErrors);
  if (!parsed.ok) return parsed;
  const { numSpeakers, minSpeakers, maxSpeakers } = parsed.value;
  return {
    ok: true,
    value: {
      numSpeakers: numSpeakers ?? undefined,
      minSpeakers: minSpeakers ?? undefined,
      maxSpeakers: maxSpeakers ?? undefined,
    },
  };
}
