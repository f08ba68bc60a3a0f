import { z } from 'zod';
import { TRANSCRIPTION_MODEL_ALIASES, TRANSCRIPTION_MODELS, type TranscriptionModel } from './contract/languages.ts';
import type { LiveTimes } from './jobs/live-ports.ts';
import { DEFAULT_WORK_HOURS } from './platform/d1/job-rows.ts';
import { JURISDICTIONS, type Jurisdiction } from './platform/jurisdiction.ts';
import type { S3Credentials } from './platform/media-store.ts';
import type { CopyRpc, LiveRpc, ObjectNamespace, ProgressRpc } from './platform/object-stubs.ts';
import type { OpenAiEngine } from './platform/openai-engine.ts';
import type { AiBinding } from './platform/workers-ai-engine.ts';

/** Bindings and variables of the Worker of live streams (`wrangler.live.toml`). The other Workers have them too. */
export interface LiveEnv {
  readonly DB: D1Database;
  readonly BUCKET: R2Bucket;
  readonly SIGNING_KEY: string;
  /** The previous signing key: what it signed is still accepted. */
  readonly SIGNING_KEY_PREVIOUS?: string;
  readonly LIVE_TOKEN_SECONDS?: string;
  readonly LIVE_IDLE_SECONDS?: string;
  readonly LIVE_MAX_SECONDS?: string;
  readonly LIVE_CONNECTED_SECONDS?: string;
  readonly LIVE_RESUME_SECONDS?: string;
  readonly LIVE_CREDIT_SECONDS?: string;
}

/** Common to the Workers of the HTTP API (`wrangler.toml`) and of batch jobs (`wrangler.jobs.toml`). */
export interface Env extends LiveEnv {
  readonly INGEST: Queue<unknown>;
  readonly JOBS: Queue<unknown>;
  readonly PRIORITY: Queue<unknown>;
  readonly TRANSCRIPTS: Queue<unknown>;
  readonly WEBHOOKS: Queue<unknown>;
  /** Further queues of a kind: `JOBS_2`, `JOBS_3` … (`queueSet`). */
  readonly [further: `${'INGEST' | 'JOBS' | 'PRIORITY' | 'TRANSCRIPTS' | 'WEBHOOKS'}_${number}`]:
    | Queue<unknown>
    | undefined;
  readonly JOB_PROGRESS: ObjectNamespace<ProgressRpc>;
  /** Jurisdiction of Durable Objects and bucket; chosen at the first deployment and never changed. */
  readonly JURISDICTION?: string;
  readonly OUTPUT_TTL_SECONDS?: string;
  readonly WORK_HOURS_PER_ACCOUNT?: string;
  readonly ALLOW_LOOPBACK?: string;
  readonly R2_ACCOUNT_ID?: string;
  readonly R2_ACCESS_KEY_ID?: string;
  readonly R2_SECRET_ACCESS_KEY?: string;
  readonly R2_BUCKET_NAME?: string;
  /** Engine of both models; with `_` and a model's name appended (`engineVariable`), the engine of that model. */
  readonly ROLLCALL_ASR_URL?: string;
  readonly ROLLCALL_ASR_MODEL?: string;
  readonly ROLLCALL_ASR_KEY?: string;
  /** Binding of Workers AI, only in deployments. */
  readonly AI?: AiBinding;
}

export interface ApiEnv extends Env {
  readonly ACCOUNT_QUOTA: DurableObjectNamespace;
  readonly LIVE_STREAM: ObjectNamespace<LiveRpc>;
  readonly CLIENT_FLOOD?: RateLimit;
  readonly KEY_FLOOD?: RateLimit;
}

export interface JobsEnv extends Env {
  readonly SOURCE_COPY: ObjectNamespace<CopyRpc>;
}

/** A time that a deployment can shorten but not lengthen. */
const secondsUpTo = (max: number) => z.coerce.number().int().positive().max(max).default(max);

