import type { PacketDecoder } from './audio-ports.ts';
import type { BlockReader } from './block-reader.ts';
import {
  Clock,
  type ClockState,
  type CountedRun,
  CountedRuns,
  clockWarnings,
  JumpFilter,
  roundingErrorSamples,
} from './clock.ts';
import {
  type Faults,
  MAX_PACKET_BYTES,
  MAX_SCAN_SECONDS,
  type Part,
  type PartEnd,
  type PartStart,
  type PlayedSpan,
  packetBytes,
} from './container.ts';
import { oneSpan, SpanPlayer } from './playback.ts';

/** Decoded samples that are retained, because padding may be cut at the end. */
const RETAINED_SECONDS = 2;
/**
 * Audio that is decoded and discarded after a restart of a decoder. Opus needs 80 ms (RFC 7845 §4.6); HE-AAC repeats
 * its header about twice a second.
 */
const PRE_ROLL_SECONDS = 2;
/** Decoded samples in one block: large blocks cost the consumer fewer steps. */
const BLOCK_SAMPLES = 1 << 15;
/**
 * The state of a decoder (noise generators, predictors) reaches further back than the last packets, so that decoding
 * from the middle gives other bits. Hence every reader restarts its decoder at the same packets: the first possible one
 * at or after 90 s, 190 s and so on. Both decoders run in parallel for the pre-roll, then the new one takes over. A
 * process that continues from such a packet gives the same samples.
 */
const RESTART_SECONDS = 100;
const FIRST_RESTART_SECONDS = 90;
/**
 * A part that begins sooner after the last restart is not kept as a restart: with short parts, the few that are kept
 * would all be near the end.
 */
const MIN_PART_SECONDS = 30;
/** Restarts kept for `restartFor`: the consumer may lag some blocks behind the reader. */
const MAX_RESTARTS = 8;
/** Packets read: 16.7 hours of the shortest in use (Opus, 2.5 ms), and more than 24 of any other. */
const MAX_PACKETS = 24_000_000;
/** Delay of the Opus decoder's resampler, less than its shortest packet. */
const OPUS_LAG_SAMPLES = 119;

/** State from which another process continues decoding. Plain JSON. */
export interface Restart {
  /** Argument for `reopen`; absent for a file's only part. */
  readonly partStartByte?: number;
  /** Number of the part's first sample in the recording. */
  readonly partStartSample: number;
  /** Packet at which decoding restarts; absent for the first one. */
  readonly entry?: number;
  readonly packets: number;
  readonly clock: ClockState;
  readonly pieces?: readonly PlayedSpan[];
  readonly faults: Faults;
  /** Warnings about earlier parts. */
  readonly warnings: readonly string[];
  /** Jumps of the clocks of earlier parts. */
  readonly jumps: Jumps;
}

type Jumps = Pick<ClockState, 'gapSamples' | 'overlapSamples' | 'brokenTimes'>;

/** Result of decoding a file. */
interface DecodeEnd {
  /** At the source's rate. */
  readonly totalSamples: number;
  readonly warning?: string;
}

/**
 * Decodes an opened file forward to mono samples at its own rate (mean of the channels without low-frequency effects),
 * the same samples that a player plays. Sample numbers count from the start of the recording.
 */
export class Decoding {
  #part: Part;
  #partStartSample: number;
  #warnings: string[];
  #jumps: Jumps;
  /** With the first sample of the recording that is exact after the restart. */
  #restarts: { readonly sample: number; readonly restart: Restart }[] = [];
  #resume: Restart | undefined;
  #player = new SpanPlayer([], 0);
  #end: DecodeEnd | undefined;

  private constructor(
    private readonly reader: BlockReader,
    part: Part,
    resume: Restart | undefined,
  ) {
    this.#part = part;
    this.#resume = resume;
    this.#partStartSample = resume?.partStartSample ?? 0;
    this.#warnings = [...(resume?.warnings ?? [])];
    this.#jumps = resume?.jumps ?? { gapSamples: 0, overlapSamples: 0, brokenTimes: 0 };
  }

  /** @param resume state of another process, from `restartFor` */
  static async open(reader: BlockReader, part: Part, resume?: Restart): Promise<Decoding> {
    const startByte = resume?.partStartByte;
    const resumed = startByte === undefined ? part : await part.reopen?.(startByte);
    if (!resumed) throw new RangeError('the part of the checkpoint no longer exists in the file');
    return new Decoding(reader, resumed, resume);
  }

