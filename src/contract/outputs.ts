import { z } from '@hono/zod-openapi';

/** A span in which one speaker talks; seconds from the start of the audio, at most 3 decimals. */
const turnSchema = z
  .object({ speaker: z.string().openapi({ example: 'SPEAKER_00' }), start: z.number(), end: z.number() })
  .openapi('Turn');
export type Turn = z.infer<typeof turnSchema>;

/** Confidence that each speaker is the one of the turn, 0…100. */
const confidenceBySpeakerSchema = z.record(z.string(), z.number());

const wordSchema = z
  .object({ start: z.number(), end: z.number(), text: z.string(), speaker: z.string() })
  .openapi('TranscribedText');

const framesOf = <T extends z.ZodType>(score: T) =>
  z.object({ score, resolution: z.number().openapi({ description: 'Seconds between two scores.', example: 0.02 }) });

const channel = z.number().int().optional().openapi({ description: 'From 0; only with separate channels.' });

const percent = z.number().int().min(0).max(100);

const speakerCountSchema = z
  .object({
    estimate: z.number().int(),
    confidence: percent.openapi({ description: 'Probability that the estimate is right.' }),
    alternatives: z
      .array(z.object({ count: z.number().int(), confidence: percent }))
      .max(2)
      .openapi({ description: 'Other possible numbers, the most likely first.' }),
  })
  .openapi('SpeakerCount', { description: 'How sure the number of speakers is; absent if the request gave it.' });
export type SpeakerCount = z.infer<typeof speakerCountSchema>;

export const diarizeOutputSchema = z
  .object({
    diarization: z.array(turnSchema.extend({ channel, confidence: confidenceBySpeakerSchema.optional() })),
    exclusiveDiarization: z.array(turnSchema.extend({ channel })).optional(),
    confidence: framesOf(z.array(z.number())).optional(),
    speechProbability: framesOf(z.array(z.number())).optional(),
    crosstalkProbability: framesOf(z.array(z.number())).optional(),
    speakerProbability: framesOf(z.record(z.string(), z.array(z.number()))).optional(),
    speakerCount: speakerCountSchema.optional(),
    voiceprints: z.array(z.object({ speaker: z.string(), voiceprint: z.string() })).optional(),
    wordLevelTranscription: z.array(wordSchema).optional(),
    turnLevelTranscription: z.array(wordSchema).optional(),
    warning: z.string().optional(),
  })
  .openapi('DiarizeOutput');
export type DiarizeOutput = z.infer<typeof diarizeOutputSchema>;

/** Confidence that a speaker or a turn matches each submitted voiceprint, 0…100. */
const confidenceByLabelSchema = z
  .record(z.string(), z.number().min(0).max(100))
  .openapi({ example: { Alice: 87, Bob: 21 } });

export const identifyOutputSchema = z
  .object({
    diarization: z.array(turnSchema.extend({ confidence: confidenceBySpeakerSchema.optional() })),
    exclusiveDiarization: z.array(turnSchema).optional(),
    confidence: framesOf(z.array(z.number())).optional(),
    speakerCount: speakerCountSchema.optional(),
    identification: z.array(
      turnSchema.extend({
        diarizationSpeaker: z.string().openapi({ example: 'SPEAKER_00' }),
        match: z.string().nullable(),
        confidence: confidenceByLabelSchema.optional(),
      }),
    ),
    voiceprints: z.array(
      z.object({ speaker: z.string(), match: z.string().nullable(), confidence: confidenceByLabelSchema }),
    ),
    warning: z.string().optional(),
  })
  .openapi('IdentifyOutput');
export type IdentifyOutput = z.infer<typeof identifyOutputSchema>;

export const voiceprintOutputSchema = z
  .object({
    voiceprint: z.string().openapi({ description: 'Send it to POST /v1/identify; the service keeps no copy.' }),
    warning: z.string().optional(),
  })
  .openapi('VoiceprintOutput');
export type VoiceprintOutput = z.infer<typeof voiceprintOutputSchema>;

/** An `Annotation` in the JSON form of `pyannote.core`. */
export const annotationSchema = z
  .object({
    pyannote: z.literal('Annotation'),
    uri: z.string(),
    content: z.array(
      z.object({
        segment: z.object({ start: z.number(), end: z.number() }),
        track: z.string().openapi({ example: 'T0' }),
        label: z.string().openapi({ example: 'SPEAKER_00' }),
      }),
    ),
  })
  .openapi('Annotation');

/** Output of a failed or canceled job. */
export const errorOutputSchema = z
  .object({
    error: z.string().openapi({ description: 'One clear sentence.' }),
    code: z.string().openapi({ description: 'Machine-readable reason.', example: 'no_speech' }),
  })
  .openapi('ErrorOutput');
export type ErrorOutput = z.infer<typeof errorOutputSchema>;
