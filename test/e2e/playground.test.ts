import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { OUTPUT_FORMAT_NAMES } from '../../src/contract/output-formats.ts';
import { type ContractService, startContractService } from '../contract/service.ts';
import { storeJob } from '../contract/stored-job.ts';
import { axeViolations } from '../helpers/axe.ts';
import { type Browser, chromium, type Page, startBrowser } from '../helpers/browser.ts';
import { conversation } from '../helpers/local-process.ts';
import { conversationSamples, voiceSample } from '../helpers/voices.ts';
import { wav16 } from '../helpers/wav.ts';

/** A name that resolves to this machine but is not a secure context. */
const OTHER_HOST = 'rollcall.test';

/** Turns of a meeting of five people, some of which overlap. */
const threeHourTurns = () =>
  Array.from({ length: 4000 }, (_, i) => {
    const start = Number((2.7 * i).toFixed(3));
    return { speaker: `SPEAKER_0${(i * 7) % 5}`, start, end: start + (i % 9 === 0 ? 3.4 : 2.2) };
  });

/** Scrolls the timeline, then the page, a step per frame; median milliseconds of a frame and of drawing it. */
const MEASURE_SCROLL = `(async () => {
  const median = (list) => list.sort((a, b) => a - b)[list.length >> 1];
  const frame = () => new Promise(requestAnimationFrame);
  async function pace(step) {
    const times = [];
    let last = await frame();
    for (let i = 0; i < 120; i++) {
      step(i);
      const now = await frame();
      times.push(now - last);
      last = now;
    }
    return median(times);
  }
  const scroller = document.getElementById('scroll');
  const timeline = await pace((i) => { scroller.scrollLeft = i * 90; });
  const draws = [];
  const request = window.requestAnimationFrame;
  window.requestAnimationFrame = (draw) => request((now) => {
    const begun = performance.now();
    draw(now);
    draws.push(performance.now() - begun);
  });
  for (let i = 0; i < 60; i++) {
    scroller.scrollLeft = 20000 + i * 90;
    await new Promise((done) => setTimeout(done, 30));
  }
  window.requestAnimationFrame = request;
  return { timeline, page: await pace((i) => scrollTo(0, i * 60)), draw: median(draws) };
})()`;

