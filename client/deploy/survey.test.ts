import { afterEach, beforeEach, expect, it } from 'vitest';
import { root } from '../../test/helpers/local-process.ts';
import { type ApiAnswer, startCloudflareApi } from './cloudflare-api.fixture.ts';
import { secretNames } from './survey.ts';

/** Answer to the request for the names of the Worker's secrets. */
let answer: ApiAnswer;
let stop: () => void;
beforeEach(async () => {
  stop = await startCloudflareApi(({ url }) =>
    url === '/accounts/account/workers/scripts/rollcall-jobs/secrets' ? answer : undefined,
  );
});
afterEach(() => stop());
const listSecrets = () => secretNames(root, 'rollcall-jobs');

it('returns undefined for a missing Worker and throws if Cloudflare refuses to list secrets', async () => {
  answer = { status: 200, body: { success: true, result: [{ name: 'SIGNING_KEY', type: 'secret_text' }] } };
  expect(await listSecrets()).toEqual(['SIGNING_KEY']);
  answer = { status: 404, body: { errors: [{ code: 10007, message: 'This Worker does not exist on your account.' }] } };
  expect(await listSecrets()).toBeUndefined();
  answer = { status: 403, body: { errors: [{ code: 10000, message: 'Authentication error' }] } };
  await expect(listSecrets()).rejects.toThrow('Authentication error');
}, 90_000);
