import { describe, expect, it } from 'vitest';
import { inline } from './remote.ts';

describe('inline', () => {
  it('writes values as SQL literals', () => {
    expect(inline('INSERT INTO t VALUES (?, ?, ?)', ["O'Brien?", 1.5, null])).toBe(
      "INSERT INTO t VALUES ('O''Brien?', 1.5, NULL)",
    );
  });

  it('refuses a wrong number of parameters and text with a zero character', () => {
    expect(() => inline('SELECT ?', [])).toThrow('as many parameters');
    expect(() => inline('SELECT 1', [1])).toThrow('as many parameters');
    expect(() => inline('SELECT ?', ['a\0b'])).toThrow('zero character');
  });
});
