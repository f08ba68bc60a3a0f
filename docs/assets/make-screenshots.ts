/**
 * Takes screenshots of the playground and of `/docs` with Chromium, from a running service:
 *   ROLLCALL_URL=http://127.0.0.1:8787 ROLLCALL_KEY=… npx tsx docs/assets/make-screenshots.ts
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startBrowser } from '../../test/helpers/browser.ts';

const SIZES = [
  { width: 1280, height: 800 },
  { width: 390, height: 844 },
];
const NAMES = ['Sarah', 'Tom', 'Beth'];
const { ROLLCALL_URL: url, ROLLCALL_KEY: key } = process.env;

const wait = (ms: number) => new Promise((done) => setTimeout(done, ms));

async function main(): Promise<void> {
  const browser = await startBrowser(['--autoplay-policy=no-user-gesture-required', '--hide-scrollbars']);
  const page = await browser.newPage();
  const run = (script: string) => page.evaluate(`void (() => { ${script} })()`);

  /** Takes a screenshot at every size in both colour schemes. */
  async function take(name: string, scrollScript: string): Promise<void> {
    for (const { width, height } of SIZES) {
      for (const value of ['light', 'dark']) {
        const mobile = width < 500;
        await page.send('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile });
        await page.send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value }] });
        await wait(1000);
        await run(scrollScript);
        await wait(1000);
        const { data } = await page.send('Page.captureScreenshot', { format: 'png' });
        writeFileSync(join(import.meta.dirname, `${name}-${width}-${value}.png`), Buffer.from(String(data), 'base64'));
      }
    }
  }

  try {
    await page.open(`${url}/#key=${key}`);
    await run("document.getElementById('sample').click()");
    while (!(await page.evaluate("document.getElementById('status').textContent.startsWith('Done in')")))
      await wait(500);
    for (const [i, name] of NAMES.entries()) {
      await run(`document.querySelectorAll('.speaker')[${i}].click();
        document.getElementById('speaker-name').value = '${name}';
        document.querySelector('#sheet form').requestSubmit();`);
    }
    await run("document.querySelectorAll('.turn .play')[5].click()");
    await wait(2500);
    await run("document.getElementById('player').pause()");
    await wait(7000); // until the last message has disappeared
    await take('playground', "document.getElementById('result').scrollIntoView()");
    await page.open(`${url}/docs`);
    await take('docs', 'scrollTo(0, 0)');
  } finally {
    await browser.close();
  }
}

void main();
