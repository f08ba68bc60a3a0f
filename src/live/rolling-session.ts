import { SAMPLE_RATE_HZ } from '../audio/audio-ports.ts';
import { concatenated } from '../audio/memory.ts';
import { toMilliseconds } from '../diarization/numerics.ts';
import { Segmenter } from '../diarization/segmenter.ts';
import { logOddsOf, matchSpeakers } from '../voiceprint/identification.ts';
import { Corrections, type CorrectionsState } from './corrections.ts';
import { LIVE, type LiveTiming, timingOf } from './live-parameters.ts';
import type { LiveEngine, LiveEvent, LiveSession, LiveSettings, TurnEvent } from './live-session.ts';
import { mergeWindows, SegmentedWindow, segmentWindow } from './segmented-window.ts';
import { LabelAssigner, LiveResegmentation } from './speaker-mapping.ts';
import { StreamBuffer, type StreamBufferState } from './stream-buffer.ts';
import { Speakers, type SpeakersState } from './stream-speakers.ts';
import { inOrder, SentActivity, type SentActivityState, Turns, type TurnsState } from './turn-events.ts';

/**
 * Version of the snapshot's layout: length of the JSON text (uint32, little-endian), the JSON text in UTF-8, then the
 * numbers of all typed arrays. The text has the type and length of each array in its place: `{"$": "f32", "n": 192}`.
 */
const VERSION = 9;
const TYPES = { f32: Float32Array, i32: Int32Array, u8: Uint8Array, i8: Int8Array } as const;
type TypeName = keyof typeof TYPES;
type Numbers = Float32Array | Int32Array | Uint8Array | Int8Array;

/** In every JavaScript runtime, but not in TypeScript's library of the language. */
declare class TextEncoder {
  encode(text: string): Uint8Array;
}
declare class TextDecoder {
  decode(bytes: Uint8Array): string;
}

/** Ids of the models that a state belongs to. */
function modelsOf({ segmentation, embedding }: Pick<LiveEngine, 'segmentation' | 'embedding'>): string {
  return `${segmentation.info.id} ${embedding.info.id}`;
}

/** @param models ids of the models that the state belongs to */
function packState(state: SessionState, models: string): Uint8Array {
  const arrays: Numbers[] = [];
  const text = JSON.stringify({ version: VERSION, models, state }, (_key, value: unknown) => {
    const type = (Object.keys(TYPES) as TypeName[]).find((name) => value instanceof TYPES[name]);
    if (type === undefined) return value === undefined ? null : value;
    arrays.push(value as Numbers);
    return { $: type, n: (value as Numbers).length };
  });
  const head = new TextEncoder().encode(text);
  const headLength = new Uint8Array(4);
  new DataView(headLength.buffer).setUint32(0, head.length, true);
  const views = arrays.map(({ buffer, byteOffset, byteLength }) => new Uint8Array(buffer, byteOffset, byteLength));
  return concatenated(Uint8Array, [headLength, head, ...views]);
}

/** @throws if the bytes are not a snapshot of this version */
function unpackState(bytes: Uint8Array): { readonly state: SessionState; readonly models: string } {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const headEnd = 4 + view.getUint32(0, true);
  let at = headEnd;
  // Parsing visits the arrays in the order of writing: depth first, members in order.
  const read = ({ $, n }: { $: TypeName; n: number }): Numbers => {
    const type = TYPES[$];
    const array = new type(bytes.slice(at, at + n * type.BYTES_PER_ELEMENT).buffer);
    at += array.byteLength;
    return array;
  };
  const parsed = JSON.parse(new TextDecoder().decode(bytes.subarray(4, headEnd)), (_key, value: unknown) => {
    if (typeof value === 'object' && value !== null && '$' in value) return read(value as { $: TypeName; n: number });
    return value === null ? undefined : value;
  }) as { version: number; models: string; state: SessionState };
  if (parsed.version !== VERSION) throw new Error(`the snapshot has version ${parsed.version}`);
  return parsed;
}

