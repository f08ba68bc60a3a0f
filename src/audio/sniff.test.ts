import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { audioPorts, concat, memorySource, probeAudio } from '../../test/helpers/audio.ts';
import { id3v2 } from '../../test/helpers/mp3-frames.ts';
import { withChecksums } from '../../test/helpers/ogg.ts';
import { wavFile } from '../../test/helpers/wav.ts';
import { textKind } from './sniff.ts';

const text = (value: string) => new TextEncoder().encode(value);
const magic = (head: string | number[], length = 2000) => {
  const bytes = new Uint8Array(length);
  bytes.set(typeof head === 'string' ? Uint8Array.from(head, (c) => c.charCodeAt(0)) : head);
  return bytes;
};
/** Frames of one length that begin alike. */
const repeated = (head: number[], frameBytes: number) =>
  concat(...Array.from({ length: 30 }, () => magic(head, frameBytes)));
const ports = audioPorts();
const probe = (bytes: Uint8Array) => probeAudio(memorySource(bytes), ports.decoder);

describe('names unsupported formats', () => {
  it.each<[string, Uint8Array]>([
    ['a Windows Media file', magic([0x30, 0x26, 0xb2, 0x75, 0x8e, 0x66, 0xcf, 0x11])],
    ['an AVI file', magic('RIFF\0\0\0\0AVI LIST')],
    ['a big-endian WAV file (RIFX)', magic('RIFX\0\0\0\0WAVE')],
    ['a Wave64 file', magic([0x72, 0x69, 0x66, 0x66, 0x2e, 0x91, 0xcf, 0x11])],
    ['a WavPack file', magic('wvpk')],
    ["a Monkey's Audio file", magic('MAC ')],
    ['an MPEG program stream', magic([0, 0, 1, 0xba])],
    ['a RealMedia file', magic('.RMF\0\0\0\x12')],
    ['a RealMedia file', magic('.ra\xfd\0\x04')],
    ['an MXF file', magic([0x06, 0x0e, 0x2b, 0x34, 0x02, 0x05, 0x01, 0x01, 0x0d, 0x01, 0x02, 0x01])],
    ['a Flash animation', magic('FWS\x06')],
    ['a Flash animation', magic('CWS\x0a')],
    ['a Creative Voice file', magic('Creative Voice File\x1a\x1a\0')],
    ['a recording of a dictation machine (DSS)', magic('\x02dss')],
    ['a recording of a dictation machine (DSS)', magic('\x03ds2')],
    ['a recording of a Sony voice recorder (DVF, MSV)', magic('MS_VOICE')],
    ['a QCELP file', magic('RIFF\0\0\0\0QLCMfmt ')],
    ['bare DTS audio', repeated([0x7f, 0xfe, 0x80, 0x01, 0xfc, 0x3c], 1024)],
    ['bare Dolby Digital audio (AC-3)', repeated([0x0b, 0x77, 0, 0, 0x1c, 0x40], 2 * 768)],
    ['bare Dolby Digital audio (AC-3)', repeated([0x0b, 0x77, 0, 0, 0x55, 0x40], 2 * 418)],
    ['bare Dolby Digital audio (AC-3)', repeated([0x0b, 0x77, 0, 0xbf, 0x32, 0x87], 2 * 192)],
    ['bare TrueHD or MLP audio', magic([0xa0, 0x23, 0xff, 0xd8, 0xf8, 0x72, 0x6f, 0xba])],
  ])('%s', async (name, bytes) => {
    expect(await probe(bytes)).toMatchObject({
      ok: false,
      error: {
        kind: 'unsupported',
        message: `The file is ${name}, which is not supported yet; convert it to FLAC, MP3 or 16-bit WAV.`,
      },
    });
  });
});

describe('names the fault of empty containers', () => {
  it.each<[string, string, Uint8Array]>([
    ['corrupt', 'The MP4 file has no index', magic('\0\0\0\x20ftypM4A \0\0\0\0')],
    ['corrupt', 'The MP4 file has no index', magic('\0\0\0\x14ftypqt  ')],
    ['no_samples', 'The OGG file has no audio track', withChecksums(magic('OggS\0\x02'))],
    ['corrupt', 'The header of the Matroska file', magic('\x1a\x45\xdf\xa3\x9f\x42\x82\x88matroska')],
    [
      'corrupt',
      'The MPEG transport stream has no table',
      concat(...Array.from({ length: 10 }, () => magic([0x47, 0x40], 188))),
    ],
  ])('%s: %s', async (kind, start, bytes) => {
    expect(await probe(bytes)).toMatchObject({ ok: false, error: { kind, message: expect.stringContaining(start) } });
  });
});

