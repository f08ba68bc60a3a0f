import { describe, expect, it } from 'vitest';
import { helloTarBz2, twoStreamsBz2, zerosBz2 } from './bunzip2.fixture.ts';
import { bunzip2 } from './bunzip2.ts';
import { findInTar } from './tar.ts';

const text = (bytes: Uint8Array | undefined): string => new TextDecoder().decode(bytes);

describe('bunzip2', () => {
  it('unpacks an archive of the reference bzip2 in which findInTar finds the members', () => {
    const archive = bunzip2(helloTarBz2);
    expect(text(findInTar(archive, 'pack/hello.txt'))).toBe('hello, who spoke when?\n'.repeat(40));
    expect(text(findInTar(archive, 'pack/empty.txt'))).toBe('');
    expect(findInTar(archive, 'pack')).toBeUndefined();
    expect(findInTar(archive, 'pack/other.txt')).toBeUndefined();
  });

  it('expands runs across blocks', () => {
    const zeros = bunzip2(zerosBz2);
    expect(zeros.length).toBe(1_000_000);
    expect(zeros.every((byte) => byte === 0)).toBe(true);
  });

  it('reads several streams in a file, like those of parallel packers', () => {
    expect(text(bunzip2(twoStreamsBz2))).toBe('first second');
  });

  it('refuses data that is truncated, changed or not bzip2', () => {
    expect(() => bunzip2(helloTarBz2.subarray(0, 100))).toThrow('ends too early');
    expect(() => bunzip2(new Uint8Array(0))).toThrow('ends too early');
    expect(() => bunzip2(new TextEncoder().encode('<html>no</html>'))).toThrow('not a bzip2 file');
    for (let at = 10; at < helloTarBz2.length; at += 7) {
      const changed = helloTarBz2.slice();
      changed[at] ^= 0x10;
      expect(() => bunzip2(changed), `byte ${at}`).toThrow('bzip2:');
    }
  });
});
