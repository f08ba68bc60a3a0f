import { describe, expect, it } from 'vitest';
import { type FormValues, nameOf, readForm } from './request.ts';

const file = new File(['audio'], 'a.mp3');
const GOOD: FormValues = {
  key: 'a.b.c',
  source: 'file',
  file,
  address: '',
  model: 'precision-2',
  speakers: '',
  transcribe: false,
};
const fields = (change: Partial<FormValues>) => {
  const read = readForm({ ...GOOD, ...change });
  return read.ok ? [] : read.faults.map(({ field }) => field);
};
const value = (change: Partial<FormValues>) => {
  const read = readForm({ ...GOOD, ...change });
  return read.ok ? read.value : undefined;
};

describe('readForm', () => {
  it('converts the form to a request', () => {
    expect(value({})).toEqual({ key: 'a.b.c', source: { kind: 'file', file }, model: 'precision-2' });
    expect(
      value({ source: 'address', address: ' https://example.com/a.mp3 ', model: 'community-1', speakers: ' 3 ' }),
    ).toEqual({
      key: 'a.b.c',
      source: { kind: 'address', url: 'https://example.com/a.mp3' },
      model: 'community-1',
      numSpeakers: 3,
    });
    expect(value({ transcribe: true })).toMatchObject({ transcription: true });
    expect(fields({ transcribe: true, model: 'community-1' })).toEqual(['transcribe']);
    expect(value({ transcribe: true, source: 'microphone' })).not.toHaveProperty('transcription');
    expect(value({ source: 'microphone' })?.source).toEqual({ kind: 'microphone' });
  });

  it('accepts a key that was copied with the text before it', () => {
    const address = 'http://127.0.0.1:8787/#key=a.b.c';
    for (const key of ['key: a.b.c', ' Bearer a.b.c\n', 'a.b.c', address, `playground: ${address}`])
      expect(value({ key })?.key).toBe('a.b.c');
  });

  it('returns all faults at once with their fields', () => {
    expect(fields({ key: ' ', file: undefined, speakers: 'two' })).toEqual(['key', 'file', 'speakers']);
    expect(fields({ file: new File([], 'a.mp3') })).toEqual(['file']);
    const large = Object.defineProperty(new File(['audio'], 'a.mp3'), 'size', { value: 1024 ** 3 + 1 });
    expect(fields({ file: large })).toEqual(['file']);
    expect(fields({ key: 'gelöscht' })).toEqual(['key']);
    for (const speakers of ['0', '-1', '1.5', '1e3', '99999']) expect(fields({ speakers })).toEqual(['speakers']);
    for (const address of ['', 'ftp://x', 'meeting.mp3', 'javascript:1'])
      expect(fields({ source: 'address', address })).toEqual(['address']);
  });
});

it('names a recording after its file', () => {
  const named = (url: string) => nameOf({ kind: 'address', url });
  expect(nameOf({ kind: 'file', file })).toBe('a.mp3');
  expect(named('https://example.com/talks/monday.mp3?token=x#t')).toBe('monday.mp3');
  expect(named('https://example.com/My%20Talk%20%C3%A4.mp3')).toBe('My Talk ä.mp3');
  expect(named('https://example.com/100%.mp3')).toBe('100%.mp3');
  expect(named('https://example.com/talks/')).toBe('talks');
  expect(named('media://monday')).toBe('monday');
  expect(named('data:audio/wav;base64,AAAA')).toBe('data');
});