describe('names files without audio', () => {
  it.each<[string, Uint8Array]>([
    ['a web page', text('<!DOCTYPE html>\n<html lang="en"><head></head></html>')],
    ['a web page', text('\ufeff  \n<HTML><body>Sign in</body></HTML>')],
    ['a web page', text('<!-- saved -->\n<html></html>')],
    ['a web page', text('<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"></html>')],
    ['XML', text('<?xml version="1.0"?>\n<Error><Code>AccessDenied</Code></Error>')],
    ['XML', text('<rss version="2.0"></rss>')],
    ['JSON', text('{"error":"not found"}')],
    ['JSON', text(' [ {"a": 1} ]')],
    ['a playlist', text('#EXTM3U\nhttp://example.com/a.mp3\n')],
    ['text', text('Not found')],
    ['text', text('Ne\u010dekaj na m\u011b, p\u0159ij\u010f \u017elu\u0165ou\u010dk\u00fd k\u016f\u0148')],
    ['a PDF document', magic('%PDF-1.7')],
    ['a ZIP archive or an office document', magic('PK\x03\x04')],
    ['a gzip archive', magic([0x1f, 0x8b, 8])],
    ['a PNG image', magic('\x89PNG\r\n\x1a\n')],
    ['a JPEG image', magic([0xff, 0xd8, 0xff, 0xe0])],
    ['a HEIC or AVIF image', magic('\0\0\0\x18ftypheic\0\0\0\0mif1heic\0\0\x07\xe8meta')],
    ['a HEIC or AVIF image', magic('\0\0\0\x14ftypavif\0\0\0\0mif1')],
    ['a WebP image', magic('RIFF\0\0\0\0WEBPVP8 ')],
  ])('%s', async (name, bytes) => {
    expect(await probe(bytes)).toMatchObject({
      ok: false,
      error: { kind: 'not_audio', message: `The file is ${name}, not audio.` },
    });
  });

  it('an empty file', async () => {
    expect(await probe(new Uint8Array(0))).toMatchObject({ ok: false, error: { kind: 'empty' } });
  });

  it('unknown bytes', async () => {
    for (const bytes of [
      new Uint8Array(1),
      new Uint8Array(100_000),
      magic([1, 2, 3, 4, 5]),
      magic([0xff, 0xfe, 0x41, 0]),
    ]) {
      expect(await probe(bytes)).toMatchObject({ ok: false, error: { kind: 'not_audio' } });
    }
  });
});

it('advises on formats for an unsupported coding, but not for values out of bounds', async () => {
  const wav = (tag: number, sampleRateHz: number) =>
    probe(wavFile({ sampleRateHz, channels: 1, tag, bits: 16 }, new Uint8Array(3200)));
  expect(await wav(0xff, 16000)).toMatchObject({
    error: { message: 'The WAV file holds AAC, which is not supported; convert it to FLAC, MP3 or 16-bit WAV.' },
  });
  expect(await wav(1, 500)).toMatchObject({
    error: { message: 'The WAV file has a sample rate of 500 Hz; 1000 to 384000 Hz are supported.' },
  });
});

it('reads audio after the two sync bytes of AC-3', async () => {
  const mp3 = readFileSync('test/fixtures/conversation.mp3');
  expect(await probe(concat(Uint8Array.of(0x0b, 0x77), mp3.subarray(100_000)))).toMatchObject({ ok: true });
});

it('recognises a web page after a tag', async () => {
  expect(await probe(concat(id3v2(100), text('<html></html>')))).toMatchObject({
    ok: false,
    error: { message: expect.stringContaining('a web page') },
  });
});

it('recognises text by its bytes', () => {
  expect(textKind(new Uint8Array(0))).toBeUndefined();
  expect(textKind(Uint8Array.of(0x41, 0))).toBeUndefined();
  expect(textKind(Uint8Array.of(0x41, 0xc3))).toBe('text');
  expect(textKind(Uint8Array.of(0x41, 0xc3, 0x28))).toBeUndefined();
});
