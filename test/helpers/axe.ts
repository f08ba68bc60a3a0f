import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from './browser.ts';

const script = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** What axe finds wrong with a page as it is now: rule and elements of each violation. */
export async function axeViolations(page: Page): Promise<string[]> {
  await page.evaluate(`${script}; undefined`);
  return page.evaluate<string[]>(`axe.run().then(({ violations }) =>
    violations.map(({ id, nodes }) => [id, ...nodes.map(({ html }) => html)].join(' ')))`);
}
