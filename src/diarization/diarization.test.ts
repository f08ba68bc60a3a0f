import { describe, expect, it } from 'vitest';
import { collect } from '../../test/helpers/collect.ts';
import { type Diarization, writeOutput } from './diarization.ts';

const frames = 10000;
const diarization: Diarization = {
  durationSeconds: 200,
  speakers: 2,
  turns: [
    { speaker: 0, startSeconds: 1.245, endSeconds: 3.38, confidence: [93, 16] },
    { speaker: 1, startSeconds: 3, endSeconds: 4, confidence: [7, 88] },
  ],
  exclusiveTurns: [{ speaker: 0, startSeconds: 1.245, endSeconds: 3.38 }],
  tracks: {
    resolutionSeconds: 0.02,
    confidence: new Uint8Array(frames).fill(93),
    speech: new Uint8Array(frames).fill(250),
    crosstalk: new Uint8Array(frames).fill(0),
    speakers: [new Uint8Array(frames).fill(255), new Uint8Array(frames).fill(1)],
  },
};

describe('writeOutput', () => {
  it('writes only the turns without flags', async () => {
    expect((await collect(writeOutput(diarization, {}))).join('')).toBe(
      '{"diarization":[{"speaker":"SPEAKER_00","start":1.245,"end":3.38},{"speaker":"SPEAKER_01","start":3,"end":4}]}',
    );
  });

  it('writes every member in a fixed order, in chunks', async () => {
    const chunks = await collect(
      writeOutput(
        { ...diarization, warning: 'cut "short"' },
        {
          exclusive: true,
          confidence: true,
          turnLevelConfidence: true,
          speechProbability: true,
          crosstalkProbability: true,
          speakerProbability: true,
        },
      ),
    );
    expect(Math.max(...chunks.map((chunk) => chunk.length))).toBeLessThan(64 * 1024);
    const document = JSON.parse(chunks.join(''));
    expect(Object.keys(document)).toEqual([
      'diarization',
      'exclusiveDiarization',
      'confidence',
      'speechProbability',
      'crosstalkProbability',
      'speakerProbability',
      'warning',
    ]);
    expect(document.diarization[0].confidence).toEqual({ SPEAKER_00: 93, SPEAKER_01: 16 });
    expect(document.exclusiveDiarization).toEqual([{ speaker: 'SPEAKER_00', start: 1.245, end: 3.38 }]);
    expect(document.confidence.resolution).toBe(0.02);
    expect(document.confidence.score.length).toBe(frames);
    expect(document.speechProbability.score[9999]).toBe(0.98);
    expect(document.crosstalkProbability).toEqual({ score: new Array(frames).fill(0), resolution: 0.02 });
    expect(document.speakerProbability.score.SPEAKER_01[4096]).toBe(0.004);
    expect(document.warning).toBe('cut "short"');
  });

  it('writes an empty exclusive list', async () => {
    const none = { ...diarization, turns: [], exclusiveTurns: [] };
    expect((await collect(writeOutput(none, { exclusive: true }))).join('')).toBe(
      '{"diarization":[],"exclusiveDiarization":[]}',
    );
  });
});
