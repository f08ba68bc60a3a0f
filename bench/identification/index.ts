import { nodeAudio } from '../../client/audio/ports.ts';
import { DEFAULT_IDENTIFICATION } from '../../src/voiceprint/identification.ts';
import { nodeEngine } from '../node-engine.ts';
import { packOfService, pldaOf } from '../packs.ts';
import { table } from '../report.ts';
import { say } from '../shared.ts';
import { dumpVoices } from './dump.ts';
import { type Identifier, observe } from './observe.ts';
import { equalErrorRate, reliability, scoreMatches } from './score.ts';
import { loadTrials } from './trials.ts';

const THRESHOLDS = [0, 50, 80];

/** Part `identification`: who of the enrolled people is found in generated conversations, and how far the confidences are right. */
export async function measureIdentification(): Promise<string> {
  const audio = nodeAudio();
  const pack = packOfService();
  const identifier: Identifier = {
    engine: await nodeEngine(pack),
    plda: pldaOf(pack),
    parameters: pack.pack.embedding.identification ?? DEFAULT_IDENTIFICATION,
  };
  const halves = process.env.ROLLCALL_FIT === '1' ? (['fit', 'check'] as const) : (['check'] as const);
  let report = '**Not measured:** `ROLLCALL_ENROLLED` names no folder of `training/identification`.';
  for (const half of halves) {
    const set = await loadTrials(half, audio);
    if (!set) return report;
    say(`  ${half}: ${set.trials.length} conversations, ${set.enrolments.size} voiceprints`);
    const observed = await observe(set, identifier, say);
    dumpVoices(half, observed);
    for (const refusal of observed.refusals) say(`  refused: ${refusal}`);
    report = render(observed, identifier);
  }
  return report;
}

function render(observed: Awaited<ReturnType<typeof observe>>, identifier: Identifier): string {
  const percent = (share: number) => (100 * share).toFixed(1);
  const rows = THRESHOLDS.flatMap((threshold) =>
    [true, false].map((exclusive) => {
      const { score } = scoreMatches(observed, identifier, { threshold, exclusive });
      const values = [score.accuracy, score.found, score.mistaken, score.falseMatch].map(percent);
      return [String(threshold), exclusive ? 'yes' : 'no', ...values];
    }),
  );
  const { pairs } = scoreMatches(observed, identifier, { threshold: 0, exclusive: true });
  const bins = reliability(pairs).map(({ count, confidence, same }, bin) => [
    `${10 * bin}–${10 * bin + 10}`,
    String(count),
    count === 0 ? '–' : confidence.toFixed(0),
    count === 0 ? '–' : same.toFixed(0),
  ]);
  const total = [...observed.prints.values()];
  const eer = equalErrorRate(pairs.map(({ confidence, isSame }) => ({ score: confidence, isSame })));
  return `${observed.conversations.length} generated conversations of two to five people, 30 s to 2 minutes, near and far, telephone, noise
(\`training/identification\`, seed 31, half \`check\`); voiceprints of 4 to 29 s in other recordings of the same people: ${total.filter((v) => v !== undefined).length} of ${total.length}
recordings were taken. About a third of the speakers are not enrolled, and up to three people are enrolled who do not speak. Percent of
the seconds of diarized speakers:

${table(['threshold', 'exclusive', 'right', 'enrolled: found', 'enrolled: another name', 'not enrolled: given a name'], rows, 2)}

Confidence of a diarized speaker for a submitted voice (${pairs.length} pairs; equal error rate ${eer.toFixed(1)} %), and how many are the same person:

${table(['confidence', 'pairs', 'mean', 'same person %'], bins, 1)}`;
}
