import { z } from 'zod';
import { MODELS } from './fields.ts';
import { jobStatusSchema } from './jobs.ts';
import { OUTPUT_FORMAT_NAMES } from './output-formats.ts';

/** One JSON-RPC 2.0 message, or a batch. */
export const mcpMessageSchema = z.union([z.object({ jsonrpc: z.literal('2.0') }).loose(), z.array(z.unknown())]);

const url = z.string().describe('Address of the recording: https://…, or media://… of an upload');
const count = (which: string) => z.number().int().min(1).optional().describe(`${which} number of speakers, if known`);
const bounds = { numSpeakers: count('Exact'), minSpeakers: count('Minimum'), maxSpeakers: count('Maximum') };
const jobId = z.string().describe('Id of the job, from the tool that created it');
const model = z.enum(MODELS).optional().describe('precision-2 (default) is the most accurate, community-1 the fastest');

/** Arguments of each tool; the routes that the tools call validate them again. */
export const MCP_ARGUMENTS = {
  diarize: {
    url,
    ...bounds,
    model,
    exclusive: z.boolean().optional().describe('Adds turns without overlap'),
    embeddings: z.boolean().optional().describe('Adds a voiceprint of each speaker, for identify'),
  },
  transcribe: {
    url,
    ...bounds,
    language: z.string().optional().describe('Name or ISO 639 code; detected from the audio if absent'),
  },
  identify: {
    url,
    ...bounds,
    voiceprints: z
      .array(z.object({ label: z.string(), voiceprint: z.string() }))
      .min(1)
      .describe('People who may be in the recording'),
    threshold: z.number().min(0).max(100).optional().describe('Minimum confidence of a match; 50 is a good value'),
  },
  voiceprint: { url: z.string().describe('Address of a recording of one person, at most 30 s'), model },
  recount: { jobId, ...bounds },
  get_job: {
    jobId,
    format: z
      .enum(OUTPUT_FORMAT_NAMES)
      .optional()
      .describe('Format of the output; txt if absent, json for a voiceprint'),
    waitSeconds: z.number().min(0).max(60).optional().describe('How long to wait for the end of the job; 0 if absent'),
  },
  list_jobs: {
    limit: z.number().int().min(1).max(100).optional(),
    status: jobStatusSchema.optional(),
    cursor: z.string().optional().describe('nextCursor of the previous page'),
  },
} as const;