  /** Result after the last block. @throws Error before that */
  get end(): DecodeEnd {
    if (!this.#end) throw new Error('the decoding has not ended');
    return this.#end;
  }

  /**
   * State from which another process gets the samples from `sample`; undefined if it must begin at the start. Call in
   * ascending order.
   */
  restartFor(sample: number): Restart | undefined {
    return this.#restarts.findLast((kept) => kept.sample <= sample)?.restart;
  }

  /** The samples of the recording from `startSample`, in blocks that are valid until the next one. */
  async *blocks(startSample = 0): AsyncGenerator<Float32Array> {
    if (this.#resume) this.#restarts.push({ sample: startSample, restart: this.#resume });
    for (let part: Part | undefined = this.#part; part; ) {
      this.#part = part;
      const faults: Faults = { ...this.#resume?.faults };
      yield* this.#decodePart(part, Math.max(0, startSample - this.#partStartSample), faults);
      this.#partStartSample += this.#player.totalSamples;
      this.#resume = undefined;
      if (this.#partStartSample > MAX_SCAN_SECONDS * part.sampleRateHz) break;
      const next: { readonly part?: Part; readonly warning?: string } | undefined = await part.next?.(faults);
      if (next?.warning) this.#warnings.push(next.warning);
      part = next?.part;
    }
    const warnings = [...new Set([...this.#warnings, ...clockWarnings(this.#jumps, this.#part.sampleRateHz)])];
    this.#end = {
      totalSamples: this.#partStartSample,
      ...(warnings.length > 0 && { warning: warnings.join(' ') }),
    };
  }

  async *#decodePart(part: Part, startSample: number, faults: Faults): AsyncGenerator<Float32Array> {
    const resume = this.#resume;
    const { sampleRateHz: rateHz } = part;
    const clock = new Clock(rateHz, resume?.clock);
    const walk = part.walk(faults, resume?.entry);
    if (!resume) this.#notePart(part, faults);
    const counted = new CountedRuns(this.reader, walk, part.counter?.(resume?.entry === undefined));
    const jumps = new JumpFilter(clock, counted, rateHz);
    const output = new OutputBuffer(clock.position, part.paddingOf ? Math.ceil(RETAINED_SECONDS * rateHz) : 0);
    const preRoll = Math.ceil(PRE_ROLL_SECONDS * rateHz);
    let decoder = new FixedRateDecoder(part, rateHz);
    let restarted: FixedRateDecoder | undefined;
    let handOver = Number.POSITIVE_INFINITY;
    let nextRestart = restartAfter(clock.position, rateHz);
    let spans = resume?.pieces;
    this.#player = new SpanPlayer(spans ?? [], startSample);
    let packets = resume?.packets ?? 0;
    let passedBytes = Number(faults.passedBytes ?? 0);
    let endPadding = 0;
    let hasTooManyPackets = false;
    try {
      for (let next = await counted.next(); next; next = await counted.next()) {
        const { run, counts } = next;
        if (run.skippedBytes) faults.skippedBytes = Number(faults.skippedBytes ?? 0) + run.skippedBytes;
        hasTooManyPackets = packets >= MAX_PACKETS && run.packets.length > 0;
        if (hasTooManyPackets) break;
        const samples = counts.reduce((sum, [count]) => sum + count, 0);
        if (!spans) {
          spans = part.playedSpans?.(await startOf(counted, next, samples), faults) ?? oneSpan(0);
          this.#player = new SpanPlayer(spans, startSample);
        }
        if (run.endSample !== undefined) {
          const stamp = run.endSample - samples;
          // A surplus over the container's time is padding if this is the end; elsewhere it is ignored.
          if (packets === 0 || stamp + clock.state.shift > clock.position) clock.jump(clock.jumpTo(stamp));
          const surplus = clock.position - clock.state.shift - stamp;
          endPadding = surplus <= samples ? surplus : 0;
        }
        for (let i = 0; i < run.packets.length; i++) {
          const packet = run.packets[i];
          const [count, canRestart] = counts[i];
          if (packet.seconds !== undefined) {
            const jump = clock.jumpTo(packet.seconds * rateHz);
            if (jump !== 0) clock.jump(await jumps.lastingJump(jump, packets, next, i));
          }
          if (packet.gapSamples) clock.advance(packet.gapSamples);
          const isRestart = packet.entry !== undefined && canRestart && clock.isAhead && clock.position >= nextRestart;
          if (isRestart && !restarted) {
            handOver = clock.position + preRoll;
            nextRestart = restartAfter(clock.position, rateHz);
            restarted = new FixedRateDecoder(part, rateHz);
            const faultsSoFar = { ...faults, ...packet.faultsBefore, passedBytes };
            this.#noteRestart(handOver, clock, { entry: packet.entry, packets, pieces: spans, faults: faultsSoFar });
          }
          const bytes = await packetBytes(this.reader, packet, MAX_PACKET_BYTES);
          const { block, position } = decoder.decode(bytes, clock.position, count);
          yield* output.add(block.subarray(0, Math.max(0, handOver - position)), position, this.#player);
          if (restarted) {
            const exact = restarted.decode(bytes, clock.position, count);
            if (clock.position + count > handOver) {
              yield* output.add(exact.block, exact.position, this.#player);
              decoder.close();
              decoder = restarted;
              restarted = undefined;
              handOver = Number.POSITIVE_INFINITY;
            }
          }
          clock.advance(count);
          if (packet.constantDuration)
            clock.correctRounding(roundingErrorSamples(packet.constantDuration, count, rateHz));
          packets++;
          passedBytes += packet.length;
        }
        if (run.endSeconds !== undefined)
          endPadding = Math.round(clock.position - clock.state.shift - run.endSeconds * rateHz);
        else if (run.endSample === undefined) endPadding = Math.round((run.paddingSeconds ?? 0) * rateHz);
        if (clock.position > MAX_SCAN_SECONDS * rateHz) break;
      }
    } finally {
      decoder.close();
      restarted?.close();
      await counted.close();
    }
    const end: PartEnd = { position: clock.position, packets };
    const padding = Math.max(0, part.paddingOf?.({ ...end, endPadding }, faults) ?? 0);
    yield* output.end(clock.position, padding, this.#player);
    this.#jumps = {
      gapSamples: this.#jumps.gapSamples + clock.state.gapSamples,
      overlapSamples: this.#jumps.overlapSamples + clock.state.overlapSamples,
      brokenTimes: this.#jumps.brokenTimes + clock.state.brokenTimes,
    };
    this.#warnings.push(
      ...(hasTooManyPackets
        ? [`${part.displayName} has more than ${packets} packets; what follows was left out.`]
        : []),
      ...((await part.warnings?.(faults, end)) ?? []),
    );
  }

  /** Keeps the start of a part as a restart: its decoder begins there. */
  #notePart(part: Part, faults: Faults): void {
    const sample = this.#partStartSample;
    const distance = sample - (this.#restarts.at(-1)?.sample ?? 0);
    if (distance < MIN_PART_SECONDS * part.sampleRateHz) return;
    this.#keep(sample, { packets: 0, clock: new Clock(part.sampleRateHz).state, faults: { ...faults } });
  }

  #noteRestart(
    handOver: number,
    clock: Clock,
    state: Pick<Restart, 'entry' | 'packets' | 'faults'> & { readonly pieces: readonly PlayedSpan[] },
  ): void {
    const sample = this.#partStartSample + recordingSampleAt(state.pieces, handOver);
    this.#keep(sample, { ...state, clock: { ...clock.state } });
  }

  #keep(sample: number, state: Omit<Restart, 'partStartByte' | 'partStartSample' | 'warnings' | 'jumps'>): void {
    if (this.#restarts.length >= MAX_RESTARTS) this.#restarts.shift();
    const { startByte: partStartByte } = this.#part;
    const part = { partStartByte, partStartSample: this.#partStartSample };
    this.#restarts.push({
      sample,
      restart: { ...state, ...part, warnings: [...this.#warnings], jumps: this.#jumps },
    });
  }
}

/** The next position after `position` at which decoders are restarted; the start of a part counts as a restart. */
function restartAfter(position: number, rateHz: number): number {
  const passed = Math.floor((position / rateHz - FIRST_RESTART_SECONDS) / RESTART_SECONDS);
  return Math.max(0, passed + 1) * RESTART_SECONDS * rateHz + FIRST_RESTART_SECONDS * rateHz;
}

/** Number of the first sample of a part that comes from decoded samples at or after `position`. */
function recordingSampleAt(spans: readonly PlayedSpan[], position: number): number {
  let sample = 0;
  for (const span of spans) {
    if (span.position !== undefined) {
      if (position < span.position) return sample;
      const into = position - span.position;
      if (span.samples === undefined || into < span.samples) return sample + into;
    }
    sample += span.samples ?? 0;
  }
  return sample;
}

/** Facts of the first run. */
async function startOf(counted: CountedRuns, { run, counts }: CountedRun, samples: number): Promise<PartStart> {
  const [first] = run.packets;
  return {
    startPadding: run.endSample === undefined ? 0 : samples - run.endSample,
    firstSeconds: first?.seconds,
    packetSamples: counts[0]?.[0] ?? 0,
    constantDuration: first?.constantDuration,
    isOneRun: run.endSample !== undefined && !(await counted.hasMore()),
  };
}

/** One open decoder with output at a constant rate and with positions. */
class FixedRateDecoder {
  readonly #decoder: PacketDecoder;
  readonly #lagSamples: number;
  #next: number | undefined;

  constructor(
    part: Part,
    private readonly rateHz: number,
  ) {
    this.#decoder = part.openDecoder();
    this.#lagSamples = part.codec === 'opus' ? OPUS_LAG_SAMPLES : 0;
  }

  /** @param samples number of samples that the packet should decode to */
  decode(packet: Uint8Array, position: number, samples: number): { block: Float32Array; position: number } {
    const decoded = this.#decoder.decode(packet);
    const hasOtherRate = decoded.length > 0 && this.#decoder.sampleRateHz !== this.rateHz;
    const block = hasOtherRate ? resampled(decoded, samples) : decoded;
    const lag = this.#next === undefined ? 0 : position - this.#next;
    const at = this.#next === undefined || lag < 0 || lag > this.#lagSamples ? position : this.#next;
    this.#next = block.length === 0 && this.#next === undefined ? undefined : at + block.length;
    return { block: block.subarray(0, Math.max(0, position + samples - at)), position: at };
  }

  close(): void {
    this.#decoder.close();
  }
}

/** Resamples a block of another rate linearly to `samples`, so that the clock stays right. */
function resampled(block: Float32Array, samples: number): Float32Array {
  return Float32Array.from({ length: samples }, (_, i) => {
    const at = (i * block.length) / samples;
    const left = Math.floor(at);
    return block[left] + (at - left) * ((block[left + 1] ?? block[left]) - block[left]);
  });
}

/**
 * Collects decoded samples by position into blocks. Gaps become silence; of overlapping samples the first are used.
 * Retains the last samples.
 */
class OutputBuffer {
  #buffer: Float32Array<ArrayBuffer>;
  /** Position of the first sample in the buffer. */
  #begin: number;
  /** Number of samples in the buffer. */
  #filled = 0;
  /** Whether earlier samples were played. */
  #hasPlayed: boolean;

  constructor(
    position: number,
    private readonly retainedSamples: number,
  ) {
    this.#begin = position;
    this.#hasPlayed = position > 0;
    this.#buffer = new Float32Array(retainedSamples + BLOCK_SAMPLES);
  }

  *add(block: Float32Array, position: number, player: SpanPlayer): Generator<Float32Array> {
    const overlap = Math.min(block.length, Math.max(0, this.#begin + this.#filled - position));
    const gap = Math.max(0, position - this.#begin - this.#filled);
    if (gap > 0 && block.length > 0) yield* this.#append(undefined, gap, player);
    yield* this.#append(block.subarray(overlap), block.length - overlap, player);
  }

  /** Plays the rest without the padding, and silence up to `position` if samples are missing. */
  *end(position: number, padding: number, player: SpanPlayer): Generator<Float32Array> {
    // The buffer may have more than the retained samples, depending on where reading began.
    const end = position - Math.min(padding, this.#hasPlayed ? this.retainedSamples : position);
    player.endAt(end);
    yield* this.#append(undefined, Math.max(0, end - this.#begin - this.#filled), player);
    const left = Math.min(this.#filled, Math.max(0, end - this.#begin));
    yield* player.play(this.#buffer.subarray(0, left), this.#begin);
    yield* player.finish();
  }

  *#append(block: Float32Array | undefined, samples: number, player: SpanPlayer): Generator<Float32Array> {
    for (let from = 0; from < samples; ) {
      const length = Math.min(samples - from, this.#buffer.length - this.#filled);
      const into = this.#buffer.subarray(this.#filled, this.#filled + length);
      if (block) into.set(block.subarray(from, from + length));
      else into.fill(0);
      this.#filled += length;
      from += length;
      if (this.#filled < this.#buffer.length) continue;
      const count = this.#filled - this.retainedSamples;
      yield* player.play(this.#buffer.subarray(0, count), this.#begin);
      this.#buffer.copyWithin(0, count);
      this.#begin += count;
      this.#hasPlayed = true;
      this.#filled = this.retainedSamples;
    }
  }
}
