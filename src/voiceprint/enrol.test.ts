import { describe, expect, it } from 'vitest';
import type { Diarization, SpeakerVoice } from '../diarization/diarization.ts';
import { enrol } from './enrol.ts';

/** A diarization of speakers who talk one after the other for so many seconds. */
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
  it('takes the voice of a recording of one person', () => {
    const enrolled = enrol(diarization(12), different);
    expect(enrolled).toMatchObject({ ok: true, value: { voice: { secondsAlone: 12 } } });
    expect(enrolled.ok && enrolled.value.warning).toBeUndefined();
  });

  it('takes who talks most, and says that others were left out', () => {
    const enrolled = enrol(diarization(0.8, 14, 0.9), different);
    expect(enrolled).toMatchObject({ ok: true, value: { voice: { secondsAlone: 14 } } });
    expect(enrolled.ok && enrolled.value.warning).toMatch(/^1\.7 s of another voice/);
    // Two seconds and more count by their share.
    expect(enrol(diarization(20, 2.5), different)).toMatchObject({ ok: true });
    expect(enrol(diarization(9, 2.5), different)).toMatchObject({ ok: false });
  });

  it('refuses a recording of two', () => {
    expect(enrol(diarization(9, 6), different)).toMatchObject({ ok: false, error: { kind: 'several_speakers' } });
  });

  it('takes one person for one, where the diarization heard two that sound alike', () => {
    const enrolled = enrol(diarization(9, 6), alike);
    expect(enrolled).toMatchObject({ ok: true, value: { voice: { secondsAlone: 9 } } });
    expect(enrolled.ok && enrolled.value.warning).toBeUndefined();
  });

  it.each([[0.9], [0.1, 0.2]])('refuses hardly any speech (%d s)', (...seconds) => {
    expect(enrol(diarization(...seconds), different)).toMatchObject({
      ok: false,
      error: { kind: 'too_little_speech' },
    });
  });

  it('tells less than what is needed where it is less', () => {
    const enrolled = enrol(diarization(0.98), different);
    expect(enrolled.ok ? '' : enrolled.error.message).toMatch(/^The recording holds 0\.9 s .* at least 1 s\.$/);
  });

  it('warns of little speech', () => {
    const enrolled = enrol(diarization(3.2), different);
    expect(enrolled.ok && enrolled.value.warning).toMatch(/3\.2 s of speech; 10 to 30 s/);
  });
});
