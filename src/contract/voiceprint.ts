import { z } from '@hono/zod-openapi';
import type { Parsed } from './errors.ts';
import { metadataErrors } from './fields.ts';
import { type JobFields, jobFields, jobFieldsOf } from './job-fields.ts';
import { parseBody } from './parse-body.ts';

export const VOICEPRINT_MAX_CHARS = 20_000;

/** Body of POST /v1/voiceprint as a caller may send it. */
export const voiceprintBodySchema = z.object(jobFields()).openapi('VoiceprintRequest');

/** A validated request with its defaults filled in; what a job stores. */
export type VoiceprintRequest = JobFields;

/** Reads the body of POST /v1/voiceprint. */
export function parseVoiceprintBody(body: unknown): Parsed<VoiceprintRequest> {
  const parsed = parseBody(body, voiceprintBodySchema, (_fields, raw) => metadataErrors(raw.metadata));
  return parsed.ok ? { ok: true, value: jobFieldsOf(parsed.value) } : parsed;
}
