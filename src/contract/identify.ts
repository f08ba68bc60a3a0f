import { z } from '@hono/zod-openapi';
import type { FieldError, Parsed } from './errors.ts';
import {
  asObject,
  type DiarizationFields,
  diarizationFields,
  diarizationFieldsOf,
  expected,
  type JobFields,
  jobFields,
  jobFieldsOf,
  metadataErrors,
  optionalFlag,
  parseBody,
  requiredText,
  speakerCountErrors,
} from './fields.ts';

export const VOICEPRINT_MAX_CHARS = 20_000;

/** Body of POST /v1/voiceprint. */
export const voiceprintBodySchema = z.object(jobFields()).openapi('VoiceprintRequest');

/** A validated request with its defaults, as a job stores it. */
export type VoiceprintRequest = JobFields;

/** Reads the body of POST /v1/voiceprint. */
export function parseVoiceprintBody(body: unknown): Parsed<VoiceprintRequest> {
  const parsed = parseBody(body, voiceprintBodySchema, (_fields, raw) => metadataErrors(raw.metadata));
  return parsed.ok ? { ok: true, value: jobFieldsOf(parsed.value) } : parsed;
}

const MAX_VOICEPRINTS = 50;
const LABEL_MAX_CHARS = 100;
const DEFAULT_THRESHOLD = 0;

const submittedVoiceprintSchema = z
  .object(
    {
      label: requiredText()
        .max(LABEL_MAX_CHARS, `must be at most ${LABEL_MAX_CHARS} characters`)
        .refine(
          (label) => !/^speaker_/i.test(label),
          'must not start with SPEAKER_: these are the labels of diarization',
        )
        .openapi({
          example: 'Alice',
          description:
            'Name of the speaker; unique in the request. Must not start with SPEAKER_ in upper or lower case.',
        }),
      voiceprint: requiredText()
        .max(VOICEPRINT_MAX_CHARS, `must be at most ${VOICEPRINT_MAX_CHARS} characters`)
        .openapi({ description: 'Output of a voiceprint job.' }),
    },
    expected('an object with label and voiceprint'),
  )
  .openapi('SubmittedVoiceprint');

const matchingSchema = z
  .object(
    {
      threshold: z
        .number(expected('a number'))
        .min(0, 'must be at least 0')
        .max(100, 'must be at most 100')
        .nullish()
        .openapi({ default: DEFAULT_THRESHOLD, description: 'Minimum confidence of a match.' }),
      exclusive: optionalFlag().openapi({
        default: true,
        description: 'Whether a voiceprint matches at most one speaker.',
      }),
    },
    expected('an object'),
  )
  .openapi('Matching');

/** A list of voiceprints with labels; `voiceprintErrors` finds faults that a schema cannot. */
export const submittedVoiceprints = () =>
  z
    .array(submittedVoiceprintSchema, expected('a list'))
    .min(1, 'must hold at least one voiceprint')
    .max(MAX_VOICEPRINTS, `must hold at most ${MAX_VOICEPRINTS} voiceprints`);

/** Body of POST /v1/identify: unknown fields are ignored, null means absent. */
export const identifyBodySchema = z
  .object({
    ...jobFields(),
    ...diarizationFields(),
    voiceprints: submittedVoiceprints(),
    matching: matchingSchema.nullish(),
  })
  .openapi('IdentifyRequest');

export interface SubmittedVoiceprint {
  readonly label: string;
  readonly voiceprint: string;
}

/** A validated request with its defaults. */
export interface IdentifyRequest extends JobFields, DiarizationFields {
  readonly voiceprints: readonly SubmittedVoiceprint[];
  readonly matching: { readonly threshold: number; readonly exclusive: boolean };
}

/**
 * Reads the body of POST /v1/identify. Reports all faulty fields at once.
 *
 * @param voiceprintFault fault of a voiceprint that has the right form; undefined for a valid one
 */
export function parseIdentifyBody(
  body: unknown,
  voiceprintFault: (voiceprint: string) => string | undefined,
): Parsed<IdentifyRequest> {
  const parsed = parseBody(body, identifyBodySchema, (fields, raw) => [
    ...metadataErrors(raw.metadata),
    ...speakerCountErrors(fields),
    ...voiceprintErrors(raw.voiceprints, voiceprintFault),
  ]);
  if (!parsed.ok) return parsed;
  const { voiceprints, matching } = parsed.value;
  return {
    ok: true,
    value: {
      ...jobFieldsOf(parsed.value),
      ...diarizationFieldsOf(parsed.value),
      voiceprints: voiceprints.map(({ label, voiceprint }) => ({ label, voiceprint })),
      matching: { threshold: matching?.threshold ?? DEFAULT_THRESHOLD, exclusive: matching?.exclusive ?? true },
    },
  };
}

/** Repeated labels and invalid voiceprints among the entries that have the right form. */
export function voiceprintErrors(
  voiceprints: unknown,
  fault: (voiceprint: string) => string | undefined,
): FieldError[] {
  if (!Array.isArray(voiceprints)) return [];
  const seen = new Set<string>();
  return voiceprints.slice(0, MAX_VOICEPRINTS).flatMap((item: unknown, index): FieldError[] => {
    const { label, voiceprint } = asObject(item) ?? {};
    const errors: FieldError[] = [];
    if (typeof label === 'string') {
      if (seen.has(label))
        errors.push({ field: `voiceprints.${index}.label`, message: 'must be unique in the request' });
      seen.add(label);
    }
    if (typeof voiceprint !== 'string' || voiceprint === '' || voiceprint.length > VOICEPRINT_MAX_CHARS) return errors;
    const message = fault(voiceprint);
    if (message !== undefined) errors.push({ field: `voiceprints.${index}.voiceprint`, message });
    return errors;
  });
}
