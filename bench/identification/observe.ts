import {
  assemble,
  type Diarization,
  type Plda,
  partsOf,
  type SpeakerVoice,
  settingsOf,
} from '../../src/diarization/index.ts';
import type { Engine } from '../../src/jobs/job-ports.ts';
import { type Enrolment, enrol, type IdentificationParameters, logOddsOf } from '../../src/voiceprint/index.ts';
import { analyse } from '../pipeline.ts';
import type { LabelledSegment } from '../score/rttm.ts';
import type { Trial, TrialSet } from './trials.ts';

/** All that identification needs of a pack. */
export interface Identifier {
  readonly engine: Engine;
  readonly plda: Plda | undefined;
  readonly parameters: IdentificationParameters;
}

/** What the service would find out about a set of trials, before any matching. */
export interface Observed {
  /** By name; undefined where the service refuses the recording. */
  readonly prints: ReadonlyMap<string, SpeakerVoice | undefined>;
  readonly refusals: readonly string[];
  readonly conversations: readonly ObservedConversation[];
}

export interface ObservedConversation {
  readonly trial: Trial;
  /** Diarized speakers. */
  readonly speakers: readonly ObservedSpeaker[];
}

export interface ObservedSpeaker {
  readonly voice: SpeakerVoice;
  /** Who of the reference talks most in this speaker's turns; undefined where nobody does. */
  readonly truth: string | undefined;
  /** Seconds of the speaker's turns. */
  readonly seconds: number;
}

const SETTINGS = settingsOf('precision-2');

/** Diarizes all conversations and enrolment recordings of a set as the service does. */
export async function observe(set: TrialSet, identifier: Identifier, say: (text: string) => void): Promise<Observed> {
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
    if (conversations.length % 20 === 0) say(`  ${conversations.length} of ${set.trials.length} conversations`);
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
