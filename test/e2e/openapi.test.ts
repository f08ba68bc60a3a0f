import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ContractService, startContractService } from '../contract/service.ts';
import { root } from '../helpers/local-process.ts';
import { pythonWith, runPython } from '../helpers/python.ts';

const bin = pythonWith(['schemathesis==4.32.5']);
/** The checks of schemathesis for requests that the service refuses. */
const CONFORMANCE_CHECKS = [
  'not_a_server_error',
  'status_code_conformance',
  'content_type_conformance',
  'response_headers_conformance',
  'response_schema_conformance',
].join(',');

describe.skipIf(bin === undefined)('the service answers as its document describes', () => {
  let service: ContractService;
  let folder: string;
  beforeAll(async () => {
    service = await startContractService();
    folder = mkdtempSync(join(tmpdir(), 'rollcall-schemathesis-'));
  });
  afterAll(async () => {
    await service?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Runs schemathesis with a fixed seed; its summary is the message of a failure. */
  async function check(...args: string[]): Promise<void> {
    const config = ['--config-file', join(root, 'test/e2e/schemathesis.toml')];
    const command = [...config, 'run', `${service.url}/openapi.json`, '--seed', '1', '--no-color', ...args];
    const { code, stdout, stderr } = await runPython(join(bin ?? '', 'schemathesis'), command, { cwd: folder });
    expect(code, stdout + stderr).toBe(0);
    const tested = /Tested: (\d+)/.exec(stdout)?.[1];
    expect(Number(tested), stdout).toBeGreaterThan(5);
  }

  it('with a key, for valid and invalid requests, without 5xx', async () => {
    await check('--header', `Authorization: Bearer ${service.main.token}`, '--max-examples', '60');
  });

  it('without a key', async () => {
    await check('--max-examples', '10', '--checks', CONFORMANCE_CHECKS);
  });

  it('with a key without scopes', async () => {
    const { token } = await service.newKey({ account: 'reader', scopes: [] });
    await check('--header', `Authorization: Bearer ${token}`, '--max-examples', '10', '--checks', CONFORMANCE_CHECKS);
  });
});
