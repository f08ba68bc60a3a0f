import { z } from '@hono/zod-openapi';

/** A stretch in which one speaker talks; seconds from the start of the audio, at most 3 decimals. */
export const turnSchema = z
  .object({ speaker: z.string().openapi({ example: 'SPEAKER_00' }), start: z.number(), end: z.number() })
  .openapi('Turn');
export type Turn = z.infer<typeof turnSchema>;

/** Each speaker's likelihood of being the one who talks in a turn, 0…100. */
const confidenceBySpeakerSchema = z.record(z.string(), z.number());

const wordSchema = z
  .object({ start: z.number(), end: z.number(), text: z.string(), speaker: z.string() })
  .openapi('TranscribedText');

const framesOf = <T extends z.ZodType>(score: T) =>
  z.object({ score, resolution: z.number().openapi({ description: 'Seconds between two scores.', example: 0.02 }) });

export const diarizeOutputSchema = z
  .object({
    diarization: z.array(turnSchema.extend({ confidence: confidenceBySpeakerSchema.optional() })),
    exclusiveDiarization: z.array(turnSchema).optional(),
    confidence: framesOf(z.array(z.number())).optional(),
    speechProbability: framesOf(z.array(z.number())).optional(),
    crosstalkProbability: framesOf(z.array(z.number())).optional(),
    speakerProbability: framesOf(z.record(z.string(), z.array(z.number()))).optional(),
    wordLevelTranscription: z.array(wordSchema).optional(),
    turnLevelTranscription: z.array(wordSchema).optional(),
    warning: z.string().optional(),
  })
  .openapi('DiarizeOutput');
export type DiarizeOutput = z.infer<typeof diarizeOutputSchema>;

/** Output of a failed or canceled job. */
export const errorOutputSchema = z
  .object({
    error: z.string().openapi({ description: 'One clear sentence.' }),
    code: z.string().openapi({ description: 'Machine-readable reason.', example: 'no_speech' }),
  })
  .openapi('ErrorOutput');
export type ErrorOutput = z.infer<typeof errorOutputSchema>;