/** Frames of sent activity that are kept before the longest window. */
const FRAMES_BEFORE_WINDOW = 100;

/** Start or end of a turn, by label and frame. */
interface LabelEvent {
  readonly kind: 'start' | 'end';
  readonly label: number;
  readonly frame: number;
}

/** A window as stored in a snapshot. */
type WindowState = Pick<SegmentedWindow, 'firstFrame' | 'frames' | 'speakers' | 'activations' | 'expected' | 'active'>;

/**
 * A session as stored in a snapshot. Some keys differ from the fields that they store: `looks` is `#windows`, `told` is
 * `#sent`, `past` is `#earlierWindows`, `ear` is `#buffer`.
 */
interface SessionState {
  readonly settings: LiveSettings;
  readonly looks: number;
  readonly decidedUntil: number;
  readonly told: SentActivityState;
  readonly kept: number;
  readonly past: readonly WindowState[];
  readonly ear: StreamBufferState;
  readonly speakers: SpeakersState;
  readonly turns: TurnsState;
  readonly corrections: CorrectionsState | undefined;
}

/**
 * Segments the last seconds of a stream several times a second, and assigns labels to the local speakers of each live
 * window.
 */
class RollingSession implements LiveSession {
  readonly #timing: LiveTiming;
  readonly #segmenter: Segmenter;
  readonly #buffer: StreamBuffer;
  readonly #speakers: Speakers;
  readonly #turns: Turns;
  readonly #sent = new SentActivity();
  readonly #labels: LabelAssigner;
  /** Undefined without corrections in the settings. */
  readonly #corrections: Corrections | undefined;
  readonly #shift: number;
  /** Number of windows so far. */
  #windows = 0;
  /** Frames before this one are decided. */
  #decidedUntil = 0;
  /** The last windows, latest first. */
  #earlierWindows: readonly SegmentedWindow[] = [];

