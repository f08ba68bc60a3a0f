import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { decodeFile } from '../client/audio/file.ts';
import { nodeAudio } from '../client/audio/ports.ts';
import type { AudioPorts } from '../src/audio/recording.ts';
import { assemble } from '../src/diarization/assemble.ts';
import type { Plda } from '../src/diarization/clustering/plda.ts';
import type { Diarization, SpeakerVoice } from '../src/diarization/diarization.ts';
import { settingsOf } from '../src/diarization/parameters.ts';
import { partsOf } from '../src/diarization/part.ts';
import type { Engine } from '../src/jobs/job-ports.ts';
import { type Enrolment, enrol } from '../src/voiceprint/enrol.ts';
import {
  DEFAULT_IDENTIFICATION,
  type IdentificationParameters,
  logOddsOf,
  type MatchingOptions,
  matchSpeakers,
} from '../src/voiceprint/identification.ts';
import { analyse, nodeEngine, packOfService, pldaOf } from './pipeline.ts';
import { table } from './report.ts';
import { type LabelledSegment, parseSingleFileRttm } from './score/der.ts';
import { logProgress } from './shared.ts';

/** A generated conversation with the voiceprints that are sent with it. Made by `training/identification`. */
interface Trial {
  readonly name: string;
  readonly kind: string;
  readonly samples: Float32Array;
  readonly reference: readonly LabelledSegment[];
  /** Names as in the reference; some of these people are not in the conversation. */
  readonly enrolled: readonly string[];
}

interface TrialSet {
  readonly trials: readonly Trial[];
  /** Enrolment recordings by name. */
  readonly enrolments: ReadonlyMap<string, Float32Array>;
}

/** The conversations of one half below `ROLLCALL_ENROLLED`; undefined if there is no such folder. */
async function loadTrials(half: 'fit' | 'check', ports: AudioPorts): Promise<TrialSet | undefined> {
  const root = process.env.ROLLCALL_ENROLLED;
  const folder = root && join(root, half);
  if (!folder || !existsSync(join(folder, 'trials.json'))) return undefined;
  const listed = JSON.parse(readFileSync(join(folder, 'trials.json'), 'utf8')) as Omit<
    Trial,
    'samples' | 'reference'
  >[];
  const trials: Trial[] = [];
  for (const { name, kind, enrolled } of listed) {
    const reference = parseSingleFileRttm(readFileSync(join(folder, `${name}.rttm`), 'utf8'));
    trials.push({ name, kind, enrolled, reference, samples: await decodeFile(join(folder, `${name}.flac`), ports) });
  }
  const enrolments = new Map<string, Float32Array>();
  for (const name of new Set(trials.flatMap(({ enrolled }) => enrolled))) {
    enrolments.set(name, await decodeFile(join(folder, 'prints', `${name}.flac`), ports));
  }
  return { trials, enrolments };
}

/** What identification needs of a pack. */
interface Identifier {
  readonly engine: Engine;
  readonly plda: Plda | undefined;
  readonly parameters: IdentificationParameters;
}

/** Diarization of a set of trials, before matching. */
interface Observed {
  /** Voiceprints by name; undefined if the service refuses the recording. */
  readonly prints: ReadonlyMap<string, SpeakerVoice | undefined>;
  readonly refusals: readonly string[];
  readonly conversations: readonly ObservedConversation[];
}

interface ObservedConversation {
  readonly trial: Trial;
  /** Diarized speakers. */
  readonly speakers: readonly ObservedSpeaker[];
}

interface ObservedSpeaker {
  readonly voice: SpeakerVoice;
  /** Speaker of the reference with most speech in this speaker's turns; undefined if these hold none. */
  readonly truth: string | undefined;
  /** Seconds of the speaker's turns. */
  readonly seconds: number;
}

const SETTINGS = settingsOf('precision-2');

/** Diarizes all conversations and enrolment recordings of a set as the service does. */
export async function observe(
  set: TrialSet,
  identifier: Identifier,
  logProgress: (text: string) => void,
): Promise<Observed> {
  const prints = new Map<string, SpeakerVoice | undefined>();
  const refusals: string[] = [];
  for (const [name, samples] of set.enrolments) {
    const enrolled = enrolment(await diarize(samples, identifier), identifier);
    if (!enrolled.ok) refusals.push(`${name}: ${enrolled.error.message}`);
    prints.set(name, enrolled.ok ? enrolled.value.voice : undefined);
  }
  const conversations: ObservedConversation[] = [];
  for (const trial of set.trials) {
    const diarization = await diarize(trial.samples, identifier);
    conversations.push({ trial, speakers: diarization ? speakersOf(diarization, trial.reference) : [] });
    if (conversations.length % 20 === 0) logProgress(`  ${conversations.length} of ${set.trials.length} conversations`);
  }
  return { prints, refusals, conversations };
}

