import { describe, expect, it } from 'vitest';
import { parseDiarizeBody } from './diarize.ts';
import { TRANSCRIPTION_MODELS, type TranscriptionModel } from './languages.ts';

const parse = (body: object) =>
  parseDiarizeBody({ url: 'https://example.com/a.wav', ...body }, { transcription: TRANSCRIPTION_MODELS });
const fieldsOf = (body: object) => {
  const parsed = parse(body);
  return parsed.ok ? [] : parsed.errors.map(({ field }) => field);
};
const configOf = (transcriptionConfig: object | null) => {
  const parsed = parse({ transcription: true, transcriptionConfig });
  return parsed.ok ? parsed.value.transcriptionConfig : parsed.errors;
};

describe('transcription settings with a configured engine', () => {
  it.each([
    [null, { model: 'asr-tdt-0.6b-v3' }],
    [{}, { model: 'asr-tdt-0.6b-v3' }],
    [{ model: null, language: null }, { model: 'asr-tdt-0.6b-v3' }],
    [{ model: 'parakeet-tdt-0.6b-v3' }, { model: 'asr-tdt-0.6b-v3' }],
    [{ model: 'faster-whisper-large-v3-turbo' }, { model: 'asr-large-v3-turbo' }],
    [{ language: 'German' }, { model: 'asr-tdt-0.6b-v3', language: 'de' }],
    [
      { model: 'asr-large-v3-turbo', language: 'JA' },
      { model: 'asr-large-v3-turbo', language: 'ja' },
    ],
  ])('reads %j as %j', (config, expected) => {
    expect(configOf(config)).toEqual(expected);
  });

  it('refuses a language of the other model', () => {
    expect(fieldsOf({ transcriptionConfig: { language: 'Japanese' } })).toEqual(['transcriptionConfig.language']);
    expect(fieldsOf({ transcriptionConfig: { language: 'Japanese', model: 'asr-large-v3-turbo' } })).toEqual([]);
  });

  it('reports all faults together, also those of both language and model', () => {
    const config = { model: 'whisper', language: 'Klingon' };
    expect(fieldsOf({ transcriptionConfig: config })).toEqual([
      'transcriptionConfig.model',
      'transcriptionConfig.language',
    ]);
    expect(fieldsOf({ transcription: 1, numSpeakers: 0, transcription_config: config }).sort()).toEqual([
      'numSpeakers',
      'transcription',
      'transcription_config.language',
      'transcription_config.model',
    ]);
    expect(fieldsOf({ transcriptionConfig: { model: 3, language: 'Japanese' } })).toEqual([
      'transcriptionConfig.model',
    ]);
    expect(fieldsOf({ transcriptionConfig: { model: 3, language: 4 } })).toHaveLength(2);
    expect(fieldsOf({ transcriptionConfig: 'none' })).toEqual(['transcriptionConfig']);
  });

  it('reads the alias if the canonical name is null', () => {
    const parsed = parse({ transcription: true, transcriptionConfig: null, transcription_config: { language: 'fr' } });
    expect(parsed.ok && parsed.value.transcriptionConfig).toEqual({ model: 'asr-tdt-0.6b-v3', language: 'fr' });
    expect(fieldsOf({ transcription_config: { language: 'xx' } })).toEqual(['transcription_config.language']);
    expect(fieldsOf({ transcription_config: 3 }), 'reported once').toEqual(['transcription_config']);
  });

  it('ignores the settings without a requested transcription', () => {
    const parsed = parse({ transcriptionConfig: { language: 'fr' } });
    expect(parsed.ok && parsed.value.transcriptionConfig).toBeUndefined();
  });

  it('refuses a model without a configured engine', () => {
    const body = { url: 'https://example.com/a.wav', transcription: true };
    const errorsOf = (more: object, transcription: readonly TranscriptionModel[]) => {
      const parsed = parseDiarizeBody({ ...body, ...more }, { transcription });
      return parsed.ok ? [] : parsed.errors;
    };
    expect(errorsOf({}, [])).toEqual([{ field: 'transcription', message: 'is not configured on this service' }]);
    expect(errorsOf({}, ['asr-tdt-0.6b-v3'])).toEqual([]);
    expect(errorsOf({}, ['asr-large-v3-turbo'])).toMatchObject([{ field: 'transcriptionConfig.model' }]);
    expect(errorsOf({ transcription_config: { model: 'asr-large-v3-turbo' } }, ['asr-large-v3-turbo'])).toEqual([]);
    expect(errorsOf({ transcription: false }, [])).toEqual([]);
  });

  it('refuses a transcription with community-1', () => {
    expect(fieldsOf({ model: 'community-1', transcription: true })).toEqual(['transcription']);
    expect(fieldsOf({ model: 'community-1', transcription: false })).toEqual([]);
  });
});

it('reports a contradiction of two fields only if both are valid', () => {
  expect(fieldsOf({ minSpeakers: '3', maxSpeakers: 2 })).toEqual(['minSpeakers']);
  expect(fieldsOf({ numSpeakers: 0, minSpeakers: 2 })).toEqual(['numSpeakers']);
  expect(fieldsOf({ numSpeakers: 2, minSpeakers: 2, maxSpeakers: 2 })).toEqual([]);
});

it('accepts whole numbers of speakers from 1, in any notation', () => {
  for (const numSpeakers of [1, 2.0, 1e20, Number.MAX_SAFE_INTEGER]) expect(fieldsOf({ numSpeakers })).toEqual([]);
  const messages = [0.5, 2.5, Number.POSITIVE_INFINITY, '2', 0, -1].map((numSpeakers) => {
    const parsed = parse({ numSpeakers });
    return parsed.ok ? '' : parsed.errors[0].message;
  });
  expect(messages.slice(0, 4)).toEqual(Array(4).fill('must be a whole number'));
  expect(messages.slice(4)).toEqual(Array(2).fill('must be at least 1'));
});

it('ignores inherited property names as fields and models', () => {
  const body = JSON.parse('{"url":"https://example.com/a","__proto__":{"exclusive":true},"constructor":1}');
  const parsed = parseDiarizeBody(body, { transcription: TRANSCRIPTION_MODELS });
  expect(parsed.ok && parsed.value.exclusive).toBe(false);
  expect(fieldsOf({ transcriptionConfig: { model: 'toString' } })).toEqual(['transcriptionConfig.model']);
  expect(fieldsOf({ transcriptionConfig: { language: 'constructor' } })).toEqual(['transcriptionConfig.language']);
});

it('reports faults of all labels and of single ones, and drops no label', () => {
  const many = Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`k${i}`, i === 0 ? 1 : 'v']));
  expect(fieldsOf({ metadata: many }).sort()).toEqual(['metadata', 'metadata.k0']);
  expect(fieldsOf({ metadata: JSON.parse('{"__proto__":"x","a":"b"}') })).toEqual(['metadata']);
  expect(fieldsOf({ metadata: { '': 'x' } })).toEqual(['metadata']);
  expect(fieldsOf({ metadata: { constructor: 'x' } })).toEqual([]);
  // A key of megabytes is neither split nor repeated in the answer.
  for (const character of ['.', 'k']) {
    for (const value of [1, 'x'])
      expect(fieldsOf({ metadata: { [character.repeat(4_000_000)]: value } })).toEqual(['metadata']);
  }
});
