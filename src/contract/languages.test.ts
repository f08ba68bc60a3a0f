import { expect, it } from 'vitest';
import { LANGUAGES, languageCode } from './languages.ts';

it('lists the languages of interface 2.2', () => {
  expect(LANGUAGES['asr-tdt-0.6b-v3']).toHaveLength(25);
  expect(LANGUAGES['asr-large-v3-turbo']).toHaveLength(100);
});

it('has a unique code for every language, which is read as itself', () => {
  for (const [model, names] of Object.entries(LANGUAGES) as [keyof typeof LANGUAGES, readonly string[]][]) {
    const codes = names.map((name) => languageCode(model, name));
    expect(codes.every((code) => /^[a-z]{2,3}$/.test(code ?? ''))).toBe(true);
    expect(new Set(codes).size).toBe(names.length);
    for (const code of codes) expect(languageCode(model, code ?? '')).toBe(code);
  }
});

it.each([
  ['English', 'en'],
  ['ENGLISH', 'en'],
  ['eng', 'en'],
  ['HaitianCreole', 'ht'],
  ['Haitian Creole', 'ht'],
  ['Cantonese', 'yue'],
  ['Hawaiian', 'haw'],
  ['Myanmar', 'my'],
])('reads %s as %s', (spelling, code) => {
  expect(languageCode('asr-large-v3-turbo', spelling)).toBe(code);
});

it.each(['', 'xx', 'Klingon', 'en-US', 'auto'])('returns undefined for %j', (spelling) => {
  expect(languageCode('asr-large-v3-turbo', spelling)).toBeUndefined();
});
