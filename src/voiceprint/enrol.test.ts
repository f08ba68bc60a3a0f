import { describe, expect, it } from 'vitest';
import type { Diarization, SpeakerVoice } from '../diarization/diarization.ts';
import { enrol } from './enrol.ts';

/** A diarization of speakers who talk one after the other. @param seconds speech of each speaker */
function diarization(...seconds: number[]): Diarization {
  let at = 0;
  const turns = seconds.map((length, speaker) => {
    const turn = { speaker, startSeconds: at, endSeconds: at + length, confidence: [] };
    at += length;
    return turn;
  });
  const voices: SpeakerVoice[] = seconds.map((secondsAlone, speaker) => ({
    embeddingId: 'e',
    embedding: Float32Array.of(speaker, 1),
    secondsAlone,
  }));
  const tracks = { resolutionSeconds: 0.02, confidence: new Uint8Array(0), speech: new Uint8Array(0) };
  return {
    durationSeconds: at,
    speakers: seconds.length,
    turns,
    exclusiveTurns: [],
    tracks: { ...tracks, crosstalk: new Uint8Array(0), speakers: [] },
    voices,
  };
}
const different = () => -5;
const alike = () => 5;

describe('enrolment', () => {
  it('returns the voice of a recording of one person', () => {
    const enrolled = enrol(diarization(12), different);
    expect(enrolled).toMatchObject({ ok: true, value: { voice: { secondsAlone: 12 } } });
    expect(enrolled.ok && enrolled.value.warning).toBeUndefined();
  });

  it('returns the voice with most speech, and warns about brief others', () => {
    const enrolled = enrol(diarization(0.8, 14, 0.9), different);
    expect(enrolled).toMatchObject({ ok: true, value: { voice: { secondsAlone: 14 } } });
    expect(enrolled.ok && enrolled.value.warning).toMatch(/^1\.7 s of other voices/);
    // Two seconds or more of others are left out only below a share.
    expect(enrol(diarization(20, 2.5), different)).toMatchObject({ ok: true });
    expect(enrol(diarization(9, 2.5), different)).toMatchObject({ ok: false });
  });

  it('fails with several_speakers for a recording of two people', () => {
    expect(enrol(diarization(9, 6), different)).toMatchObject({ ok: false, error: { kind: 'several_speakers' } });
  });

  it('counts two diarized speakers with similar voices as one person', () => {
    const enrolled = enrol(diarization(9, 6), alike);
    expect(enrolled).toMatchObject({ ok: true, value: { voice: { secondsAlone: 9 } } });
    expect(enrolled.ok && enrolled.value.warning).toBeUndefined();
  });

  it('ignores the similarity of voices that share a microphone and a room', () => {
    expect(enrol(diarization(9, 6), () => 2)).toMatchObject({ ok: false, error: { kind: 'several_speakers' } });
  });

  it.each([[0.9], [0.1, 0.2]])('fails with too_little_speech for %d s', (...seconds) => {
    expect(enrol(diarization(...seconds), different)).toMatchObject({
      ok: false,
      error: { kind: 'too_little_speech' },
    });
  });

  it('rounds the reported speech down', () => {
    const enrolled = enrol(diarization(0.98), different);
    expect(enrolled.ok ? '' : enrolled.error.message).toMatch(/^The recording has 0\.9 s .* at least 1 s\.$/);
  });

  it('warns if there is little speech', () => {
    const enrolled = enrol(diarization(3.2), different);
    expect(enrolled.ok && enrolled.value.warning).toMatch(/3\.2 s of speech; 10 to 30 s/);
  });
});
