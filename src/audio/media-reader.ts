import {
  type AudioResult,
  type ByteSource,
  fail,
  MEDIA_CODE,
  type MediaInstance,
  type MediaPort,
  ok,
} from './audio-ports.ts';
import { BlockSupply, MissingBlock } from './block-supply.ts';
import { Clock, type ClockState, clockWarnings, type RoundingState, roundingOfRun } from './clock.ts';
import { isUsableRate, MAX_CHANNELS } from './container.ts';
import { grown } from './memory.ts';
import { rejectKnownFormat, UNKNOWN } from './sniff.ts';

/**
 * Steps between copies of the instance: a missing block repeats as many. Long tables of packets take long to copy, so
 * that a large instance is copied less often.
 */
const STEPS_PER_COPY = 512;
const COPY_BYTES_PER_STEP = 4096;
/** Blocks between copies, which the supply keeps meanwhile. */
const BLOCKS_PER_COPY = 12;
/** Blocks that are fetched at once. */
const MOST_BLOCKS_AT_ONCE = 32;
/** Steps in a row without samples; an index that stays empty takes more. */
const MAX_EMPTY_STEPS = 200_000;
/** Samples of one block at least, except for the last: large blocks cost the consumer fewer steps. */
const BLOCK_SAMPLES = 1 << 15;
/** Reading ends here: twice the longest recording that any consumer accepts. */
const MAX_SECONDS = 48 * 3600;
/** Bytes for recognising what is no audio. */
const HEAD_BYTES = 1 << 16;

export interface MediaOptions {
  /** State of another reader of the same recording, from `snapshot`. */
  readonly from?: MediaSnapshot;
  /** Channel to read, from 0; the mean of all if absent. */
  readonly channel?: number;
  /** Bytes of one block of the supply. */
  readonly blockBytes?: number;
}

/** Facts from the first samples. */
export interface MediaFacts {
  readonly format: string;
  readonly codec: string;
  readonly sampleRateHz: number;
  readonly channels: number;
}

/** State from which another instance continues with the same samples. */
export interface MediaSnapshot {
  /** Memory of the module, only for the same build of it; compress it: most of it is empty. */
  readonly memory: Uint8Array;
  /** Plain JSON. */
  readonly state: ReaderState;
}

interface ReaderState {
  /** Samples yielded so far, at the source's rate. */
  readonly written: number;
  readonly clock: ClockState;
  /** Samples of the last step that were not taken yet. */
  readonly pending: number;
  /** Packets without samples before the last that had some. */
  readonly lost: number;
  readonly rounding: RoundingState;
}

/** Result of a complete recording. */
export interface MediaEnd {
  /** At the source's rate. */
  readonly totalSamples: number;
  readonly warning?: string;
}

/** Our name of a format by FFmpeg's, and how messages name it. */
const FORMATS: Readonly<Record<string, readonly [format: string, name: string]>> = {
  'mov,mp4,m4a,3gp,3g2,mj2': ['mp4', 'MP4'],
  'matroska,webm': ['matroska', 'Matroska'],
  ogg: ['ogg', 'OGG'],
  wav: ['wav', 'WAV'],
  w64: ['w64', 'Wave64'],
  aiff: ['aiff', 'AIFF'],
  caf: ['caf', 'Core Audio'],
  au: ['au', 'Sun/NeXT audio'],
  flac: ['flac', 'FLAC'],
  mp3: ['mp3', 'MP3'],
  aac: ['adts', 'AAC'],
  loas: ['loas', 'AAC (LATM)'],
  ac3: ['ac3', 'AC-3'],
  eac3: ['eac3', 'E-AC-3'],
  dts: ['dts', 'DTS'],
  dtshd: ['dts', 'DTS-HD'],
  amr: ['amr', 'AMR'],
  ape: ['ape', "Monkey's Audio"],
  wv: ['wavpack', 'WavPack'],
  tta: ['tta', 'True Audio'],
  mpc: ['musepack', 'Musepack'],
  mpc8: ['musepack', 'Musepack'],
  dsf: ['dsf', 'DSD'],
  mpegts: ['mpeg-ts', 'MPEG transport stream'],
  mpeg: ['mpeg-ps', 'MPEG program stream'],
  asf: ['asf', 'Windows Media'],
  avi: ['avi', 'AVI'],
  flv: ['flv', 'Flash video'],
};

