import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { root } from '../helpers/local-process.ts';

/** Two concatenated literals. */
const SUM = /(['`])((?:(?!\1)[^\\]|\\.)*)\1\s*\+\s*(['`])((?:(?!\3)[^\\]|\\.)*)\3/g;
const LITERAL = /'((?:[^'\\\n]|\\.)*)'|"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`/g;
/** Full sentences, faults of a field, and errors of a live stream. */
const SENTENCE = /^(…|[A-Z]).* .*\.$/;
const FIELD = /^(must|is|has|contains|contradicts|keys|ended|came) /;
const LIVE = /(#refuse|#reportFault|#sendError)\(\s*([\w.]+,\s+)?$/;
/** Code before literals that describe the API or are read only by operators. */
const BEFORE_NON_MESSAGE = new RegExp(
  [
    String.raw`(description|summary|example|message: string|\b[A-Z]\w+): *$`,
    String.raw`describe\($|unusable\($|fault\([^)]*, $`,
  ].join('|'),
);
const NOT_PUBLIC =
  /^(must be (a text|a list|an object|1)$|must be a SHA-256|must stay inside|is isl|Returns the id|Your API key)/;

/** A message as written on the page, with `…` for inserted values. */
const asOnPage = (text: string) =>
  text
    .replace(/\$\{(?:[^{}]|\{[^{}]*\})*\}/g, '…')
    .replace(/\\(.)/g, '$1')
    .replace(/\s+/g, ' ')
    .trim();

function joinLiterals(code: string): string {
  const joined = code.replace(SUM, (_, _quote, first: string, _other, second: string) => `\`${first}${second}\``);
  return joined === code ? code : joinLiterals(joined);
}

function messagesIn(source: string): string[] {
  const code = joinLiterals(
    source
      .replace(/\/\*[\s\S]*?\*\//g, '')
      .replace(/(^|\s)\/\/.*$/gm, '')
      .replace(/const DESCRIPTION = \[[\s\S]*?\n\]/g, ''),
  );
  return [...code.matchAll(LITERAL)].flatMap((match) => {
    const before = code.slice(Math.max(0, match.index - 40), match.index).replace(/\s+/g, ' ');
    const text = asOnPage(match[1] ?? match[2] ?? match[3]);
    const isMessage = SENTENCE.test(text) || FIELD.test(text) || LIVE.test(before);
    return isMessage && !BEFORE_NON_MESSAGE.test(before) && !NOT_PUBLIC.test(text) ? [text] : [];
  });
}

it('docs/errors.md lists exactly the public messages of the code', () => {
  const files = ['src', 'durable-objects'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true }).map((name) => join(root, folder, String(name))),
  );
  // The service does not use the reader over FFmpeg yet (decision 12).
  const isSource = (name: string) => name.endsWith('.ts') && !/(\.(test|fixture)|media-reader)\.ts$/.test(name);
  const messages = new Set(files.filter(isSource).flatMap((name) => messagesIn(readFileSync(name, 'utf8'))));
  const page = readFileSync(join(root, 'docs/errors.md'), 'utf8');
  const rows = new Set([...page.matchAll(/^\| [^|]*\| ([^|]*) \|/gm)].map(([, message]) => message.trim()));
  rows.delete('Message');
  expect([...messages].filter((message) => !rows.has(message))).toEqual([]);
  expect([...rows].filter((row) => !messages.has(row))).toEqual([]);
});
