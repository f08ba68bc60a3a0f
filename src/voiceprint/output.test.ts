import { expect, it } from 'vitest';
import { collect } from '../../test/helpers/collect.ts';
import type { Diarization } from '../diarization/diarization.ts';
import { writeIdentification } from './output.ts';

/** A diarization of one speaker in so many turns of a second. */
function diarizationOf(turns: number): Diarization {
  const none = new Uint8Array(0);
  return {
    durationSeconds: 2 * turns,
    speakers: 1,
    turns: Array.from({ length: turns }, (_, at) => ({
      speaker: 0,
      startSeconds: 2 * at,
      endSeconds: 2 * at + 1,
      confidence: [100],
    })),
    exclusiveTurns: [],
    tracks: { resolutionSeconds: 0.02, confidence: none, speech: none, crosstalk: none, speakers: [] },
  };
}

it('comes in pieces, however long the names are: a thousand turns with those of fifty people were one of tens of megabytes', async () => {
  // A hundred characters each, some of which take six in JSON.
  const labels = Array.from({ length: 50 }, (_, at) =>
    String(at).padEnd(100, at % 2 === 0 ? '\u0001' : '🎤'.repeat(2)),
  );
  const matches = [{ match: 1, confidence: labels.map((_, at) => at) }];
  const chunks = await collect(
    writeIdentification(diarizationOf(1500), matches, labels, { turnLevelConfidence: true }),
  );
  expect(Math.max(...chunks.map((chunk) => chunk.length))).toBeLessThan(128 * 1024);
  const document = JSON.parse(chunks.join(''));
  expect(document.identification).toHaveLength(1500);
  expect(document.identification[1499]).toMatchObject({ speaker: labels[1], start: 2998, match: labels[1] });
  expect(Object.keys(document.identification[700].confidence)).toHaveLength(50);
  expect(document.voiceprints[0].confidence[labels[49]]).toBe(49);
});