/**
 * One forward pass over a recording of any format: mono samples at its own rate, at the times that its container gives
 * them. The module cannot wait for bytes. If a block is missing, its call is abandoned, the instance goes back to its
 * last copy, and the steps since then are repeated with the block.
 */
export class MediaReader {
  readonly #media: MediaInstance;
  readonly #supply: BlockSupply;
  #copy: Uint8Array;
  /** Steps since the copy. */
  #steps = 0;
  #hasMissed = false;
  #clock = new Clock(1);
  #written = 0;
  #pending = 0;
  /** Packets without samples before the last that had some. */
  #lost = 0;
  #rounding: RoundingState = { duration: 0, packets: 0 };
  #buffer: Float32Array = new Float32Array(BLOCK_SAMPLES);
  #filled = 0;
  #end: AudioResult<MediaEnd> | undefined;

  private constructor(
    source: ByteSource,
    port: MediaPort,
    private readonly options: MediaOptions,
  ) {
    this.#supply = new BlockSupply(source, options.blockBytes);
    this.#media = port.create((position, into) => this.#supply.read(position, into));
    this.#copy = this.#media.copy();
  }

  /**
   * Recognises the format by content and decodes up to the first samples.
   *
   * @throws the errors of the source; OutOfBounds for impossible offsets
   */
  static async open(
    source: ByteSource,
    port: MediaPort,
    options: MediaOptions = {},
  ): Promise<AudioResult<MediaReader>> {
    if (source.sizeBytes === 0) return fail('empty', 'The file is empty.');
    const reader = new MediaReader(source, port, options);
    try {
      if (options.from) {
        reader.#resume(options.from);
        return ok(reader);
      }
      const empty = reader.#media.copy();
      let code = await reader.#start(source.sizeBytes, false);
      // AIFF and Core Audio look for what is after the samples only if the input can seek.
      if (code === MEDIA_CODE.damaged && source.canSeek) {
        reader.#return(empty);
        code = await reader.#start(source.sizeBytes, true);
      }
      const { sampleRateHz, channels } = reader.#media;
      if (code === 0 && !(isUsableRate(sampleRateHz) && channels <= MAX_CHANNELS)) code = MEDIA_CODE.noDecoder;
      if (code === 0) return ok(reader);
      reader.close();
      return code === MEDIA_CODE.unknownFormat ? unknownFormat(await readHead(source)) : reader.#failed(code);
    } catch (error) {
      reader.close();
      throw error;
    }
  }