describe.skipIf(chromium === undefined)('the playground in a browser', () => {
  let service: ContractService;
  let browser: Browser;
  let page: Page;
  let folder: string;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'rollcall-playground-'));
    const microphone = join(folder, 'microphone.wav');
    writeFileSync(microphone, wav16(await conversationSamples(), 16_000));
    service = await startContractService();
    browser = await startBrowser([
      '--use-fake-device-for-media-stream',
      '--use-fake-ui-for-media-stream',
      `--use-file-for-fake-audio-capture=${microphone}`,
      '--autoplay-policy=no-user-gesture-required',
      `--host-resolver-rules=MAP ${OTHER_HOST} 127.0.0.1`,
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
  const focused = () => page.evaluate<string>('document.activeElement.id');
  const ready = (id: string, pattern: RegExp) => expect.poll(() => text(id), { timeout: 60_000 }).toMatch(pattern);

  /** Records the texts of the live region, which a screen reader announces. */
  const listenToStatus = () =>
    page.evaluate(`{
      const status = document.querySelector('[role=status]');
      window.announced = [];
      new MutationObserver(() => announced.push(status.textContent)).observe(status, { childList: true });
    }`);

  const speakerNames = () =>
    page.evaluate<string[]>("[...document.querySelectorAll('.speaker .name')].map((n) => n.textContent)");

  /** Opens the sheet of a speaker and gives them a name. */
  async function rename(index: number, name: string): Promise<void> {
    await page.evaluate(`document.querySelectorAll('.speaker')[${index}].click()`);
    await page.evaluate(`document.getElementById('speaker-name').value = '${name}'`);
    await page.evaluate("document.querySelector('#sheet form').requestSubmit()");
  }

  /** The file that the browser would save in this format. */
  async function exported(format: string): Promise<string> {
    await page.evaluate(`{
      window.saved = undefined;
      URL.createObjectURL = (blob) => { window.saved = blob; return '#'; };
      document.getElementById('format').value = '${format}';
      document.getElementById('export').click();
    }`);
    return page.evaluate<string>('window.saved.text()');
  }

  async function findSpeakers(): Promise<void> {
    await page.choose('#file', conversation);
    await click('start');
    await ready('status', /^Done in/);
  }

  it('uploads a file, edits and exports the result, and restores it after a reload', async () => {
    await page.open(withKey());
    expect(await page.evaluate('location.hash')).toBe('');
    await listenToStatus();
    await findSpeakers();
    const announced = await page.evaluate<string[]>('announced');
    expect(announced.slice(0, 2)).toEqual(['Sending the file …', expect.stringMatching(/…$/)]);
    expect(announced.filter((words) => words.includes('%'))).toEqual([]);
    expect(await text('result-title')).toBe('3 speakers');
    expect(await focused()).toBe('result-title');
    const turns = await count('.turn');
    expect(turns).toBeGreaterThan(8);
    await page.evaluate("document.querySelectorAll('.turn .play')[1].click()");
    await expect.poll(() => page.evaluate("document.getElementById('player').currentTime")).toBeGreaterThan(5);
    await expect.poll(() => count('.turn.now')).toBe(1);
    await expect.poll(() => text('heard')).toBe('SPEAKER_01');

    await rename(0, 'Sarah');
    await rename(1, 'Tom');
    expect(await speakerNames()).toEqual(['Sarah', 'Tom', 'SPEAKER_02']);
    // The name of another speaker merges the two.
    await rename(2, 'Tom');
    expect(await speakerNames()).toEqual(['Sarah', 'Tom']);
    await click('undo');
    expect(await speakerNames()).toEqual(['Sarah', 'Tom', 'SPEAKER_02']);
    await page.evaluate("document.querySelectorAll('.turn .who')[0].click()");
    await page.evaluate("document.querySelectorAll('#sheet-body button')[1].click()");
    const first = await page.evaluate<string>("document.querySelector('.turn .who').textContent");
    expect(first).toBe('Tom');
    expect(await exported('rttm')).toMatch(/^SPEAKER conversation 1 0\.\d+ \d\.\d+ <NA> <NA> Tom <NA> <NA>\n/);
    expect(await exported('srt')).toContain('[Sarah]');
    expect(JSON.parse(await exported('json')).diarization[0]).toMatchObject({ speaker: 'Tom' });
    const formats = await page.evaluate<string[]>("[...document.getElementById('format').options].map((o) => o.value)");
    expect(formats).toEqual(OUTPUT_FORMAT_NAMES);

    await page.evaluate('location.reload()');
    await expect.poll(speakerNames).toEqual(['Sarah', 'Tom', 'SPEAKER_02']);
    // The page loads the recording from the service.
    await expect.poll(() => page.evaluate("document.getElementById('player').duration")).toBeGreaterThan(50);
    await page.evaluate("document.getElementById('scroll').focus()");
    await page.press(' ');
    await expect.poll(() => page.evaluate("document.getElementById('player').currentTime")).toBeGreaterThan(0.5);
    await page.press(' ');
    expect(await page.evaluate("document.getElementById('player').paused")).toBe(true);
    await page.press('ArrowRight');
    expect(await page.evaluate("document.getElementById('scroll').getAttribute('aria-valuetext')")).toMatch(/^0:0\d, /);
  });

  it('stores the voice of a speaker after consent and recognises it in another recording', async () => {
    const other = join(folder, 'other.wav');
    writeFileSync(other, await voiceSample('beth'));
    await page.open(withKey());
    await findSpeakers();
    await page.evaluate("document.querySelectorAll('.speaker')[1].click()");
    await page.evaluate("[...document.querySelectorAll('#sheet-body button')].at(-1).click()");
    await page.evaluate("document.getElementById('question-name').value = 'Beth'");
    // Without consent nothing is stored.
    await page.evaluate("document.querySelector('dialog[open] form').requestSubmit()");
    expect(await count('dialog[open]')).toBe(1);
    await page.evaluate("document.getElementById('question-consent').click()");
    await page.evaluate("document.querySelector('dialog[open] form').requestSubmit()");
    await ready('toast', /The voice of Beth is kept in this browser/);
    await click('new');
    await page.choose('#file', other);
    await click('start');
    await ready('status', /^Done in/);
    await click('compare');
    await ready('suggestions', /SPEAKER_00 sounds like Beth \(\d+ %\)/);
    await page.evaluate("document.querySelector('#suggestions button').click()");
    expect(await speakerNames()).toEqual(['Beth']);
  });

  it('plays the recording at a URL, and shows earlier jobs, code and usage', async () => {
    await page.open(withKey());
    await page.evaluate("document.querySelector('[value=address]').click()");
    const address = `${service.url}/playground/sample.mp3`;
    await page.evaluate(`document.getElementById('address').value = '${address}'`);
    await page.evaluate("document.getElementById('address').dispatchEvent(new Event('input', { bubbles: true }))");
    expect(await text('code')).toContain(address);
    await click('start');
    await ready('status', /^Done in/);
    await expect.poll(() => page.evaluate("document.getElementById('player').duration")).toBeGreaterThan(50);
    await click('open-history');
    await ready('panel-body', /sample\.mp3/);
    await click('panel-close');
    await click('open-usage');
    await ready('panel-body', /of audio billed in 30 days/);
  });

  it.each([
    ['light', 1280],
    ['light', 390],
    ['dark', 1280],
    ['dark', 390],
  ])('has no axe violation and no target below 44 px (%s, %i px)', async (value, width) => {
    await page.send('Emulation.setDeviceMetricsOverride', {
      width,
      height: 900,
      deviceScaleFactor: 1,
      mobile: width < 500,
    });
    await page.send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value }] });
    await page.open(withKey());
    expect(await axeViolations(page)).toEqual([]);
    await page.evaluate("document.querySelector('.code').open = true");
    await findSpeakers();
    expect(await axeViolations(page)).toEqual([]);
    const small = await page.evaluate<string[]>(`[...document.querySelectorAll('button, select, summary')]
      .filter((node) => node.checkVisibility() && node.getBoundingClientRect().height < 44)
      .map((node) => node.outerHTML)`);
    expect(small).toEqual([]);
    await page.evaluate("document.querySelector('.speaker').click()");
    expect(await axeViolations(page)).toEqual([]);
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width);
  });

  it('draws a frame of three hours of turns in less than 8 ms', async () => {
    const id = '44444444-4444-4444-8444-444444444444';
    await storeJob(service, { id, status: 'succeeded', output: JSON.stringify({ diarization: threeHourTurns() }) });
    await page.open(withKey());
    await page.evaluate(`sessionStorage.setItem('rollcall.job', JSON.stringify({ id: '${id}', name: 'three hours' }))`);
    await page.evaluate('location.reload()');
    await ready('result-title', /^5 speakers$/);
    // The service has no recording of this job; the user chooses the file.
    await page.choose('#recording', conversation);
    await expect.poll(() => page.evaluate("document.getElementById('player').duration || 0")).toBeGreaterThan(50);
    await page.evaluate("for (let i = 0; i < 5; i++) document.getElementById('zoom-in').click()");
    const paces = await page.evaluate<{ timeline: number; page: number; draw: number }>(MEASURE_SCROLL);
    console.log(JSON.stringify(paces));
    // A frame at 60 Hz takes 16.7 ms. The frame rate itself depends on the machine.
    expect(paces.draw).toBeLessThan(8);
    expect(await count('#turns .turn')).toBeLessThan(5000);
  });

  it('works without a secure context', async () => {
    await page.open(withKey().replace('127.0.0.1', OTHER_HOST));
    expect(await page.evaluate('[isSecureContext, typeof crypto.randomUUID]')).toEqual([false, 'undefined']);
    await page.evaluate(`document.getElementById('key').value = '${service.main.token}'`);
    await findSpeakers();
    expect(await text('result-title')).toBe('3 speakers');
  });

  it('follows the microphone until it is stopped', async () => {
    await page.open(withKey());
    await page.evaluate("document.querySelector('[value=microphone]').click()");
    await click('start');
    await expect.poll(() => count('#turns .turn'), { timeout: 60_000 }).toBeGreaterThan(1);
    await click('stop');
    await ready('status', /^Done/);
    expect(await text('result-title')).toMatch(/^\d speakers?$/);
    // The recorded audio can be played, and its speakers renamed.
    await expect.poll(() => page.evaluate("document.getElementById('player').duration || 0")).toBeGreaterThan(1);
    await rename(0, 'Sarah');
    expect(await exported('rttm')).toContain(' Sarah ');
  });

  it('adds turns on demand on a narrow screen and focuses the first new one', async () => {
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
    const shown = await count('#turns .turn');
    expect(shown).toBeLessThan(1200);
    await page.evaluate("document.getElementById('more').focus({ preventScroll: true })");
    await page.press('Enter');
    // In the first new row; without a recording there is no play button.
    expect(await page.evaluate(`[...document.querySelectorAll('.who')].indexOf(document.activeElement)`)).toBe(shown);
    await page.evaluate('scrollTo(0, document.body.scrollHeight)');
    await expect.poll(() => count('#turns .turn')).toBeGreaterThan(shown + 200);
  });

  it('asks for another key when the key is revoked', async () => {
    const { token, keyId } = await service.newKey({ account: 'gone' });
    await service.run('UPDATE api_keys SET revoked_at = ? WHERE id = ?', Date.now(), keyId);
    await page.open(`${service.url}/#key=${token}`);
    await page.choose('#file', conversation);
    await click('start');
    await ready('problem', /wrong, was revoked or has expired/);
    expect(await focused()).toBe('key');
    page.complaints.length = 0; // the browser's console message about the 401
  });

  it('shows the result of a job with another key after its key was revoked', async () => {
    const old = await service.newKey({ account: 'changed' });
    const id = '33333333-3333-4333-8333-333333333333';
    await storeJob(service, { id, status: 'running', accountId: old.accountId, createdAt: Date.now() });
    await page.open(`${service.url}/#key=${old.token}`);
    await page.evaluate(`sessionStorage.setItem('rollcall.job', JSON.stringify({ id: '${id}', name: 'a talk' }))`);
    await page.evaluate('location.reload()');
    await ready('status', /Analysing/);
    await service.run('UPDATE api_keys SET revoked_at = ? WHERE id = ?', Date.now(), old.keyId);
    await ready(
      'problem',
      new RegExp(`may continue; read its result with another key of the account: GET /v1/jobs/${id}`),
    );
    page.complaints.length = 0; // the browser's console message about the 401
    const diarization = [{ speaker: 'SPEAKER_00', start: 1, end: 2 }];
    await service.bucket.put(`outputs/${id}.json`, JSON.stringify({ diarization }));
    const done = "UPDATE jobs SET status = 'succeeded', completed_at = ?, output_key = ? WHERE id = ?";
    await service.run(done, Date.now(), `outputs/${id}.json`, id);
    const { token } = await service.newKey({ account: 'changed' });
    await page.open(`${service.url}/#key=${token}`);
    await ready('result-title', /^1 speaker$/);
  });

  it('draws marks and buttons with forced colours', async () => {
    await page.send('Emulation.setEmulatedMedia', { features: [{ name: 'forced-colors', value: 'active' }] });
    await page.open(withKey());
    await findSpeakers();
    const colour = (selector: string, pseudo = '') =>
      page.evaluate<string>(`getComputedStyle(document.querySelector('${selector}'), '${pseudo}').backgroundColor`);
    const canvas = await colour('body');
    for (const drawn of [await colour('.mark'), await colour('.play', '::before')]) expect(drawn).not.toBe(canvas);
    const painted = await page.evaluate<number>(`(() => {
      const node = document.getElementById('canvas');
      const { data } = node.getContext('2d').getImageData(0, 0, node.width, node.height);
      return data.filter((value, i) => i % 4 === 3 && value > 0).length;
    })()`);
    expect(painted).toBeGreaterThan(1000);
    const edges = await page.evaluate<string[]>(
      "[...document.querySelectorAll('.choices label')].map((label) => getComputedStyle(label).borderBottomColor)",
    );
    expect(edges[0]).not.toBe(edges[1]);
  });

  it('has docs without axe violations that load only files of this service', async () => {
    for (const value of ['light', 'dark']) {
      await page.send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value }] });
      await page.open(`${service.url}/docs`);
      expect(await axeViolations(page)).toEqual([]);
      await page.evaluate("document.querySelectorAll('[role=tab]')[2].click()");
      await expect
        .poll(() => page.evaluate('document.body.innerText'))
        .toContain(`Client.API_URL = "${service.url}/v1"`);
      await page.evaluate("document.getElementById('reference').scrollIntoView()");
      await expect.poll(() => count('#scalar a, #scalar button'), { timeout: 30_000 }).toBeGreaterThan(20);
      const background = await page.evaluate<string>(
        "getComputedStyle(document.querySelector('.references-rendered')).backgroundColor",
      );
      expect(background === 'rgb(255, 255, 255)' || background === 'rgba(0, 0, 0, 0)').toBe(value === 'light');
      for (const top of [0, 4000, 9000]) {
        await page.evaluate(`scrollTo(0, document.getElementById('reference').offsetTop + ${top})`);
        await new Promise((done) => setTimeout(done, 2000));
        expect(await axeViolations(page)).toEqual([]);
      }
    }
    // The policy blocks inline styles of the reference; its stylesheet has them, too.
    const unexpected = page.complaints.filter((complaint) => !complaint.includes('Applying inline style violates'));
    page.complaints.length = 0;
    expect(unexpected).toEqual([]);
  });
});
