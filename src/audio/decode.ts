import type { PacketDecoder } from './audio-ports.ts';
import type { BlockReader } from './block-reader.ts';
import {
  Clock,
  type ClockState,
  type CountedRun,
  CountedRuns,
  clockWarnings,
  roundedOff,
  SteadyTimes,
} from './clock.ts';
import {
  type Faults,
  MAX_PACKET_BYTES,
  MAX_SCAN_SECONDS,
  type Part,
  type PartEnd,
  type PartStart,
  type Piece,
  packetBytes,
} from './container.ts';
import { onePiece, PiecePlayer } from './playback.ts';

/** Decoded samples that wait until it is known that they are no padding of the end. */
const HELD_SECONDS = 2;
/**
 * Decoded and discarded where a decoder is restarted. Opus asks for 80 ms (RFC 7845 §4.6); HE-AAC repeats its
 * header about twice a second.
 */
const PRE_ROLL_SECONDS = 2;
/** Decoded samples given on together: what follows has less to do for each. */
const BLOCK_SAMPLES = 1 << 15;
/**
 * Decoders remember more than the last packets (noise generators, predictors), so that one which begins in the middle
 * does not give the same bits. Hence every reader restarts its decoder at the same places: the first packet at which
 * that is possible at or behind 90 s, 190 s and so on. Two run side by side for the pre-roll, then the new one takes
 * over. The same sample comes out wherever another process went on.
 */
const RESTART_SECONDS = 100;
const FIRST_RESTART_SECONDS = 90;
/**
 * A part that begins sooner after the last restart is not kept as one: of short parts, the few that are kept would all
 * be near the end.
 */
const MIN_PART_SECONDS = 30;
/** Places kept for `restartFor`: the reader's consumer may be some blocks behind. */
const MAX_RESTARTS = 8;
/** Packets read: 16.7 hours of the shortest that are in use (Opus, 2.5 ms), and more than 24 of any other. */
const MAX_PACKETS = 24_000_000;
/** Opus holds samples back while it resamples, less than its shortest packet, and gives them later. */
const OPUS_LAG_SAMPLES = 119;

/** Where decoding can continue in another process. Plain JSON. */
export interface Restart {
  /** Part of the file, and the number of its first sample in the recording. */
  readonly partStartByte?: number;
  readonly partStartSample: number;
  /** Place of a packet; absent for the first one. */
  readonly entry?: number;
  readonly packets: number;
  readonly clock: ClockState;
  readonly pieces?: readonly Piece[];
  readonly faults: Faults;
  /** Sentences about the parts in front, and the jumps of their clocks. */
  readonly warnings: readonly string[];
  readonly jumps: Jumps;
}

type Jumps = Pick<ClockState, 'gapSamples' | 'overlapSamples' | 'brokenTimes'>;

/** What decoding a file came to. */
interface DecodeEnd {
  /** Samples at the source's rate. */
  readonly totalSamples: number;
  readonly warning?: string;
}

/**
 * Decodes an opened file forward to mono samples at its own rate (mean of the channels without low-frequency effects):
 * exactly those that a player plays. Sample numbers count from the start of the recording.
 */
export class Decoding {
  #part: Part;
  #partStartSample: number;
  #warnings: string[];
  #jumps: Jumps;
  /** By the first sample of the recording that comes out right there. */
  #restarts: { readonly sample: number; readonly restart: Restart }[] = [];
  #resume: Restart | undefined;
  #player = new PiecePlayer([], 0);
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

  /** @param resume where another process left off, from `restartFor` */
  static async open(reader: BlockReader, part: Part, resume?: Restart): Promise<Decoding> {
    const startByte = resume?.partStartByte;
    const there = startByte === undefined ? part : await part.reopen?.(startByte);
    if (!there) throw new RangeError('the part to go on with is no longer there');
    return new Decoding(reader, there, resume);
  }

