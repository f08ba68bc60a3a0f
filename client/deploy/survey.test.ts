import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { root } from '../../test/helpers/local-process.ts';
import { secretNames } from './survey.ts';

/** Of the account's Worker, in Cloudflare's own words. */
let answer: { readonly status: number; readonly body: object };
let cloudflare: Server;
beforeEach(async () => {
  cloudflare = createServer((request, response) => {
    const isOurs = request.url === '/accounts/account/workers/scripts/rollcall-jobs/secrets';
    response.statusCode = isOurs ? answer.status : 404;
    response.end(
      JSON.stringify({ success: false, errors: [], messages: [], result: null, ...(isOurs && answer.body) }),
    );
  });
  await new Promise<void>((done) => cloudflare.listen(0, '127.0.0.1', done));
  vi.stubEnv('CLOUDFLARE_API_BASE_URL', `http://127.0.0.1:${(cloudflare.address() as AddressInfo).port}`);
  vi.stubEnv('CLOUDFLARE_API_TOKEN', 'token');
  vi.stubEnv('CLOUDFLARE_ACCOUNT_ID', 'account');
});
afterEach(() => {
  vi.unstubAllEnvs();
  cloudflare.close();
});
const asked = () => secretNames(root, 'rollcall-jobs');

it('a Worker that is not there has no secrets; of one that cannot be asked nothing is supposed', async () => {
  answer = { status: 200, body: { success: true, result: [{ name: 'SIGNING_KEY', type: 'secret_text' }] } };
  expect(await asked()).toEqual(['SIGNING_KEY']);
  answer = { status: 404, body: { errors: [{ code: 10007, message: 'This Worker does not exist on your account.' }] } };
  expect(await asked()).toBeUndefined();
  answer = { status: 403, body: { errors: [{ code: 10000, message: 'Authentication error' }] } };
  await expect(asked()).rejects.toThrow('Authentication error');
}, 90_000);
