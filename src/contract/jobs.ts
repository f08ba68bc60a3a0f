import { z } from '@hono/zod-openapi';
import { diarizeOutputSchema, errorOutputSchema, identifyOutputSchema, voiceprintOutputSchema } from './outputs.ts';

export const CURSOR_RULE = 'must be the nextCursor of the page before, with the same status';

export const jobStatusSchema = z
  .enum(['created', 'pending', 'running', 'succeeded', 'failed', 'canceled'])
  .openapi('JobStatus');

export const jobCreatedSchema = z
  .object({ jobId: z.string(), status: jobStatusSchema, warning: z.string().optional() })
  .openapi('JobCreated', { example: { jobId: '89266a74-7538-4e62-aed4-602f160c518f', status: 'created' } });
export type JobCreated = z.infer<typeof jobCreatedSchema>;

/** Output documents of jobs that succeeded; the most specific schema comes first. */
export const successOutputSchemas = [identifyOutputSchema, diarizeOutputSchema, voiceprintOutputSchema] as const;

/** `output` is an object or absent, never null: clients read its members without a check. */
export const jobResultSchema = z
  .object({
    jobId: z.string(),
    status: jobStatusSchema,
    createdAt: z.iso.datetime(),
    updatedAt: z.iso.datetime(),
    metadata: z.record(z.string(), z.string()).optional(),
    output: z.union([...successOutputSchemas, errorOutputSchema]).optional(),
  })
  .openapi('JobResult', {
    example: {
      jobId: '89266a74-7538-4e62-aed4-602f160c518f',
      status: 'succeeded',
      createdAt: '2026-01-05T09:30:00.123Z',
      updatedAt: '2026-01-05T09:30:07.456Z',
      output: { diarization: [{ speaker: 'SPEAKER_00', start: 0.8, end: 4.62 }] },
    },
  });
export type JobResult = z.infer<typeof jobResultSchema>;

export const jobListSchema = z
  .object({
    items: z.array(z.object({ id: z.string(), status: jobStatusSchema, createdAt: z.iso.datetime() })),
    nextCursor: z.string().nullable().openapi({ description: 'Cursor of the next page; null on the last page.' }),
  })
  .openapi('JobList');
export type JobList = z.infer<typeof jobListSchema>;

/** Query of the list; all values are texts. */
export const jobListQuerySchema = z.object({
  limit: z
    .string()
    // Clients that have only floats write `10.0`.
    .regex(/^([1-9]\d?|100)(\.0+)?$/, 'must be a whole number from 1 to 100')
    .optional()
    .openapi({ type: 'integer', minimum: 1, maximum: 100, default: 10, example: 10 }),
  // Only the form is checked here; the signature depends on the other fields.
  cursor: z
    .string()
    .refine((cursor) => cursor.length <= 1024 && /^[\w-]+\.[\w-]+$/.test(cursor), CURSOR_RULE)
    .optional(),
  status: z
    .enum(jobStatusSchema.options, { error: () => `must be one of: ${jobStatusSchema.options.join(', ')}` })
    .optional(),
});

export const IDEMPOTENCY_KEY_HEADER = 'Idempotency-Key';
export const IDEMPOTENCY_KEY = /^[\x20-\x7e]{1,255}$/;

/** Whether a header's value may be used as an idempotency key: 1 to 255 printable ASCII characters. */
export function isIdempotencyKey(value: string): boolean {
  return IDEMPOTENCY_KEY.test(value);
}
