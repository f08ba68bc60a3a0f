import { expect, it } from 'vitest';
import { fileIdOf } from '../formats/turn-text.ts';
import type { JobSpec } from './app-services.ts';
import { detach } from './attachments.ts';

it.each(['data:', 'DATA:', 'Data:'])(
  'takes the audio of a %s address out of the row: schemes are of either case',
  (scheme) => {
    const url = `${scheme}audio/wav;base64,UklGRg==`;
    const spec = { kind: 'voiceprint', request: { url } } as unknown as JobSpec;
    const { stored, attachments } = detach(spec, 'job');
    expect(stored.request.url).toBe('data:');
    expect(attachments.map(({ text }) => text)).toEqual([url]);
    expect(fileIdOf(url)).toBe('audio');
  },
);
