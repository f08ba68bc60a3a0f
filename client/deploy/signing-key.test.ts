import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { keepSigningKey, moveSigningKey, signingKeyPath } from './signing-key.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'rollcall-signing-key-'));
});
afterEach(() => rmSync(root, { recursive: true }));

const oldPath = () => join(root, '.wrangler', 'rollcall', 'deploy', 'signing-key');
function writeOldCopy(): void {
  mkdirSync(join(root, '.wrangler', 'rollcall', 'deploy'), { recursive: true });
  writeFileSync(oldPath(), 'old\n');
}
const deleteLocalState = () => rmSync(join(root, '.wrangler'), { recursive: true, force: true });

describe('the copy of the deployed signing key', () => {
  it('survives the deletion of the local state and is readable only by its owner', () => {
    writeOldCopy();
    const path = keepSigningKey(root, 'secret');
    moveSigningKey(root);
    deleteLocalState();
    expect(readFileSync(path, 'utf8')).toBe('secret\n');
    expect((statSync(path).mode & 0o777).toString(8)).toBe('600');
  });

  it('is never overwritten', () => {
    for (const secret of ['first', 'second', 'third']) keepSigningKey(root, secret);
    const copies = ['', '.1', '.2'].map((ending) => readFileSync(`${signingKeyPath(root)}${ending}`, 'utf8'));
    expect(copies).toEqual(['third\n', 'first\n', 'second\n']);
  });

  it('is moved out of the local state', () => {
    moveSigningKey(root);
    expect(existsSync(signingKeyPath(root))).toBe(false);
    writeOldCopy();
    moveSigningKey(root);
    deleteLocalState();
    expect(readFileSync(signingKeyPath(root), 'utf8')).toBe('old\n');
  });
});
