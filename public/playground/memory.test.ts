import { expect, it } from 'vitest';
import { MAX_VOICES, Memory, type Store } from './memory.ts';

function store(): Store {
  const kept = new Map<string, string>();
  return {
    getItem: (name) => kept.get(name) ?? null,
    setItem: (name, value) => void kept.set(name, value),
    removeItem: (name) => void kept.delete(name),
  };
}

it('stores jobs with their edits, the newest first', () => {
  const kept = store();
  const memory = new Memory(() => kept);
  for (let i = 0; i < 60; i++) memory.rememberJob({ id: `j${i}`, name: 'a talk' });
  expect(memory.jobs.slice(0, 2).map(({ id }) => id)).toEqual(['j59', 'j58']);
  expect(memory.jobs).toHaveLength(50);
  const edits = [{ kind: 'rename', speaker: 'SPEAKER_00', name: 'Sarah' }] as const;
  memory.rememberJob({ id: 'j58', name: 'a talk', edits });
  expect(new Memory(() => kept).jobs[1]).toEqual({ id: 'j58', name: 'a talk', edits });
});

it('stores one voice for each name, up to the limit of a job', () => {
  const memory = new Memory(() => store());
  expect(memory.voices).toEqual([]);
  const kept = store();
  const full = new Memory(() => kept);
  const voice = (name: string) => ({ name, voiceprint: 'x', addedAt: '' });
  for (let i = 0; i < MAX_VOICES; i++) expect(full.rememberVoice(voice(`v${i}`))).toBe(true);
  expect(full.rememberVoice(voice('one more'))).toBe(false);
  expect(full.rememberVoice({ ...voice('v0'), voiceprint: 'y' })).toBe(true);
  expect(full.voices).toHaveLength(MAX_VOICES);
  full.forgetVoice('v0');
  expect(full.voices.some(({ name }) => name === 'v0')).toBe(false);
});

it('works if the browser refuses to store', () => {
  const memory = new Memory(() => {
    throw new DOMException('denied', 'SecurityError');
  });
  memory.rememberJob({ id: 'j', name: 'a talk' });
  expect([memory.jobs, memory.rememberVoice({ name: 'v', voiceprint: 'x', addedAt: '' })]).toEqual([[], false]);
});
