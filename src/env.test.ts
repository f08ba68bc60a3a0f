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

it('takes all of the bucket credentials or none', () => {
  expect(read({}).s3).toBeUndefined();
  expect(read({ R2_ACCOUNT_ID: '', R2_BUCKET_NAME: '' }).s3).toBeUndefined();
  expect(read(R2).s3).toEqual({
    bucketUrl: 'https://0123456789abcdef0123456789abcdef.r2.cloudflarestorage.com/rollcall',
    accessKeyId: 'key',
    secretAccessKey: 'secret',
    region: 'auto',
  });
  for (const name of Object.keys(R2)) {
    expect(() => read({ ...R2, [name]: undefined })).toThrow(new RegExp(`${name}: missing`));
  }
});

it('says which variable is wrong, and never what a secret is', () => {
  expect(() => read({ ...R2, R2_ACCOUNT_ID: 'https://example.com' })).toThrow(/R2_ACCOUNT_ID/);
  const secret = 'a secret';
  expect(() => read({ ...R2, R2_SECRET_ACCESS_KEY: secret })).toThrow(/R2_SECRET_ACCESS_KEY/);
  expect(() => read({ ...R2, R2_SECRET_ACCESS_KEY: secret })).not.toThrow(new RegExp(secret));
});