  constructor(
    private readonly engine: LiveEngine,
    private readonly settings: LiveSettings,
    private readonly pause: () => Promise<void>,
  ) {
    this.#timing = timingOf(settings);
    this.#segmenter = new Segmenter(engine.segmentation, engine.melPower);
    this.#buffer = new StreamBuffer(engine, this.#timing);
    this.#speakers = new Speakers(engine, settings.maxSpeakers, this.#timing.windowSamples, pause);
    this.#shift = engine.segmentation.info.frameShiftSamples;
    this.#turns = new Turns(this.#shift / SAMPLE_RATE_HZ);
    const state = { segmenter: this.#segmenter, buffer: this.#buffer, speakers: this.#speakers, sent: this.#sent };
    this.#labels = new LabelAssigner(state, this.#timing, this.#shift, pause);
    this.#corrections = settings.corrections ? new Corrections(this.#shift) : undefined;
  }

  async push(samples: Float32Array): Promise<LiveEvent[]> {
    const events: LiveEvent[] = [];
    for (let at = 0; at < samples.length; ) {
      const next = (this.#windows + 1) * this.#timing.hopSamples;
      const count = Math.min(samples.length - at, next - this.#buffer.end);
      this.#buffer.append(samples.subarray(at, at + count));
      at += count;
      if (this.#buffer.end === next) {
        this.#windows++;
        events.push(...(await this.#processWindow(this.#timing.lookaheadSamples)));
      }
    }
    return events;
  }

  async finish(): Promise<LiveEvent[]> {
    const total = this.#buffer.end;
    const events: LiveEvent[] = [];
    if (total > 0) {
      this.#windows++;
      events.push(...(await this.#processWindow(0, true)));
    }
    const lastFrame = Math.ceil(total / this.#shift);
    const ends: TurnEvent[] = [];
    for (const label of this.#turns.openLabels()) {
      const frame = this.#turns.end(label, Math.min(this.#decidedUntil, lastFrame));
      ends.push(this.#event('end', label, frame));
      await this.#corrections?.end(label, frame, this.#buffer, (at) => this.#sent.isAlone(at, label));
    }
    events.push(...inOrder(ends));
    if (this.#corrections && (await this.#speakers.recluster(total / SAMPLE_RATE_HZ, true))) {
      // No later start can give a number to a label: all changes may be sent.
      events.push(...this.#correct(this.#corrections, () => true));
    }
    return events;
  }

  #state(): SessionState {
    return {
      settings: this.settings,
      looks: this.#windows,
      decidedUntil: this.#decidedUntil,
      told: this.#sent.save(),
      kept: this.#labels.kept,
      past: this.#earlierWindows,
      ear: this.#buffer.save(),
      speakers: this.#speakers.save(),
      turns: this.#turns.save(),
      corrections: this.#corrections?.save(),
    };
  }

  restore(state: SessionState): void {
    this.#windows = state.looks;
    this.#decidedUntil = state.decidedUntil;
    this.#sent.restore(state.told);
    this.#labels.restore(state.kept);
    this.#earlierWindows = state.past.map(
      (w) => new SegmentedWindow(w.firstFrame, w.frames, w.speakers, w.activations, w.expected, w.active),
    );
    this.#buffer.restore(state.ear);
    this.#speakers.restore(state.speakers);
    this.#turns.restore(state.turns);
    if (state.corrections) this.#corrections?.restore(state.corrections);
  }

  snapshot(): Uint8Array {
    return packState(this.#state(), modelsOf(this.engine));
  }

  /** Segments the last seconds and decides the frames up to `lookaheadSamples` before the end. */
  async #processWindow(lookaheadSamples: number, isLast = false): Promise<LiveEvent[]> {
    const now = this.#buffer.end;
    const start = Math.max(now - this.#timing.windowSamples, Math.min(0, now - LIVE.minWindowSamples));
    const newest = await segmentWindow(this.#segmenter, this.#buffer.samples(start, now), start);
    const window = mergeWindows(newest, this.#earlierWindows);
    this.#earlierWindows = [newest, ...this.#earlierWindows].slice(0, this.#timing.mergedWindows);
    await this.pause();
    await this.#buffer.runTrunk();
    const labels = await this.#labels.assign(window, this.#decidedUntil, isLast);
    const until = Math.min(window.endFrame, Math.floor((now - lookaheadSamples) / this.#shift));
    const resegmentation = new LiveResegmentation(this.#speakers, this.#shift);
    await resegmentation.update(this.#buffer, window, this.#decidedUntil, until);
    const events: LiveEvent[] = inOrder(await this.#decide(window, labels, until, resegmentation));
    const isReclustered = await this.#speakers.recluster(now / SAMPLE_RATE_HZ);
    if (isReclustered && this.#corrections) {
      events.push(...this.#correct(this.#corrections, (label) => this.#turns.hasNumber(label)));
    }
    await this.pause();
    return events;
  }

  async #decide(
    window: SegmentedWindow,
    labels: Int32Array,
    until: number,
    resegmentation: LiveResegmentation,
  ): Promise<TurnEvent[]> {
    const from = this.#decidedUntil;
    if (until <= from) return [];
    const decided: LabelEvent[] = [];
    const pendingSince = new Map<number, number>();
    labels.forEach((label, local) => {
      if (label < 0) return;
      const since = this.#labels.pendingSince(window, local, from);
      // Local speakers may share a label if the stream is limited to fewer speakers.
      pendingSince.set(label, Math.min(pendingSince.get(label) ?? since, since));
    });
    const mappedAt = (frame: number): number[] =>
      Array.from(labels).filter((label, local) => label >= 0 && window.isActive(local, frame));
    const isActive = (label: number, frame: number): boolean => {
      const mapped = mappedAt(frame);
      if (mapped.length !== 1 || window.count(frame) !== 1) return mapped.includes(label);
      return resegmentation.labelOf(frame, mapped[0]) === label;
    };
    this.#sent.remember(until, Math.ceil(this.#timing.wideSamples / this.#shift) + FRAMES_BEFORE_WINDOW);
    for (let label = 0; label < this.#speakers.labels; label++) {
      const earliest = pendingSince.get(label) ?? from;
      const events = this.#turns.decide(label, from, until, window.endFrame, (f) => isActive(label, f), earliest);
      for (const { kind, frame } of events) decided.push({ kind, label, frame });
      for (let frame = Math.max(earliest, this.#sent.from); frame < until; frame++) {
        if (isActive(label, frame) && (frame >= from || this.#turns.isOpen(label))) this.#sent.add(frame, label);
      }
    }
    this.#decidedUntil = until;
    // Public numbers follow first appearance, not the label.
    decided.sort((a, b) => a.frame - b.frame);
    const events = decided.map(({ kind, label, frame }) => this.#event(kind, label, frame));
    if (this.#corrections) await this.#keepSpans(this.#corrections, decided);
    return events;
  }

  /** Records the spans of sent turns for corrections. */
  async #keepSpans(corrections: Corrections, events: readonly LabelEvent[]): Promise<void> {
    for (const { kind, label, frame } of events) {
      if (kind === 'start') corrections.start(label, frame);
      else await corrections.end(label, frame, this.#buffer, (at) => this.#sent.isAlone(at, label));
    }
    await corrections.cut(this.#decidedUntil, this.#buffer, (label, at) => this.#sent.isAlone(at, label));
  }

  /** The correction event if any span of a label with a public number changed. */
  #correct(corrections: Corrections, hasNumber: (label: number) => boolean): LiveEvent[] {
    const changes = corrections.revise(this.#speakers, hasNumber).map(({ label, to, from, until }) => ({
      startSeconds: this.#secondsOf(from),
      endSeconds: this.#secondsOf(until),
      from: this.#turns.numberOf(label),
      to: this.#turns.numberOf(to),
    }));
    return changes.length === 0 ? [] : [{ kind: 'correction', changes }];
  }

  #secondsOf(frame: number): number {
    return toMilliseconds(Math.min(frame * this.#shift, this.#buffer.end) / SAMPLE_RATE_HZ);
  }

  #event(kind: 'start' | 'end', label: number, frame: number): TurnEvent {
    const timestampSeconds = this.#secondsOf(frame);
    const event = { kind, speaker: this.#turns.numberOf(label), timestampSeconds };
    return kind === 'start' && this.settings.voices.length > 0 ? { ...event, match: this.#matchOf(label) } : event;
  }

  /** Label of the known voice that matches a speaker; each voice matches at most one speaker. */
  #matchOf(label: number): string | null {
    const labels = this.#speakers.inUse();
    const row = labels.indexOf(label);
    if (row < 0) return null;
    const logOdds = logOddsOf(
      labels.map((each) => this.#speakers.voiceOf(each)),
      this.settings.voices.map(({ voice }) => voice),
      this.engine.identification,
    );
    const options = { threshold: LIVE.matchConfidence, exclusive: true };
    const { match } = matchSpeakers(logOdds, labels.length, this.settings.voices.length, options)[row];
    return match === undefined ? null : this.settings.voices[match].label;
  }
}

const noPause = async (): Promise<void> => undefined;

/** Starts the diarization of a stream. See `LiveSession`. */
export function createLiveSession(
  engine: LiveEngine,
  settings: LiveSettings,
  pause: () => Promise<void> = noPause,
): LiveSession {
  return new RollingSession(engine, settings, pause);
}

/**
 * Resumes a stream from a snapshot.
 * @throws if the snapshot is from other models or from another version
 */
export function restoreLiveSession(
  engine: LiveEngine,
  snapshot: Uint8Array,
  pause: () => Promise<void> = noPause,
): LiveSession {
  const { state, models } = unpackState(snapshot);
  if (models !== modelsOf(engine)) throw new Error(`the snapshot is of ${models}, not of ${modelsOf(engine)}`);
  const session = new RollingSession(engine, state.settings, pause);
  session.restore(state);
  return session;
}
