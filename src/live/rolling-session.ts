import { SAMPLE_RATE_HZ } from '../audio/audio-ports.ts';
import { concatenated } from '../audio/memory.ts';
import { toMilliseconds } from '../diarization/numerics.ts';
import { Segmenter } from '../diarization/segmenter.ts';
import { logOddsOf, matchSpeakers } from '../voiceprint/identification.ts';
import { Corrections, type CorrectionsState } from './corrections.ts';
import { LIVE, type LiveTiming, timingOf } from './live-parameters.ts';
import type { LiveEngine, LiveEvent, LiveSession, LiveSettings, TurnEvent } from './live-session.ts';
import { blend, Look, look } from './segmented-window.ts';
import { Naming, Revision } from './speaker-mapping.ts';
import { Ear, type EarState } from './stream-buffer.ts';
import { Speakers, type SpeakersState } from './stream-speakers.ts';
import { inOrder, Told, type ToldState, Turns, type TurnsState } from './turn-events.ts';

/**
 * A snapshot is a JSON text in UTF-8, preceded by its length (uint32, little-endian), and the numbers of all typed
 * arrays behind it, in the order and with the types and lengths that the text names in their places: `{"$": "f32", "n":
 * 192}`.
 */
const VERSION = 8;
const TYPES = { f32: Float32Array, i32: Int32Array, u8: Uint8Array, i8: Int8Array } as const;
type TypeName = keyof typeof TYPES;
type Numbers = Float32Array | Int32Array | Uint8Array | Int8Array;

/** In every JavaScript runtime, though not in the language's own library. */
declare class TextEncoder {
  encode(text: string): Uint8Array;
}
declare class TextDecoder {
  decode(bytes: Uint8Array): string;
}

/** Names the models that a state belongs to. */
function modelsOf({ segmentation, embedding }: Pick<LiveEngine, 'segmentation' | 'embedding'>): string {
  return `${segmentation.info.id} ${embedding.info.id}`;
}

/** @param models names of the models that the state belongs to */
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

