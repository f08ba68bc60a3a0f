import type { FieldError } from './errors.ts';
import {
  optionalChoice,
  optionalFlag,
  optionalMetadata,
  optionalSpeakerCount,
  optionalWebhook,
  sourceUrl,
} from './fields.ts';

export const MODELS = ['precision-2', 'community-1'] as const;
export type ModelName = (typeof MODELS)[number];
const DEFAULT_MODEL: ModelName = 'precision-2';

/** Fields that the bodies of all job requests have. */
export const jobFields = () => ({
  url: sourceUrl(),
  webhook: optionalWebhook(),
  webhookStatusOnly: optionalFlag(),
  model: optionalChoice(MODELS).openapi({ default: DEFAULT_MODEL }),
  metadata: optionalMetadata(),
});

/** What a validated job request of any kind holds. */
export interface JobFields {
  readonly url: string;
  readonly webhook?: string;
  readonly webhookStatusOnly: boolean;
  readonly model: ModelName;
  readonly metadata?: Readonly<Record<string, string>>;
}

/** For the API document: another spelling of a field, see `parseBody`. */
export const aliasOf = (name: string) => ({ deprecated: true, description: `The same as ${name}, which wins.` });

/** Fields of the jobs that diarize a recording of several speakers. */
export const diarizationFields = () => ({
  numSpeakers: optionalSpeakerCount(),
  minSpeakers: optionalSpeakerCount(),
  maxSpeakers: optionalSpeakerCount(),
  turnLevelConfidence: optionalFlag(),
  turn_level_confidence: optionalFlag().openapi(aliasOf('turnLevelConfidence')),
  exclusive: optionalFlag(),
  confidence: optionalFlag(),
});

/** What a validated request for a diarization holds beside `JobFields`. */
export interface DiarizationFields {
  readonly numSpeakers?: number;
  readonly minSpeakers?: number;
  readonly maxSpeakers?: number;
  readonly turnLevelConfidence: boolean;
  readonly exclusive: boolean;
  readonly confidence: boolean;
}

type Nullish<T> = { readonly [K in keyof T]?: T[K] | null };

/** Defaults in the places of what is null or absent. */
export function jobFieldsOf(body: Nullish<JobFields> & { readonly url: string }): JobFields {
  return {
    url: body.url,
    webhook: body.webhook ?? undefined,
    webhookStatusOnly: body.webhookStatusOnly ?? false,
    model: body.model ?? DEFAULT_MODEL,
    metadata: body.metadata ?? undefined,
  };
}

/** As `jobFieldsOf`, for the fields of jobs that diarize. */
export function diarizationFieldsOf(body: Nullish<DiarizationFields>): DiarizationFields {
  return {
    numSpeakers: body.numSpeakers ?? undefined,
    minSpeakers: body.minSpeakers ?? undefined,
    maxSpeakers: body.maxSpeakers ?? undefined,
    turnLevelConfidence: body.turnLevelConfidence ?? false,
    exclusive: body.exclusive ?? false,
    confidence: body.confidence ?? false,
  };
}

/** Counts of speakers that contradict each other. */
export function speakerCountErrors(body: Record<string, unknown>): FieldError[] {
  const errors: FieldError[] = [];
  const { numSpeakers: count, minSpeakers: min, maxSpeakers: max } = body;
  if (typeof min === 'number' && typeof max === 'number' && min > max) {
    errors.push({ field: 'minSpeakers', message: 'must be less than or equal to maxSpeakers' });
    errors.push({ field: 'maxSpeakers', message: 'must be greater than or equal to minSpeakers' });
  }
  if (typeof count === 'number') {
    if (typeof min === 'number' && count < min) {
      errors.push({ field: 'numSpeakers', message: 'contradicts minSpeakers' });
    }
    if (typeof max === 'number' && count > max) {
      errors.push({ field: 'numSpeakers', message: 'contradicts maxSpeakers' });
    }
  }
  return errors;
}
