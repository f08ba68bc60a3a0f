import { expect, it } from 'vitest';
import { type Env, readConfig } from './env.ts';

const R2 = {
  R2_ACCOUNT_ID: '0123456789abcdef0123456789abcdef',
  R2_ACCESS_KEY_ID: 'key',
  R2_SECRET_ACCESS_KEY: 'secret',
  R2_BUCKET_NAME: 'rollcall',
};
const read = (variables: object) => {
  const env = { SIGNING_KEY: Buffer.alloc(32, 1).toString('base64'), ...variables };
  return readConfig(env as unknown as Env);
};

it('requires all of the bucket credentials or none', () => {
  expect(read({}).s3).toBeUndefined();
  expect(read({ R2_ACCOUNT_ID: '', R2_BUCKET_NAME: '' }).s3).toBeUndefined();
  expect(read(R2).s3).toEqual({
    bucketUrl: 'https://0123456789abcdef0123456789abcdef.r2.cloudflarestorage.com/rollcall',
    accessKeyId: 'key',
    secretAccessKey: 'secret',
    region: 'auto',
  });
  expect(read({ ...R2, JURISDICTION: 'eu' })).toMatchObject({
    jurisdiction: 'eu',
    s3: { bucketUrl: 'https://0123456789abcdef0123456789abcdef.eu.r2.cloudflarestorage.com/rollcall' },
  });
  expect(() => read({ JURISDICTION: 'mars' })).toThrow(/JURISDICTION/);
  for (const name of Object.keys(R2)) {
    expect(() => read({ ...R2, [name]: undefined })).toThrow(new RegExp(`${name}: missing`));
  }
});

it('names the wrong variable, and never shows a secret', () => {
  expect(() => read({ ...R2, R2_ACCOUNT_ID: 'https://example.com' })).toThrow(/R2_ACCOUNT_ID/);
  const secret = 'a secret';
  expect(() => read({ ...R2, R2_SECRET_ACCESS_KEY: secret })).toThrow(/R2_SECRET_ACCESS_KEY/);
  expect(() => read({ ...R2, R2_SECRET_ACCESS_KEY: secret })).not.toThrow(new RegExp(secret));
});

it('defaults to the times of the contract without loopback, and refuses longer times', () => {
  expect(read({})).toMatchObject({
    outputTtlMs: 24 * 3600 * 1000,
    live: { tokenMs: 600_000, idleMs: 60_000, maxMs: 5 * 3600 * 1000, connectedMs: 24 * 3600 * 1000 },
    allowLoopback: false,
  });
  const longest = {
    OUTPUT_TTL_SECONDS: 86_400,
    LIVE_TOKEN_SECONDS: 600,
    LIVE_IDLE_SECONDS: 60,
    LIVE_MAX_SECONDS: 18_000,
    LIVE_CONNECTED_SECONDS: 86_400,
    LIVE_RESUME_SECONDS: 60,
    LIVE_CREDIT_SECONDS: 60,
  };
  for (const [name, seconds] of Object.entries(longest)) {
    expect(() => read({ [name]: String(seconds + 1) })).toThrow(new RegExp(name));
    expect(() => read({ [name]: '0' })).toThrow(new RegExp(name));
  }
});

it('has one transcription engine for both models, or a separate one with its own key', () => {
  const general = { ROLLCALL_ASR_URL: 'http://127.0.0.1:8000/v1', ROLLCALL_ASR_KEY: 'k' };
  const models = ['asr-tdt-0.6b-v3', 'asr-large-v3-turbo'] as const;
  const engines = (variables: object) => models.map((model) => read(variables).transcription[model]);
  expect(engines({})).toEqual([undefined, undefined]);
  expect(engines({ ROLLCALL_ASR_URL: '' })).toEqual([undefined, undefined]);
  expect(engines(general)).toEqual([
    { url: general.ROLLCALL_ASR_URL, model: 'parakeet-tdt-0.6b-v3', key: 'k' },
    { url: general.ROLLCALL_ASR_URL, model: 'faster-whisper-large-v3-turbo', key: 'k' },
  ]);
  expect(
    engines({ ...general, ROLLCALL_ASR_MODEL: 'm' }).map((engine) => engine !== 'workers-ai' && engine?.model),
  ).toEqual(['m', 'm']);
  const own = { ROLLCALL_ASR_URL_ASR_LARGE_V3_TURBO: 'https://api.example/v1' };
  expect(engines({ ...general, ROLLCALL_ASR_MODEL: 'm', ...own })[1]).toEqual({
    url: 'https://api.example/v1',
    model: 'faster-whisper-large-v3-turbo',
    key: undefined,
  });
  expect(engines(own)[0]).toBeUndefined();
  expect(engines({ ROLLCALL_ASR_URL: 'workers-ai', AI: {} })).toEqual(['workers-ai', 'workers-ai']);
  expect(() => engines({ ROLLCALL_ASR_URL: 'workers-ai' })).toThrow(/ROLLCALL_ASR_URL: there is no binding AI/);
  expect(() => engines({ ROLLCALL_ASR_URL: 'localhost:8000' })).toThrow(/ROLLCALL_ASR_URL: no http/);
});
