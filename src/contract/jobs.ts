import { z } from '@hono/zod-openapi';
import { diarizeOutputSchema, errorOutputSchema, identifyOutputSchema, voiceprintOutputSchema } from './outputs.ts';

export const jobStatusSchema = z
  .enum(['created', 'pending', 'running', 'succeeded', 'failed', 'canceled'])
  .openapi('JobStatus');

export const jobCreatedSchema = z
  .object({ jobId: z.string(), status: jobStatusSchema, warning: z.string().optional() })
  .openapi('JobCreated');
export type JobCreated = z.infer<typeof jobCreatedSchema>;

/** `output` is an object or absent, never null: clients look into it without asking. */
export const jobResultSchema = z
  .object({
    jobId: z.string(),
    status: jobStatusSchema,
    createdAt: z.iso.datetime(),
    updatedAt: z.iso.datetime(),
    metadata: z.record(z.string(), z.string()).optional(),
    output: z.union([identifyOutputSchema, diarizeOutputSchema, voiceprintOutputSchema, errorOutputSchema]).optional(),
  })
  .openapi('JobResult');
export type JobResult = z.infer<typeof jobResultSchema>;

export const IDEMPOTENCY_KEY_HEADER = 'Idempotency-Key';
const IDEMPOTENCY_KEY = /^[\x20-\x7e]{1,255}$/;

/** Whether a header's value may be used as an idempotency key: 1 to 255 printable ASCII characters. */
export function isIdempotencyKey(value: string): boolean {
  return IDEMPOTENCY_KEY.test(value);
}