  get facts(): MediaFacts {
    const { sampleRateHz, channels } = this.#media;
    return { format: this.#names[0], codec: codecName(this.#media.text('codec')), sampleRateHz, channels };
  }

  /** Bytes of the file read so far. */
  get readBytes(): number {
    return this.#supply.readBytes;
  }

  /** Result after the last block. @throws Error before that */
  get end(): AudioResult<MediaEnd> {
    if (!this.#end) throw new Error('the recording has not ended');
    return this.#end;
  }

  /** State after the last block that was yielded. */
  snapshot(): MediaSnapshot {
    return {
      memory: this.#media.copy(),
      state: {
        written: this.#written,
        clock: { ...this.#clock.state },
        pending: this.#pending,
        lost: this.#lost,
        rounding: { ...this.#rounding },
      },
    };
  }

  /** The samples in blocks, which are valid until the next one. */
  async *blocks(): AsyncGenerator<Float32Array> {
    const { sampleRateHz } = this.#media;
    const lastSample = MAX_SECONDS * sampleRateHz;
    let code = 0;
    for (let empty = 0; code === 0 && this.#written < lastSample; ) {
      const count = this.#pending > 0 ? this.#pending : await this.#step();
      this.#pending = 0;
      if (count < 0) code = count;
      else if (count > 0) {
        empty = 0;
        yield* this.#place(count);
      } else if (++empty > MAX_EMPTY_STEPS) code = MEDIA_CODE.damaged;
    }
    this.#cutPadding();
    if (this.#filled > 0) yield this.#flush();
    this.#end = code === 0 || code === MEDIA_CODE.end ? this.#complete() : this.#failed(code);
  }

  /** Frees the memory and ends the stream of the source. */
  close(): void {
    this.#supply.close();
  }

  get #names(): readonly [format: string, name: string] {
    const format = this.#media.text('format');
    return FORMATS[format] ?? [format, format];
  }

  /** @returns 0 after the first samples, or a code below 0 */
  async #start(sizeBytes: number, canSeek: boolean): Promise<number> {
    const opened = await this.#attempt(() => this.#media.open(sizeBytes, canSeek));
    if (opened < 0) return opened;
    this.#keep();
    for (let steps = 0; steps < MAX_EMPTY_STEPS; steps++) {
      const count = await this.#step();
      if (count < 0) return count;
      if (count === 0) continue;
      this.#pending = count;
      this.#clock = new Clock(this.#media.sampleRateHz);
      return 0;
    }
    return MEDIA_CODE.damaged;
  }

  #resume({ memory, state }: MediaSnapshot): void {
    this.#return(memory);
    this.#written = state.written;
    this.#pending = state.pending;
    this.#lost = state.lost;
    this.#rounding = { ...state.rounding };
    this.#clock = new Clock(this.#media.sampleRateHz, state.clock);
  }

  async #step(): Promise<number> {
    const most = Math.max(STEPS_PER_COPY, this.#copy.length / COPY_BYTES_PER_STEP);
    if (this.#hasMissed || this.#steps >= most || this.#supply.usedBlocks >= BLOCKS_PER_COPY) this.#keep();
    const next = this.#supply.nextMissing;
    if (next !== undefined) await this.#supply.fetch(next);
    const result = await this.#attempt(() => this.#media.step());
    this.#steps++;
    return result;
  }

  /** Goes back to a copy, for good. */
  #return(copy: Uint8Array): void {
    this.#media.restore(copy);
    this.#keep();
  }

  /** Copies the instance: earlier reads will not be repeated. */
  #keep(): void {
    this.#copy = this.#media.copy(this.#copy);
    this.#steps = 0;
    this.#hasMissed = false;
    this.#supply.keepFrom();
  }

  async #attempt(call: () => number): Promise<number> {
    // A call that misses again and again would be repeated as often as it has blocks: each time it gets twice as many.
    let blocks = 1;
    for (let repeated = this.#steps; ; blocks = Math.min(MOST_BLOCKS_AT_ONCE, 2 * blocks)) {
      try {
        for (; repeated < this.#steps; repeated++) {
          this.#supply.begin();
          this.#media.step();
        }
        this.#supply.begin();
        const result = call();
        if (result === MEDIA_CODE.trapped) this.#media.restore(this.#copy);
        return result;
      } catch (error) {
        if (!(error instanceof MissingBlock)) throw error;
        this.#media.restore(this.#copy);
        repeated = 0;
        this.#hasMissed = true;
        await this.#supply.fetch(error.index, blocks);
      }
    }
  }

