import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { dataUrlFault, readBase64 } from './data-url.ts';

const decode = (text: string) => {
  const into = new Uint8Array(Math.ceil((text.length * 3) / 4));
  const read = readBase64(text, 0, into);
  return read.ok ? into.subarray(0, read.bytes) : read.message;
};

describe('base64', () => {
  it('is decoded in both alphabets, with and without padding, escapes and line breaks', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        const text = Buffer.from(bytes).toString('base64');
        const spellings = [
          text,
          text.replaceAll('=', ''),
          Buffer.from(bytes).toString('base64url'),
          encodeURIComponent(text),
          text.replace(/.{7}/g, '$&\r\n '),
        ];
        for (const spelling of spellings) {
          expect(decode(spelling)).toEqual(bytes);
          expect(readBase64(spelling, 0)).toEqual({ ok: true, bytes: bytes.length });
        }
      }),
    );
  });

  it.each([
    ['AA*A', /character 3 /],
    ['AAAA@', /character 5 /],
    ['AA==AA', /character 5 /],
    ['A%zzA', /character 2 /],
    ['AA%', /character 3 /],
    ['AAÄA', /character 3 /],
    ['AA\u{1f600}', /character 3 /],
    ['AAAAA', /in the middle of a byte/],
  ])('%j is refused', (text, message) => {
    expect(decode(text)).toMatch(message);
    expect(readBase64(text, 0).ok).toBe(false);
  });
});

describe('a data: URL', () => {
  const MIB = 1024 * 1024;
  const escaped = (bytes: number) => `data:audio/wav,${'%00'.repeat(bytes)}`;

  it.each([
    'data:',
    'data:audio/wav;base64',
    'data:,',
    'data:audio/wav;base64,',
    'data:;base64,====',
    'data:;base64,%0A ',
  ])('%j has no data', (url) => expect(dataUrlFault(url)).toBe('The data: URL has no data after the comma.'));

  it('may have exactly 8 MiB of data', () => {
    const base64 = (bytes: number) => `data:;base64,${Buffer.alloc(bytes).toString('base64')}`;
    for (const spell of [
      base64,
      escaped,
      (bytes: number) => `data:,${'é'.repeat(bytes / 2)}${'a'.repeat(bytes % 2)}`,
    ]) {
      expect(dataUrlFault(spell(8 * MIB))).toBeUndefined();
      expect(dataUrlFault(spell(8 * MIB + 1))).toBe('The data: URL has more than 8 MiB.');
    }
  });

  it('need not be base64, and may have any media type', () => {
    for (const url of ['data:,abc', 'DATA:,a%20b', 'data:,50%', 'data:audio/wav;codecs=1;Base64 ,UklGRg==']) {
      expect(dataUrlFault(url), url).toBeUndefined();
    }
  });
});
