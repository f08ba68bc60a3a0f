import { expect, it } from 'vitest';
import { MAX_VOICES, Memory, type Store } from './memory.ts';

function store(): Store {
  const stored = new Map<string, string>();
  return {
    getItem: (name) => stored.get(name) ?? null,
    setItem: (name, value) => void stored.set(name, value),
    removeItem: (name) => void stored.delete(name),
  };
}

it('stores jobs with their edits, the newest first', () => {
  const stored = store();
  const memory = new Memory(() => stored);
  for (let i = 0; i < 60; i++) memory.rememberJob({ id: `j${i}`, name: 'a talk' });
  expect(memory.jobs.slice(0, 2).map(({ id }) => id)).toEqual(['j59', 'j58']);
  expect(memory.jobs).toHaveLength(50);
  const edits = [{ kind: 'rename', speaker: 'SPEAKER_00', name: 'Sarah' }] as const;
  memory.rememberJob({ id: 'j58', name: 'a talk', edits });
  expect(new Memory(() => stored).jobs[1]).toEqual({ id: 'j58', name: 'a talk', edits });
});

it('stores one voice for each name, up to the limit of a job', () => {
  const memory = new Memory(() => store());
  expect(memory.voices).toEqual([]);
  const stored = store();
  const full = new Memory(() => stored);
  const voice = (name: string) => ({ name, voiceprint: 'x', addedAt: '' });
  for (let i = 0; i < MAX_VOICES; i++) expect(full.rememberVoice(voice(`v${i}`))).toBe(true);
  expect(full.rememberVoice(voice('one more'))).toBe(false);
  expect(full.rememberVoice({ ...voice('v0'), voiceprint: 'y' })).toBe(true);
  expect(full.voices).toHaveLength(MAX_VOICES);
  full.forgetVoice('v0');
  expect(full.voices.some(({ name }) => name === 'v0')).toBe(false);
});

it('returns no data if the browser refuses to store any', () => {
  const memory = new Memory(() => {
    throw new DOMException('denied', 'SecurityError');
  });
  memory.rememberJob({ id: 'j', name: 'a talk' });
  expect([memory.jobs, memory.rememberVoice({ name: 'v', voiceprint: 'x', addedAt: '' })]).toEqual([[], false]);
});
