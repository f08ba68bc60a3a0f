import { describe, expect, it } from 'vitest';
import { crc32 } from '../audio/crc.ts';
import type { SpeakerVoice } from '../diarization/diarization.ts';
import { decodeVoiceprint, encodeVoiceprint } from './voiceprint.ts';

const voice = (dimension = 192, seed = 1): SpeakerVoice => {
  const values = Float32Array.from({ length: dimension }, (_, d) => Math.sin(seed * 12.9898 * (d + 1)));
  const length = Math.sqrt(values.reduce((sum, value) => sum + value * value, 0));
  return { embeddingId: 'embedder-v6', embedding: values.map((value) => value / length), secondsAlone: 12.34 };
};
const faultOf = (text: string) => {
  const decoded = decodeVoiceprint(text);
  return decoded.ok ? 'none' : decoded.error.kind;
};
const bytesOf = (text: string) => Buffer.from(text, 'base64');

describe('a voiceprint', () => {
  it('keeps embedder, seconds of speech and embedding', () => {
    const original = voice();
    const decoded = decodeVoiceprint(encodeVoiceprint(original));
    expect(decoded.ok && decoded.value).toMatchObject({ embeddingId: 'embedder-v6', secondsAlone: 12.34 });
    const { embedding } = (decoded as { value: SpeakerVoice }).value;
    const cosine = embedding.reduce((sum, value, d) => sum + value * original.embedding[d], 0);
    expect(cosine).toBeGreaterThan(1 - 1e-6);
    expect(cosine).toBeLessThan(1 + 1e-6);
  });

  it('is short text that survives line breaks', () => {
    const text = encodeVoiceprint(voice());
    expect(text).toMatch(/^[A-Za-z0-9+/]+={0,2}$/);
    expect(text.length).toBeLessThan(600);
    expect(faultOf(text.replace(/(.{76})/g, '$1\r\n'))).toBe('none');
  });

  it('is rejected if any byte has changed', () => {
    const bytes = bytesOf(encodeVoiceprint(voice(8)));
    for (let at = 0; at < bytes.length; at++) {
      for (const flip of [1, 0x80]) {
        const changed = Buffer.from(bytes);
        changed[at] ^= flip;
        expect(faultOf(changed.toString('base64')), `byte ${at}`).not.toBe('none');
      }
    }
  });

  it('is rejected if it is truncated or followed by other bytes', () => {
    const bytes = bytesOf(encodeVoiceprint(voice(8)));
    for (let length = 0; length < bytes.length; length++) {
      expect(faultOf(bytes.subarray(0, length).toString('base64')), `${length} bytes`).not.toBe('none');
    }
    expect(faultOf(Buffer.concat([bytes, bytes]).toString('base64'))).toBe('damaged');
  });

  it('distinguishes foreign text from a later version', () => {
    expect(['', '!', 'Zm9v', 'x'.repeat(20_000), '{"a":1}'].map(faultOf)).toEqual(Array(5).fill('foreign'));
    const later = bytesOf(encodeVoiceprint(voice()));
    later[4] = 2;
    expect(decodeVoiceprint(later.toString('base64'))).toEqual({ ok: false, error: { kind: 'version', version: 2 } });
  });

  it('decoding rejects megabytes of white space as foreign text', () => {
    expect(faultOf(`${' '.repeat(5_000_000)}!`)).toBe('foreign');
  });

  it('with an embedding of zeros is rejected', () => {
    expect(faultOf(encodeVoiceprint({ ...voice(4), embedding: new Float32Array(4) }))).toBe('damaged');
  });

  it('cannot be written with an invalid embedder id', () => {
    expect(() => encodeVoiceprint({ ...voice(), embeddingId: 'a b' })).toThrow(/cannot be written/);
    expect(() => encodeVoiceprint({ ...voice(), embeddingId: 'x'.repeat(65) })).toThrow(/cannot be written/);
  });
});

it('computes the CRC-32 of zip', () => {
  expect(crc32(new TextEncoder().encode('123456789'))).toBe(0xcbf43926);
});
