import { logOddsOf, type MatchingOptions, matchSpeakers } from '../../src/voiceprint/identification.ts';
import type { Identifier, Observed } from './observe.ts';

/** Shares of the seconds of diarized speakers, by what became of them. */
export interface IdentificationScore {
  /** Named rightly, or rightly left without a name. */
  readonly accuracy: number;
  /** Of those whose voiceprint was sent: named, and rightly. */
  readonly found: number;
  /** Of those whose voiceprint was sent: given another's name. */
  readonly mistaken: number;
  /** Of those whose voiceprint was not sent: given a name all the same. */
  readonly falseMatch: number;
}

/** A confidence of one diarized speaker for one submitted voice, and whether they are the same person. */
export interface Pair {
  readonly confidence: number;
  readonly isSame: boolean;
}

/** Matches every conversation's speakers to its voiceprints, and compares with who they are. */
export function scoreMatches(
  observed: Observed,
  identifier: Identifier,
  options: MatchingOptions,
): { readonly score: IdentificationScore; readonly pairs: readonly Pair[] } {
  const pairs: Pair[] = [];
  const seconds = { sent: 0, found: 0, mistaken: 0, unsent: 0, falseMatch: 0 };
  for (const { trial, speakers } of observed.conversations) {
    const labels = trial.enrolled.filter((name) => observed.prints.get(name) !== undefined);
    const references = labels.map((name) => observed.prints.get(name)!);
    if (labels.length === 0 || speakers.length === 0) continue;
    const voices = speakers.map(({ voice }) => voice);
    const logOdds = logOddsOf(voices, references, identifier.parameters);
    const matches = matchSpeakers(logOdds, speakers.length, labels.length, options);
    matches.forEach(({ match, confidence }, index) => {
      const speaker = speakers[index];
      labels.forEach((label, column) => {
        pairs.push({ confidence: confidence[column], isSame: label === speaker.truth });
      });
      const name = match === undefined ? undefined : labels[match];
      if (speaker.truth !== undefined && labels.includes(speaker.truth)) {
        seconds.sent += speaker.seconds;
        if (name === speaker.truth) seconds.found += speaker.seconds;
        else if (name !== undefined) seconds.mistaken += speaker.seconds;
      } else {
        seconds.unsent += speaker.seconds;
        if (name !== undefined) seconds.falseMatch += speaker.seconds;
      }
    });
  }
  const right = seconds.found + seconds.unsent - seconds.falseMatch;
  return {
    pairs,
    score: {
      accuracy: right / (seconds.sent + seconds.unsent),
      found: seconds.found / seconds.sent,
      mistaken: seconds.mistaken / seconds.sent,
      falseMatch: seconds.falseMatch / seconds.unsent,
    },
  };
}

/** Pairs by their confidence: how many, the mean confidence, and the share that are the same person. */
export function reliability(pairs: readonly Pair[], bins = 10) {
  return Array.from({ length: bins }, (_, bin) => {
    const inside = pairs.filter(({ confidence }) => Math.min(bins - 1, Math.floor((confidence * bins) / 100)) === bin);
    const mean = (value: (pair: Pair) => number) => inside.reduce((sum, pair) => sum + value(pair), 0) / inside.length;
    return {
      count: inside.length,
      confidence: mean((pair) => pair.confidence),
      same: 100 * mean((pair) => (pair.isSame ? 1 : 0)),
    };
  });
}

/**
 * Equal error rate over all pairs, in percent: where as many different people pass as same ones are held back. Scores
 * are whole percents, and many are equal: those are held back together. Between two scores both rates go straight, as
 * in `training/evaluation/scoring.py`.
 *
 * @returns NaN where all pairs are of one kind
 */
export function equalErrorRate(scores: readonly { readonly score: number; readonly isSame: boolean }[]): number {
  const sorted = [...scores].sort((a, b) => a.score - b.score);
  const same = sorted.filter(({ isSame }) => isSame).length;
  const different = sorted.length - same;
  if (same === 0 || different === 0) return Number.NaN;
  let heldBack = 0;
  let passed = different;
  let before = { miss: 0, falseAlarm: 1 };
  for (const [index, { score, isSame }] of sorted.entries()) {
    if (isSame) heldBack++;
    else passed--;
    if (sorted.at(index + 1)?.score === score) continue;
    const [miss, falseAlarm] = [heldBack / same, passed / different];
    if (miss >= falseAlarm) {
      const [above, below] = [before.falseAlarm - before.miss, miss - falseAlarm];
      return 100 * (before.miss + (above / (above + below)) * (miss - before.miss));
    }
    before = { miss, falseAlarm };
  }
  return Number.NaN; // not reached: at the end all are held back and none pass
}