  /** Takes the samples of the last step at their time: after silence if there is a gap, without what overlaps. */
  *#place(count: number): Generator<Float32Array> {
    const clock = this.#clock;
    const { position, start, end, endTick, sampleRateHz, lostPackets } = this.#media;
    if (!Number.isNaN(position)) {
      // A container that states its start plays from exactly there, however short a gap is.
      if (!clock.state.isStarted)
        clock.start(Number.isNaN(start) ? clock.position : Math.round(position - start), position);
      // A gap of lost packets is exact; other small differences are rounding.
      else clock.jump(lostPackets > this.#lost ? clock.offsetOf(position) : clock.jumpTo(position));
      this.#lost = lostPackets;
    }
    const at = clock.position;
    const statedEnd = Number.isNaN(end) ? Number.POSITIVE_INFINITY : Math.ceil(end + endTick + clock.state.shift);
    const last = Math.min(statedEnd, MAX_SECONDS * sampleRateHz);
    // The latest samples are kept until others follow, because padding may be cut from them.
    if (at < last && this.#filled >= BLOCK_SAMPLES) yield* this.#yieldBefore(count);
    for (let gap = this.#gapTo(Math.min(at, last)); gap > 0; gap = this.#gapTo(Math.min(at, last))) {
      this.#append(Math.min(gap, BLOCK_SAMPLES));
      if (this.#filled >= BLOCK_SAMPLES) yield* this.#yieldBefore(count);
    }
    const from = Math.min(count, -this.#gapTo(at));
    const to = Math.max(from, Math.min(count, last - at));
    if (to > from) this.#append(this.#media.mono(this.options.channel, count).subarray(from, to));
    clock.advance(count);
    clock.correctRounding(roundingOfRun(this.#rounding, count, this.#media.duration, this.#media.tick));
  }

  /** Yields the buffer. A snapshot of this moment places the samples of the step again. */
  *#yieldBefore(pending: number): Generator<Float32Array> {
    this.#pending = pending;
    yield this.#flush();
    this.#pending = 0;
  }

  /** Cuts what was decoded after the end that the container states. */
  #cutPadding(): void {
    const { position, state } = this.#clock;
    const { end, endTick } = this.#media;
    const padding = position - end - state.shift;
    // An end that is less than a tick of its clock too early is rounded.
    if (!(padding >= endTick && padding < position)) return;
    this.#filled = Math.max(0, Math.min(this.#filled, Math.round(position - padding) - this.#written));
  }

  /** Samples between what was written and `position`. */
  #gapTo(position: number): number {
    return position - this.#written - this.#filled;
  }

  /** Appends samples, or as many zeros. */
  #append(samples: Float32Array | number): void {
    const count = typeof samples === 'number' ? samples : samples.length;
    const filled = this.#filled + count;
    this.#buffer = grown(this.#buffer, this.#filled, filled);
    if (typeof samples === 'number') this.#buffer.fill(0, this.#filled, filled);
    else this.#buffer.set(samples, this.#filled);
    this.#filled = filled;
  }

  #flush(): Float32Array {
    const block = this.#buffer.subarray(0, this.#filled);
    this.#written += this.#filled;
    this.#filled = 0;
    return block;
  }

  #complete(): AudioResult<MediaEnd> {
    const name = this.#names[1];
    if (this.#written === 0) return fail('no_samples', `The ${name} file has no samples in it.`, this.#reason);
    const { damagedPackets, sampleRateHz } = this.#media;
    const warnings = [
      ...(damagedPackets > 0 ? [`${damagedPackets} damaged packets of the ${name} file were left out.`] : []),
      ...(this.#reason === undefined ? [] : [`The ${name} file is damaged; what follows was left out.`]),
      ...clockWarnings(this.#clock.state, sampleRateHz),
    ];
    return ok({ totalSamples: this.#written, ...(warnings.length > 0 && { warning: warnings.join(' ') }) });
  }

  get #reason(): string | undefined {
    return this.#media.text('reason') || undefined;
  }

  #failed(code: number): AudioResult<never> {
    const name = `The ${this.#names[1]} file`;
    const reason = this.#reason;
    switch (code) {
      case MEDIA_CODE.end:
        return fail('no_samples', `${name} has no samples in it.`, reason);
      case MEDIA_CODE.noAudio:
        return fail('no_samples', `${name} has no audio track.`, reason);
      case MEDIA_CODE.noDecoder: {
        const codec = codecName(this.#media.text('codec'));
        return fail('unsupported', `${name} holds audio in ${codec}, which is not supported.`, reason);
      }
      case MEDIA_CODE.encrypted:
        return fail('unsupported', `${name} is encrypted, so it cannot be read.`);
      case MEDIA_CODE.changed:
        return fail('unsupported', `${name} changes its sample rate or its channels in the middle.`, reason);
      case MEDIA_CODE.noMemory:
        return fail('corrupt', `${name} is damaged: it needs too much memory.`, reason);
      default:
        return fail('corrupt', `${name} is damaged.`, reason);
    }
  }
}

/** Our name of a codec by FFmpeg's: that of a coding of PCM says how it is stored. */
const codecName = (name: string): string =>
  name.startsWith('pcm_') ? 'pcm' : name.replace(/_latm$/, '').replaceAll('_', '-');

const unknownFormat = (head: Uint8Array): AudioResult<never> => rejectKnownFormat(head) ?? UNKNOWN;

/** The first bytes of a source. */
async function readHead(source: ByteSource): Promise<Uint8Array> {
  const stream = await source.open(0);
  try {
    let head = new Uint8Array(0);
    for (let chunk = await stream.read(); chunk && head.length < HEAD_BYTES; chunk = await stream.read()) {
      const joined = new Uint8Array(head.length + chunk.length);
      joined.set(head);
      joined.set(chunk, head.length);
      head = joined;
    }
    return head;
  } finally {
    stream.close();
  }
}