/** An empty variable counts as unset. */
const optionalVariable = (pattern: RegExp, rule: string) =>
  z
    .string()
    .optional()
    .transform((text) => text || undefined)
    .refine((text) => text === undefined || pattern.test(text), rule);

const R2_VARIABLES = ['R2_ACCOUNT_ID', 'R2_ACCESS_KEY_ID', 'R2_SECRET_ACCESS_KEY', 'R2_BUCKET_NAME'] as const;

const signingKeySchema = z.base64().refine((key) => key.length >= 43, 'at least 32 bytes, base64');

const liveSchema = z.object({
  SIGNING_KEY: signingKeySchema,
  SIGNING_KEY_PREVIOUS: z.literal('').or(signingKeySchema).optional(),
  LIVE_TOKEN_SECONDS: secondsUpTo(600),
  LIVE_IDLE_SECONDS: secondsUpTo(60),
  LIVE_MAX_SECONDS: secondsUpTo(5 * 3600),
  LIVE_CONNECTED_SECONDS: secondsUpTo(24 * 3600),
  LIVE_RESUME_SECONDS: secondsUpTo(60),
  LIVE_CREDIT_SECONDS: secondsUpTo(60),
});

const variablesSchema = liveSchema.extend({
  JURISDICTION: z.enum([...JURISDICTIONS, '']).default(''),
  OUTPUT_TTL_SECONDS: secondsUpTo(24 * 3600),
  WORK_HOURS_PER_ACCOUNT: z.coerce.number().positive().default(DEFAULT_WORK_HOURS),
  ALLOW_LOOPBACK: z.enum(['0', '1', '']).default('0'),
  R2_ACCOUNT_ID: optionalVariable(/^[0-9a-f]{32}$/, 'the 32 hex digits of the account'),
  R2_ACCESS_KEY_ID: optionalVariable(/^\S+$/, 'without white space'),
  R2_SECRET_ACCESS_KEY: optionalVariable(/^\S+$/, 'without white space'),
  R2_BUCKET_NAME: optionalVariable(/^[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$/, 'the name of a bucket'),
});

const configSchema = variablesSchema.superRefine((variables, context) => {
  const missing = R2_VARIABLES.filter((name) => variables[name] === undefined);
  if (missing.length === 0 || missing.length === R2_VARIABLES.length) return;
  for (const name of missing)
    context.addIssue({ code: 'custom', path: [name], message: 'missing; set all R2_ or none' });
});

/** Settings of the Worker of live streams, checked once per isolate. */
export interface LiveConfig {
  readonly signingKey: string;
  readonly previousSigningKey?: string;
  readonly live: LiveTimes;
}

/** Settings of the other Workers, checked once per isolate. */
export interface Config extends LiveConfig {
  /** Undefined if data may be stored anywhere. */
  readonly jurisdiction?: Jurisdiction;
  readonly outputTtlMs: number;
  /** Maximum of unfinished audio per account. */
  readonly maxWorkSeconds: number;
  readonly allowLoopback: boolean;
  /** The configured engines by model. */
  readonly transcription: Readonly<Partial<Record<TranscriptionModel, OpenAiEngine | 'workers-ai'>>>;
  /** The bucket's S3 interface; undefined if uploads go through the Worker. */
  readonly s3?: S3Credentials;
}

/** @throws if a variable is missing or malformed; the message names it */
export function readConfig(env: Env): Config {
  const variables = parse(configSchema, env);
  return {
    ...liveConfigOf(variables),
    jurisdiction: variables.JURISDICTION || undefined,
    outputTtlMs: variables.OUTPUT_TTL_SECONDS * 1000,
    maxWorkSeconds: variables.WORK_HOURS_PER_ACCOUNT * 3600,
    allowLoopback: variables.ALLOW_LOOPBACK === '1',
    transcription: Object.fromEntries(TRANSCRIPTION_MODELS.map((model) => [model, engineOf({ ...env }, model)])),
    s3: s3Credentials(variables),
  };
}

/** @throws as `readConfig` */
export const readLiveConfig = (env: LiveEnv): LiveConfig => liveConfigOf(parse(liveSchema, env));

function parse<Schema extends z.ZodType>(schema: Schema, env: LiveEnv): z.infer<Schema> {
  const parsed = schema.safeParse(env);
  if (parsed.success) return parsed.data;
  const faults = parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`).join('; ');
  throw new Error(`misconfigured Worker: ${faults}`);
}

const liveConfigOf = (variables: z.infer<typeof liveSchema>): LiveConfig => ({
  signingKey: variables.SIGNING_KEY,
  previousSigningKey: variables.SIGNING_KEY_PREVIOUS || undefined,
  live: {
    tokenMs: variables.LIVE_TOKEN_SECONDS * 1000,
    idleMs: variables.LIVE_IDLE_SECONDS * 1000,
    maxMs: variables.LIVE_MAX_SECONDS * 1000,
    connectedMs: variables.LIVE_CONNECTED_SECONDS * 1000,
    resumeMs: variables.LIVE_RESUME_SECONDS * 1000,
    creditMs: variables.LIVE_CREDIT_SECONDS * 1000,
  },
});

/** Value of an engine's address that selects Workers AI. */
export const WORKERS_AI = 'workers-ai';

type Variables = Readonly<Record<string, unknown>>;

/** `ROLLCALL_ASR_URL`, and for one model `ROLLCALL_ASR_URL_ASR_LARGE_V3_TURBO`. */
export const engineVariable = (name: 'URL' | 'MODEL' | 'KEY', model?: TranscriptionModel): string =>
  ['ROLLCALL_ASR', name, ...(model === undefined ? [] : [model.toUpperCase().replace(/[^A-Z0-9]/g, '_')])].join('_');

/**
 * The engine of a model. An engine that is set for one model does not use the general key: a key must not be sent to
 * another company.
 *
 * @throws if an address is invalid
 */
function engineOf(variables: Variables, model: TranscriptionModel): OpenAiEngine | 'workers-ai' | undefined {
  const text = (name: string) => String(variables[name] ?? '') || undefined;
  const of = (scope: TranscriptionModel | undefined) => {
    const name = engineVariable('URL', scope);
    const url = text(name);
    if (url === undefined) return undefined;
    if (url === WORKERS_AI) {
      if (variables.AI === undefined) throw new Error(`misconfigured Worker: ${name}: there is no binding AI`);
      return WORKERS_AI;
    }
    if (!/^https?:\/\/[^\s]+$/.test(url))
      throw new Error(`misconfigured Worker: ${name}: no http or https address, nor ${WORKERS_AI}`);
    const named = text(engineVariable('MODEL', scope)) ?? text(engineVariable('MODEL', model));
    return {
      url,
      model: named ?? TRANSCRIPTION_MODEL_ALIASES[model],
      key: text(engineVariable('KEY', scope)),
    };
  };
  return of(model) ?? of(undefined);
}

function s3Credentials(variables: z.infer<typeof configSchema>): S3Credentials | undefined {
  const { R2_ACCOUNT_ID, R2_ACCESS_KEY_ID, R2_SECRET_ACCESS_KEY, R2_BUCKET_NAME, JURISDICTION } = variables;
  if (!R2_ACCOUNT_ID || !R2_ACCESS_KEY_ID || !R2_SECRET_ACCESS_KEY || !R2_BUCKET_NAME) return undefined;
  // Buckets of a jurisdiction are only available at its own host.
  const host = [R2_ACCOUNT_ID, ...(JURISDICTION === '' ? [] : [JURISDICTION]), 'r2.cloudflarestorage.com'].join('.');
  return {
    bucketUrl: `https://${host}/${R2_BUCKET_NAME}`,
    accessKeyId: R2_ACCESS_KEY_ID,
    secretAccessKey: R2_SECRET_ACCESS_KEY,
    region: 'auto',
  };
}
