import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type ContractService, startContractService } from '../contract/service.ts';
import { storeJob } from '../contract/stored-job.ts';
import { type Browser, chromium, type Page, startBrowser } from '../helpers/browser.ts';
import { conversation } from '../helpers/local-process.ts';
import { conversationSamples } from '../helpers/voices.ts';
import { wav16 } from '../helpers/wav.ts';

const ELSEWHERE = 'rollcall.test';

describe.skipIf(chromium === undefined)('the playground in a browser', () => {
  let service: ContractService;
  let browser: Browser;
  let page: Page;
  let folder: string;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'rollcall-playground-'));
    const heard = join(folder, 'heard.wav');
    writeFileSync(heard, wav16(await conversationSamples(), 16_000));
    service = await startContractService();
    browser = await startBrowser([
      '--use-fake-device-for-media-stream',
      '--use-fake-ui-for-media-stream',
      `--use-file-for-fake-audio-capture=${heard}`,
      '--autoplay-policy=no-user-gesture-required',
      `--host-resolver-rules=MAP ${ELSEWHERE} 127.0.0.1`,
    ]);
  });
  beforeEach(async () => {
    page = await browser.newPage();
  });
  afterEach(() => {
    expect(page.complaints).toEqual([]);
  });
  afterAll(async () => {
    await browser?.close();
    await service?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const withKey = () => `${service.url}/#key=${service.main.token}`;
  const text = (id: string) => page.evaluate<string>(`document.getElementById('${id}').textContent`);
  const count = (selector: string) => page.evaluate<number>(`document.querySelectorAll('${selector}').length`);
  const click = (id: string) => page.evaluate(`document.getElementById('${id}').click()`);
  const focused = () =>
    page.evaluate<string | number>("document.activeElement.id || document.activeElement.closest('tr')?.rowIndex");
  const ready = (id: string, pattern: RegExp) => expect.poll(() => text(id), { timeout: 60_000 }).toMatch(pattern);

  /** What a screen reader says by itself. */
  const listenToStatus = () =>
    page.evaluate(`{
      const status = document.querySelector('[role=status]');
      window.said = [];
      new MutationObserver(() => said.push(status.textContent)).observe(status, { childList: true });
    }`);

  async function findSpeakers(): Promise<void> {
    await page.choose('#file', conversation);
    await click('start');
    await ready('status', /^Done in/);
  }

  it('shows who spoke when in a file, plays a turn, and has the result again when it is loaded anew', async () => {
    await page.open(withKey());
    expect(await page.evaluate('location.hash')).toBe('');
    await listenToStatus();
    await findSpeakers();
    const said = await page.evaluate<string[]>('said');
    expect(said.slice(0, 2)).toEqual(['Sending the file …', expect.stringMatching(/…$/)]);
    expect(said.filter((words) => words.includes('%'))).toEqual([]);
    expect(await text('result-title')).toBe('3 speakers');
    const turns = await count('#turns tr');
    expect(turns).toBeGreaterThan(8);
    expect(await count('.bar')).toBe(turns);
    expect(await focused()).toBe('result-title');
    await page.evaluate("document.querySelectorAll('.play')[1].click()");
    await expect.poll(() => page.evaluate("document.getElementById('player').currentTime")).toBeGreaterThan(5);
    expect(await count('tr.now')).toBe(1);
    await page.evaluate('location.reload()');
    await expect
      .poll(async () => [await text('result-title'), await count('#turns tr'), await count('.play')])
      .toEqual(['3 speakers', turns, 0]);
  });

  it('works over plain http under a name that is not this machine, where browsers give pages less', async () => {
    await page.open(withKey().replace('127.0.0.1', ELSEWHERE));
    expect(await page.evaluate('[isSecureContext, typeof crypto.randomUUID]')).toEqual([false, 'undefined']);
    await page.evaluate(`document.getElementById('key').value = '${service.main.token}'`);
    await findSpeakers();
    expect(await text('result-title')).toBe('3 speakers');
  });

  it('follows the microphone until it is stopped', async () => {
    await page.open(withKey());
    await page.evaluate("document.querySelector('[value=microphone]').click()");
    await click('start');
    await expect.poll(() => count('#turns tr'), { timeout: 60_000 }).toBeGreaterThan(1);
    await click('stop');
    await ready('status', /^Done/);
    expect(await text('result-title')).toMatch(/^\d speakers?$/);
  });

  it('has thousands of turns on a narrow screen, and the keyboard stays where new ones come', async () => {
    const diarization = Array.from({ length: 1200 }, (_, i) => {
      return { speaker: `SPEAKER_${String(i % 12).padStart(2, '0')}`, start: 30 * i, end: 30 * i + 20 };
    });
    const id = '22222222-2222-4222-8222-222222222222';
    await storeJob(service, { id, status: 'succeeded', output: JSON.stringify({ diarization }) });
    await page.send('Emulation.setDeviceMetricsOverride', {
      width: 320,
      height: 640,
      deviceScaleFactor: 2,
      mobile: true,
    });
    await page.open(withKey());
    await page.evaluate(`sessionStorage.setItem('rollcall.job', JSON.stringify({ id: '${id}', name: 'a day' }))`);
    await page.evaluate('location.reload()');
    await ready('result-title', /^12 speakers$/);
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(320);
    for (const shown of [500, 1000]) {
      expect(await count('#turns tr')).toBe(shown);
      await page.evaluate("document.getElementById('more').focus()");
      await page.press('Enter');
      expect(await focused()).toBe(shown + 1);
    }
    expect(await count('#turns tr')).toBe(1200);
  });

  it('asks for another key where one was revoked', async () => {
    const { token, keyId } = await service.newKey({ account: 'gone' });
    await service.run('UPDATE api_keys SET revoked_at = ? WHERE id = ?', Date.now(), keyId);
    await page.open(`${service.url}/#key=${token}`);
    await page.choose('#file', conversation);
    await click('start');
    await ready('problem', /wrong, was revoked or has expired/);
    expect(await focused()).toBe('key');
    page.complaints.length = 0; // the browser's own word on the 401
  });

  it('keeps a job whose key was revoked while it worked: another key of the account has the result', async () => {
    const old = await service.newKey({ account: 'changed' });
    const id = '33333333-3333-4333-8333-333333333333';
    await storeJob(service, { id, status: 'running', accountId: old.accountId, createdAt: Date.now() });
    await page.open(`${service.url}/#key=${old.token}`);
    await page.evaluate(`sessionStorage.setItem('rollcall.job', JSON.stringify({ id: '${id}', name: 'a talk' }))`);
    await page.evaluate('location.reload()');
    await ready('status', /Listening/);
    await service.run('UPDATE api_keys SET revoked_at = ? WHERE id = ?', Date.now(), old.keyId);
    await ready('problem', new RegExp(`may go on; another key of its account gets the result: GET /v1/jobs/${id}`));
    page.complaints.length = 0; // the browser's own word on the 401
    const diarization = [{ speaker: 'SPEAKER_00', start: 1, end: 2 }];
    await service.bucket.put(`outputs/${id}.json`, JSON.stringify({ diarization }));
    const done = "UPDATE jobs SET status = 'succeeded', completed_at = ?, output_key = ? WHERE id = ?";
    await service.run(done, Date.now(), `outputs/${id}.json`, id);
    const { token } = await service.newKey({ account: 'changed' });
    await page.open(`${service.url}/#key=${token}`);
    await ready('result-title', /^1 speaker$/);
  });

  it('is drawn also where the system chooses the colours', async () => {
    await page.send('Emulation.setEmulatedMedia', { features: [{ name: 'forced-colors', value: 'active' }] });
    await page.open(withKey());
    await findSpeakers();
    const colour = (selector: string, pseudo = '') =>
      page.evaluate<string>(`getComputedStyle(document.querySelector('${selector}'), '${pseudo}').backgroundColor`);
    const canvas = await colour('body');
    for (const drawn of [await colour('.bar'), await colour('.mark'), await colour('.play', '::before')])
      expect(drawn).not.toBe(canvas);
    const edges = await page.evaluate<string[]>(
      "[...document.querySelectorAll('.choices label')].map((label) => getComputedStyle(label).borderBottomColor)",
    );
    expect(edges[0]).not.toBe(edges[1]);
  });
});