  /** What the blocks came to, once they have ended. */
  get end(): DecodeEnd {
    if (!this.#end) throw new Error('the decoding has not ended');
    return this.#end;
  }

  /**
   * Where another process must begin so that it has the samples from `sample` on; undefined where it must begin at the
   * start. Ask in order.
   */
  restartFor(sample: number): Restart | undefined {
    return this.#restarts.findLast((place) => place.sample <= sample)?.restart;
  }

  /** The samples from `startSample` of the recording on, in blocks that are valid until the next one. */
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
    const times = new SteadyTimes(clock, counted, rateHz);
    const sound = new HeldSound(clock.position, part.paddingOf ? Math.ceil(HELD_SECONDS * rateHz) : 0);
    const preRoll = Math.ceil(PRE_ROLL_SECONDS * rateHz);
    let decoder = new SteadyDecoder(part, rateHz);
    let fresh: SteadyDecoder | undefined;
    let handOver = Number.POSITIVE_INFINITY;
    let nextRestart = restartBehind(clock.position, rateHz);
    let pieces = resume?.pieces;
    this.#player = new PiecePlayer(pieces ?? [], startSample);
    let packets = resume?.packets ?? 0;
    let passedBytes = Number(faults.passedBytes ?? 0);
    let endPadding = 0;
    let hasTooMany = false;
    try {
      for (let next = await counted.next(); next; next = await counted.next()) {
        const { run, counts } = next;
        if (run.skippedBytes) faults.skippedBytes = Number(faults.skippedBytes ?? 0) + run.skippedBytes;
        hasTooMany = packets >= MAX_PACKETS && run.packets.length > 0;
        if (hasTooMany) break;
        const samples = counts.reduce((sum, [count]) => sum + count, 0);
        if (!pieces) {
          pieces = part.heard?.(await startOf(counted, next, samples), faults) ?? onePiece(0);
          this.#player = new PiecePlayer(pieces, startSample);
        }
        if (run.endSample !== undefined) {
          const stamp = run.endSample - samples;
          // Less than was counted is padding if this is the end; in the middle there is nothing to be made of it.
          if (packets === 0 || stamp + clock.state.shift > clock.position) clock.jump(clock.jumpTo(stamp));
          const tooMuch = clock.position - clock.state.shift - stamp;
          endPadding = tooMuch <= samples ? tooMuch : 0;
        }
        for (let i = 0; i < run.packets.length; i++) {
          const packet = run.packets[i];
          const [count, canRestart] = counts[i];
          if (packet.seconds !== undefined) {
            const jump = clock.jumpTo(packet.seconds * rateHz);
            if (jump !== 0) clock.jump(await times.lasting(jump, packets, next, i));
          }
          if (packet.gapSamples) clock.pass(packet.gapSamples);
          const isRestart = packet.entry !== undefined && canRestart && clock.isAhead && clock.position >= nextRestart;
          if (isRestart && !fresh) {
            handOver = clock.position + preRoll;
            nextRestart = restartBehind(clock.position, rateHz);
            fresh = new SteadyDecoder(part, rateHz);
            const met = { ...faults, ...packet.met, passedBytes };
            this.#noteRestart(handOver, clock, { entry: packet.entry, packets, pieces, faults: met });
          }
          const bytes = await packetBytes(this.reader, packet, MAX_PACKET_BYTES);
          const { block, position } = decoder.decode(bytes, clock.position, count);
          yield* sound.add(block.subarray(0, Math.max(0, handOver - position)), position, this.#player);
          if (fresh) {
            const other = fresh.decode(bytes, clock.position, count);
            if (clock.position + count > handOver) {
              yield* sound.add(other.block, other.position, this.#player);
              decoder.close();
              decoder = fresh;
              fresh = undefined;
              handOver = Number.POSITIVE_INFINITY;
            }
          }
          clock.pass(count);
          if (packet.evenly) clock.slip(roundedOff(packet.evenly, count, rateHz));
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
      fresh?.close();
      await counted.close();
    }
    const end: PartEnd = { position: clock.position, packets };
    const padding = Math.max(0, part.paddingOf?.({ ...end, endPadding }, faults) ?? 0);
    yield* sound.end(clock.position, padding, this.#player);
    this.#jumps = {
      gapSamples: this.#jumps.gapSamples + clock.state.gapSamples,
      overlapSamples: this.#jumps.overlapSamples + clock.state.overlapSamples,
      brokenTimes: this.#jumps.brokenTimes + clock.state.brokenTimes,
    };
    this.#warnings.push(
      ...(hasTooMany ? [`${part.where} has more than ${packets} packets; what follows was left out.`] : []),
      ...((await part.warnings?.(faults, end)) ?? []),
    );
  }

  /** The decoders of a part begin with it, so that a reader can too. */
  #notePart(part: Part, faults: Faults): void {
    const sample = this.#partStartSample;
    const distance = sample - (this.#restarts.at(-1)?.sample ?? 0);
    if (distance < MIN_PART_SECONDS * part.sampleRateHz) return;
    this.#keep(sample, { packets: 0, clock: new Clock(part.sampleRateHz).state, faults: { ...faults } });
  }

  #noteRestart(
    handOver: number,
    clock: Clock,
    { pieces, faults, ...place }: Pick<Restart, 'entry' | 'packets' | 'faults'> & { readonly pieces: readonly Piece[] },
  ): void {
    const sample = this.#partStartSample + recordedAt(pieces, handOver);
    this.#keep(sample, { ...place, clock: { ...clock.state }, pieces, faults });
  }

  #keep(sample: number, place: Omit<Restart, 'partStartByte' | 'partStartSample' | 'warnings' | 'jumps'>): void {
    if (this.#restarts.length >= MAX_RESTARTS) this.#restarts.shift();
    const { startByte: partStartByte } = this.#part;
    const part = { partStartByte, partStartSample: this.#partStartSample };
    this.#restarts.push({
      sample,
      restart: { ...place, ...part, warnings: [...this.#warnings], jumps: this.#jumps },
    });
  }
}

/**
 * The next position after `position` at which decoders are restarted; the start of a part counts as one that has
 * passed.
 */
function restartBehind(position: number, rateHz: number): number {
  const passed = Math.floor((position / rateHz - FIRST_RESTART_SECONDS) / RESTART_SECONDS);
  return Math.max(0, passed + 1) * RESTART_SECONDS * rateHz + FIRST_RESTART_SECONDS * rateHz;
}

/** Number of the first sample of a part that is made of decoded samples from `position` on, or behind it. */
function recordedAt(pieces: readonly Piece[], position: number): number {
  let sample = 0;
  for (const piece of pieces) {
    if (piece.position !== undefined) {
      if (position < piece.position) return sample;
      const into = position - piece.position;
      if (piece.samples === undefined || into < piece.samples) return sample + into;
    }
    sample += piece.samples ?? 0;
  }
  return sample;
}

/** Facts of the first run, and whether there is another. */
async function startOf(counted: CountedRuns, { run, counts }: CountedRun, samples: number): Promise<PartStart> {
  const [first] = run.packets;
  return {
    startPadding: run.endSample === undefined ? 0 : samples - run.endSample,
    firstSeconds: first?.seconds,
    packetSamples: counts[0]?.[0] ?? 0,
    evenly: first?.evenly,
    isOneRun: run.endSample !== undefined && !(await counted.hasMore()),
  };
}

/** One open decoder whose sound has one rate, and the position of what comes out of it. */
class SteadyDecoder {
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

  /** @param samples what the packet should decode to */
  decode(packet: Uint8Array, position: number, samples: number): { block: Float32Array; position: number } {
    const decoded = this.#decoder.decode(packet);
    const hasOtherRate = decoded.length > 0 && this.#decoder.sampleRateHz !== this.rateHz;
    const block = hasOtherRate ? stretch(decoded, samples) : decoded;
    const lag = this.#next === undefined ? 0 : position - this.#next;
    const at = this.#next === undefined || lag < 0 || lag > this.#lagSamples ? position : this.#next;
    this.#next = block.length === 0 && this.#next === undefined ? undefined : at + block.length;
    return { block: block.subarray(0, Math.max(0, position + samples - at)), position: at };
  }

  close(): void {
    this.#decoder.close();
  }
}

/** A block at another rate than the rest, resampled linearly to its length, so that the clock holds. */
function stretch(block: Float32Array, samples: number): Float32Array {
  return Float32Array.from({ length: samples }, (_, i) => {
    const at = (i * block.length) / samples;
    const left = Math.floor(at);
    return block[left] + (at - left) * ((block[left + 1] ?? block[left]) - block[left]);
  });
}

/**
 * Decoded samples by their positions, gathered into blocks. Silence where none come, the first where several do. The
 * last of them are held back.
 */
class HeldSound {
  #buffer: Float32Array<ArrayBuffer>;
  /** Position of the first sample in the buffer, and how many there are. */
  #begin: number;
  #filled = 0;
  /** Whether samples in front of these were given on. */
  #hasGiven: boolean;

  constructor(
    position: number,
    private readonly heldSamples: number,
  ) {
    this.#begin = position;
    this.#hasGiven = position > 0;
    this.#buffer = new Float32Array(heldSamples + BLOCK_SAMPLES);
  }

  *add(block: Float32Array, position: number, player: PiecePlayer): Generator<Float32Array> {
    const isLate = Math.min(block.length, Math.max(0, this.#begin + this.#filled - position));
    const gap = Math.max(0, position - this.#begin - this.#filled);
    if (gap > 0 && block.length > 0) yield* this.#append(undefined, gap, player);
    yield* this.#append(block.subarray(isLate), block.length - isLate, player);
  }

  /** All that is left, but for the padding; silence up to the position where samples lack. */
  *end(position: number, padding: number, player: PiecePlayer): Generator<Float32Array> {
    // By chance more are held than must be: how many depends on where reading began.
    const end = position - Math.min(padding, this.#hasGiven ? this.heldSamples : position);
    player.endAt(end);
    yield* this.#append(undefined, Math.max(0, end - this.#begin - this.#filled), player);
    const left = Math.min(this.#filled, Math.max(0, end - this.#begin));
    yield* player.play(this.#buffer.subarray(0, left), this.#begin);
    yield* player.finish();
  }

  *#append(block: Float32Array | undefined, samples: number, player: PiecePlayer): Generator<Float32Array> {
    for (let from = 0; from < samples; ) {
      const length = Math.min(samples - from, this.#buffer.length - this.#filled);
      const into = this.#buffer.subarray(this.#filled, this.#filled + length);
      if (block) into.set(block.subarray(from, from + length));
      else into.fill(0);
      this.#filled += length;
      from += length;
      if (this.#filled < this.#buffer.length) continue;
      const given = this.#filled - this.heldSamples;
      yield* player.play(this.#buffer.subarray(0, given), this.#begin);
      this.#buffer.copyWithin(0, given);
      this.#begin += given;
      this.#hasGiven = true;
      this.#filled = this.heldSamples;
    }
  }
}
