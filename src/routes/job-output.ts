import { z } from '@hono/zod-openapi';
import { headerRefs } from '../contract/api-document.ts';
import { successOutputSchemas } from '../contract/jobs.ts';
import { diarizedTranscriptionSchema } from '../contract/openai.ts';
import {
  endingOf,
  OUTPUT_FORMAT_NAMES,
  OUTPUT_FORMATS,
  type OutputFormat,
  outputFormat,
} from '../contract/output-formats.ts';
import { annotationSchema } from '../contract/outputs.ts';
import { endpoint, errorResponses } from './endpoint.ts';
import { jobOfCaller } from './jobs.ts';

/** Documents of the formats that are JSON. */
const JSON_SCHEMAS = [...successOutputSchemas, annotationSchema, diarizedTranscriptionSchema] as const;

/** GET /v1/jobs/{jobId}/output: the output of a success as a file. */
export const jobOutput = endpoint(
  {
    method: 'get',
    path: '/v1/jobs/{jobId}/output',
    operationId: 'getJobOutput',
    summary: 'Download the output of a job',
    request: {
      params: z.object({ jobId: z.string() }),
      query: z.object({ format: z.enum(OUTPUT_FORMAT_NAMES).optional() }),
    },
    responses: {
      200: {
        description: 'The output',
        headers: headerRefs('Content-Disposition'),
        content: {
          ...Object.fromEntries(Object.values(OUTPUT_FORMATS).map((type) => [type, { schema: z.string() }])),
          [OUTPUT_FORMATS.json]: { schema: z.union(JSON_SCHEMAS) },
        },
      },
      ...errorResponses(400, 401, 403, 404),
    },
  },
  'jobs:read',
  async (c) => {
    const { jobs } = c.get('services');
    const job = await jobOfCaller(c);
    if (job?.status !== 'succeeded') return { kind: 'not_found' };
    const asked = c.req.query('format') ?? 'json';
    const format = outputFormat(asked);
    const known: readonly OutputFormat[] = job.kind === 'voiceprint' ? ['json'] : OUTPUT_FORMAT_NAMES;
    const isKnown = format !== undefined && known.includes(format);
    if (!isKnown) {
      // A wrong format of what is not there is still not there: 404 comes before 400.
      const document = await jobs.openOutput(job.id);
      if (!document) return { kind: 'not_found' };
      await document.cancel();
      const message = `must be one of: ${known.join(', ')}`;
      return { kind: 'invalid', errors: [{ field: 'format', message }] };
    }
    return async () => {
      const body = format === 'json' ? await jobs.openOutput(job.id) : await jobs.openTurns(job.id, format);
      if (!body) return { kind: 'not_found' };
      const headers = {
        'Content-Type': OUTPUT_FORMATS[format],
        'Content-Disposition': `attachment; filename="${job.id}.${endingOf(format)}"`,
      };
      if (c.req.method !== 'HEAD') return c.body(body, 200, headers);
      await body.cancel();
      return c.body(null, 200, headers);
    };
  },
);