async function diarize(samples: Float32Array, { engine, plda }: Identifier): Promise<Diarization | undefined> {
  const part = await analyse(samples, engine, SETTINGS);
  const parts = partsOf([part]);
  const options = { voices: true, speakerTracks: false, pldaOf: async () => plda };
  const result = await assemble(parts, { totalSamples: samples.length }, SETTINGS, {}, options);
  return result.ok ? result.value : undefined;
}

function enrolment(diarization: Diarization | undefined, { parameters }: Identifier): Enrolment {
  if (diarization === undefined) return { ok: false, error: { kind: 'too_little_speech', message: 'no speech' } };
  return enrol(diarization, (a, b) => logOddsOf([a], [b], parameters).at(0)!);
}

function speakersOf({ voices = [], turns }: Diarization, reference: readonly LabelledSegment[]): ObservedSpeaker[] {
  return voices.map((voice, speaker) => {
    const shared = new Map<string, number>();
    let seconds = 0;
    for (const turn of turns) {
      if (turn.speaker !== speaker) continue;
      seconds += turn.endSeconds - turn.startSeconds;
      for (const { speaker: name, startMicros, endMicros } of reference) {
        const both = Math.min(endMicros / 1e6, turn.endSeconds) - Math.max(startMicros / 1e6, turn.startSeconds);
        if (both > 0) shared.set(name, (shared.get(name) ?? 0) + both);
      }
    }
    const [most] = [...shared].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
    return { voice, truth: most?.[0], seconds };
  });
}

/** Shares of the seconds of diarized speakers. */
interface IdentificationScore {
  /** Named correctly, or correctly left without a name. */
  readonly accuracy: number;
  /** Of speakers whose voiceprint was sent: named correctly. */
  readonly found: number;
  /** Of speakers whose voiceprint was sent: given another person's name. */
  readonly mistaken: number;
  /** Of speakers whose voiceprint was not sent: given any name. */
  readonly falseMatch: number;
}

/** A confidence of one diarized speaker for one submitted voice, and whether they are the same person. */
interface Pair {
  readonly confidence: number;
  readonly isSame: boolean;
}

/** Matches every conversation's speakers with its voiceprints, and scores the matches. */
function scoreMatches(
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

/** Bins of pairs by confidence: number, mean confidence, and percent that are the same person. */
function reliability(pairs: readonly Pair[], bins = 10) {
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
 * Equal error rate over all pairs, in percent: the share of same pairs rejected equals that of different pairs
 * accepted. Scores are whole percents, so that many are equal: pairs of equal score are rejected together. Both rates
 * are interpolated linearly between two scores, as in `training/evaluation/scoring.py`.
 *
 * @returns NaN if all pairs are same, or all different
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
  return Number.NaN; // not reached: after the last score all pairs are rejected
}

/** Writes the voices of a half for `training/identification/fit.py`: `voices.json` beside its trials. */
function dumpVoices(half: string, observed: Observed): void {
  const voiceOf = ({ embedding, secondsAlone }: SpeakerVoice) => ({ secondsAlone, embedding: Array.from(embedding) });
  const document = {
    prints: Object.fromEntries(
      [...observed.prints].flatMap(([name, voice]) => (voice === undefined ? [] : [[name, voiceOf(voice)]])),
    ),
    conversations: observed.conversations.map(({ trial, speakers }) => ({
      enrolled: trial.enrolled,
      speakers: speakers
        .filter(({ voice }) => voice.embedding.length > 0)
        .map(({ voice, truth, seconds }) => ({ ...voiceOf(voice), truth: truth ?? null, seconds })),
    })),
  };
  writeFileSync(join(process.env.ROLLCALL_ENROLLED ?? '.', half, 'voices.json'), JSON.stringify(document));
}

const THRESHOLDS = [0, 50, 80];

/** Benchmark `identification`: accuracy on generated conversations, and reliability of the confidences. */
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
    logProgress(`  ${half}: ${set.trials.length} conversations, ${set.enrolments.size} voiceprints`);
    const observed = await observe(set, identifier, logProgress);
    dumpVoices(half, observed);
    for (const refusal of observed.refusals) logProgress(`  refused: ${refusal}`);
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
  const accepted = total.filter((voice) => voice !== undefined).length;
  const enrolledHead = ['enrolled: found', 'enrolled: another name', 'not enrolled: given a name'];
  return `${observed.conversations.length} generated conversations of two to five people, 30 s to 2 minutes, near, far,
telephone, noise (\`training/identification\`, seed 31, half \`check\`); voiceprints of 4 to 29 s of other recordings of
the same people: ${accepted} of ${total.length} recordings were accepted. About a third of the speakers are not
enrolled, and up to three people are enrolled who do not speak. Percent of the seconds of diarized speakers:

${table(['threshold', 'exclusive', 'right', ...enrolledHead], rows, 2)}

Confidence of a diarized speaker for a submitted voice (${pairs.length} pairs; equal error rate ${eer.toFixed(1)} %),
and the percent of pairs that are the same person:

${table(['confidence', 'pairs', 'mean', 'same person %'], bins, 1)}`;
}