/** @throws when the bytes are no snapshot of this version */
function unpackState(bytes: Uint8Array): { readonly state: SessionState; readonly models: string } {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const headEnd = 4 + view.getUint32(0, true);
  let at = headEnd;
  // Parsing visits the arrays in the order in which they were written: depth first, members in their order.
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

/** What was told is remembered for so long before the window too. */
const FRAMES_BEFORE_WINDOW = 100;

/** A look as it is stored. */
type LookState = Pick<Look, 'firstFrame' | 'frames' | 'speakers' | 'activations' | 'expected' | 'active'>;

/** Everything that a session knows. */
interface SessionState {
  readonly settings: LiveSettings;
  readonly looks: number;
  readonly decidedUntil: number;
  readonly told: ToldState;
  readonly kept: number;
  readonly past: readonly LookState[];
  readonly ear: EarState;
  readonly speakers: SpeakersState;
  readonly turns: TurnsState;
  readonly corrections: CorrectionsState | undefined;
}

/**
 * Rolling windows: several times a second the segmentation looks at the last seconds, and the look's local speakers are
 * found again.
 */
class RollingSession implements LiveSession {
  readonly #timing: LiveTiming;
  readonly #segmenter: Segmenter;
  readonly #ear: Ear;
  readonly #speakers: Speakers;
  readonly #turns: Turns;
  readonly #told = new Told();
  readonly #naming: Naming;
  /** Where they were asked for. */
  readonly #corrections: Corrections | undefined;
  readonly #shift: number;
  /** Of the known voices, from the first time on that they are asked for. */
  #looks = 0;
  /** Frames before this one have been told about. */
  #decidedUntil = 0;
  /** The last looks, the latest first. */
  #past: readonly Look[] = [];

  constructor(
    private readonly engine: LiveEngine,
    private readonly settings: LiveSettings,
    private readonly pause: () => Promise<void>,
  ) {
    this.#timing = timingOf(settings);
    this.#segmenter = new Segmenter(engine.segmentation, engine.melPower);
    this.#ear = new Ear(engine, this.#timing);
    this.#speakers = new Speakers(engine, settings.maxSpeakers, this.#timing.windowSamples, pause);
    this.#shift = engine.segmentation.info.frameShiftSamples;
    this.#turns = new Turns(this.#shift / SAMPLE_RATE_HZ);
    const hearing = { segmenter: this.#segmenter, ear: this.#ear, speakers: this.#speakers, told: this.#told };
    this.#naming = new Naming(hearing, this.#timing, this.#shift, pause);
    this.#corrections = settings.corrections ? new Corrections(this.#shift) : undefined;
  }

  async push(samples: Float32Array): Promise<LiveEvent[]> {
    const events: LiveEvent[] = [];
    for (let at = 0; at < samples.length; ) {
      const next = (this.#looks + 1) * this.#timing.hopSamples;
      const count = Math.min(samples.length - at, next - this.#ear.end);
      this.#ear.hear(samples.subarray(at, at + count));
      at += count;
      if (this.#ear.end === next) {
        this.#looks++;
        events.push(...(await this.#look(this.#timing.lookaheadSamples)));
      }
    }
    return events;
  }

  async finish(): Promise<LiveEvent[]> {
    const total = this.#ear.end;
    const events: LiveEvent[] = [];
    if (total > 0) {
      this.#looks++;
      events.push(...(await this.#look(0, true)));
    }
    const lastFrame = Math.ceil(total / this.#shift);
    const ends: TurnEvent[] = [];
    for (const label of this.#turns.openLabels()) {
      const frame = this.#turns.end(label, Math.min(this.#decidedUntil, lastFrame));
      ends.push(this.#event('end', label, frame));
      await this.#corrections?.end(label, frame, this.#ear, (at) => this.#told.isAlone(at, label));
    }
    events.push(...inOrder(ends));
    if (this.#corrections && (await this.#speakers.reconsider(total / SAMPLE_RATE_HZ, true))) {
      // No start comes any more that would number them otherwise.
      events.push(...this.#correct(this.#corrections, () => true));
    }
    return events;
  }

  #state(): SessionState {
    return {
      settings: this.settings,
      looks: this.#looks,
      decidedUntil: this.#decidedUntil,
      told: this.#told.save(),
      kept: this.#naming.kept,
      past: this.#past,
      ear: this.#ear.save(),
      speakers: this.#speakers.save(),
      turns: this.#turns.save(),
      corrections: this.#corrections?.save(),
    };
  }

  restore(state: SessionState): void {
    this.#looks = state.looks;
    this.#decidedUntil = state.decidedUntil;
    this.#told.restore(state.told);
    this.#naming.restore(state.kept);
    this.#past = state.past.map(
      (l) => new Look(l.firstFrame, l.frames, l.speakers, l.activations, l.expected, l.active),
    );
    this.#ear.restore(state.ear);
    this.#speakers.restore(state.speakers);
    this.#turns.restore(state.turns);
    if (state.corrections) this.#corrections?.restore(state.corrections);
  }

  snapshot(): Uint8Array {
    return packState(this.#state(), modelsOf(this.engine));
  }

  /** Looks at the last seconds, and tells about everything up to the look-ahead before now. */
  async #look(lookaheadSamples: number, isLast = false): Promise<LiveEvent[]> {
    const now = this.#ear.end;
    const start = Math.max(now - this.#timing.windowSamples, Math.min(0, now - LIVE.leastWindowSamples));
    const window = this.#ear.window(start, now);
    const fresh = await look(this.#segmenter, window, start);
    const seen = blend(fresh, this.#past);
    this.#past = [fresh, ...this.#past].slice(0, this.#timing.pastLooks);
    await this.pause();
    await this.#ear.understand();
    const labels = await this.#naming.name(seen, this.#decidedUntil, isLast);
    const until = Math.min(seen.endFrame, Math.floor((now - lookaheadSamples) / this.#shift));
    const revision = new Revision(this.#speakers, this.#shift);
    await revision.listen(this.#ear, seen, this.#decidedUntil, until);
    const events: LiveEvent[] = inOrder(await this.#decide(seen, labels, until, revision));
    const isNew = await this.#speakers.reconsider(now / SAMPLE_RATE_HZ);
    if (isNew && this.#corrections) {
      events.push(...this.#correct(this.#corrections, (label) => this.#turns.isTold(label)));
    }
    await this.pause();
    return events;
  }

  async #decide(seen: Look, labels: Int32Array, until: number, revision: Revision): Promise<TurnEvent[]> {
    const from = this.#decidedUntil;
    if (until <= from) return [];
    const told: { readonly kind: 'start' | 'end'; readonly label: number; readonly frame: number }[] = [];
    const held = new Map<number, number>();
    labels.forEach((label, local) => {
      if (label < 0) return;
      const since = this.#naming.pendingSince(seen, local, from);
      // Local speakers may share a label where there are fewer of these.
      held.set(label, Math.min(held.get(label) ?? since, since));
    });
    const mappedAt = (frame: number): number[] =>
      Array.from(labels).filter((label, local) => label >= 0 && seen.isActive(local, frame));
    const isActive = (label: number, frame: number): boolean => {
      const mapped = mappedAt(frame);
      if (mapped.length !== 1 || seen.count(frame) !== 1) return mapped.includes(label);
      return revision.labelOf(frame, mapped[0]) === label;
    };
    this.#told.remember(until, Math.ceil(this.#timing.wideSamples / this.#shift) + FRAMES_BEFORE_WINDOW);
    for (let label = 0; label < this.#speakers.labels; label++) {
      const earliest = held.get(label) ?? from;
      const decided = this.#turns.decide(label, from, until, seen.endFrame, (f) => isActive(label, f), earliest);
      for (const { kind, frame } of decided) told.push({ kind, label, frame });
      for (let frame = Math.max(earliest, this.#told.from); frame < until; frame++) {
        if (isActive(label, frame) && (frame >= from || this.#turns.isOpen(label))) this.#told.add(frame, label);
      }
    }
    this.#decidedUntil = until;
    // Numbers go by first appearance, not by label.
    told.sort((a, b) => a.frame - b.frame);
    const events = told.map(({ kind, label, frame }) => this.#event(kind, label, frame));
    if (this.#corrections) await this.#note(this.#corrections, told);
    return events;
  }

  /** Keeps what was told for corrections. */
  async #note(
    corrections: Corrections,
    told: readonly { readonly kind: 'start' | 'end'; readonly label: number; readonly frame: number }[],
  ): Promise<void> {
    for (const { kind, label, frame } of told) {
      if (kind === 'start') corrections.start(label, frame);
      else await corrections.end(label, frame, this.#ear, (at) => this.#told.isAlone(at, label));
    }
    await corrections.cut(this.#decidedUntil, this.#ear, (label, at) => this.#told.isAlone(at, label));
  }

  /** The event of what has changed, if anything has, among the labels that may be named. */
  #correct(corrections: Corrections, isTold: (label: number) => boolean): LiveEvent[] {
    const changes = corrections.revise(this.#speakers, isTold).map(({ label, to, from, until }) => ({
      startSeconds: this.#secondsOf(from),
      endSeconds: this.#secondsOf(until),
      from: this.#turns.numberOf(label),
      to: this.#turns.numberOf(to),
    }));
    return changes.length === 0 ? [] : [{ kind: 'correction', changes }];
  }

  #secondsOf(frame: number): number {
    return toMilliseconds(Math.min(frame * this.#shift, this.#ear.end) / SAMPLE_RATE_HZ);
  }

  #event(kind: 'start' | 'end', label: number, frame: number): TurnEvent {
    const timestampSeconds = this.#secondsOf(frame);
    const event = { kind, speaker: this.#turns.numberOf(label), timestampSeconds };
    return kind === 'start' && this.settings.voices.length > 0 ? { ...event, match: this.#matchOf(label) } : event;
  }

  /** The known voice that a label is, each voice being one speaker's at most. */
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

/** Begins the diarization of a stream. See `LiveSession`. */
export function createLiveSession(
  engine: LiveEngine,
  settings: LiveSettings,
  pause: () => Promise<void> = noPause,
): LiveSession {
  return new RollingSession(engine, settings, pause);
}

/**
 * Goes on with a stream where `snapshot` was taken.
 * @throws when the snapshot was taken with other models or by another version
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
