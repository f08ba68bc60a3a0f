import { z } from 'zod';

/** Bindings and variables of the Worker, as `wrangler.toml` names them. */
export interface Env {
  readonly DB: D1Database;
  readonly BUCKET: R2Bucket;
  readonly PLANS: Queue<unknown>;
  readonly JOBS: Queue<unknown>;
  readonly WEBHOOKS: Queue<unknown>;
  readonly JOB_PROGRESS: DurableObjectNamespace;
  readonly ACCOUNT_QUOTA: DurableObjectNamespace;
  readonly SIGNING_KEY: string;
  readonly OUTPUT_TTL_SECONDS?: string;
  readonly ALLOW_LOOPBACK?: string;
}

const configSchema = z.object({
  SIGNING_KEY: z.base64().refine((key) => key.length >= 43, 'at least 32 bytes, base64'),
  OUTPUT_TTL_SECONDS: z.coerce
    .number()
    .int()
    .positive()
    .max(24 * 3600)
    .default(24 * 3600),
  ALLOW_LOOPBACK: z.enum(['0', '1', '']).default('0'),
});

/** The Worker's settings, checked once per isolate. */
export interface Config {
  readonly signingKey: string;
  readonly outputTtlMs: number;
  readonly allowLoopback: boolean;
}

/** @throws when a variable is missing or malformed: the deployment is broken and says which one it is. */
export function readConfig(env: Env): Config {
  const parsed = configSchema.safeParse({
    SIGNING_KEY: env.SIGNING_KEY,
    OUTPUT_TTL_SECONDS: env.OUTPUT_TTL_SECONDS,
    ALLOW_LOOPBACK: env.ALLOW_LOOPBACK,
  });
  if (!parsed.success) {
    const faults = parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`).join('; ');
    throw new Error(`misconfigured Worker: ${faults}`);
  }
  return {
    signingKey: parsed.data.SIGNING_KEY,
    outputTtlMs: parsed.data.OUTPUT_TTL_SECONDS * 1000,
    allowLoopback: parsed.data.ALLOW_LOOPBACK === '1',
  };
}
