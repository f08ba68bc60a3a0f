import { BlockReader } from './block-reader.ts';
import { Decoding, type Restart } from './decode.ts';
import { openPart } from './open.ts';
import { type AudioResult, fail, ok } from './result.ts';
import { type ByteSource, type DecoderPort, OUTPUT_RATE_HZ, type Resampler, type ResamplerPort } from './types.ts';

export interface AudioPorts {
  readonly decoder: DecoderPort;
  readonly resampler: ResamplerPort;
}

/** What the head of a recording says. */
export interface RecordingFacts {
  readonly format: string;
  readonly codec: string;
  /** Of the decoded samples. */
  readonly sampleRateHz: number;
  readonly channels: number;
}

/** Where another process continues with the same recording. Plain JSON. */
export interface Checkpoint {
  /** The next sample at 16 kHz. */
  readonly sample: number;
  /** Absent where decoding begins at the start of the file. */
  readonly restart?: Restart;
}

/** What a whole recording came to. */
export interface RecordingEnd {
  /** At 16 kHz: every output whose moment lies before the end of the recording. */
  readonly totalSamples: number;
  readonly durationSeconds: number;
  readonly warning?: string;
}

function ofChannel(decoder: DecoderPort, channel: number | undefined): DecoderPort {
  return channel === undefined ? decoder : { channel, open: (spec) => decoder.open({ ...spec, channel }) };
}

/**
 * One forward pass over a recording: 16 kHz mono samples. A sample does not depend on where the pass began, to the bit
 * (`decode.ts`).
 */
export class Recording {
  #end: RecordingEnd | undefined;

  private constructor(
    readonly facts: RecordingFacts,
    private readonly reader: BlockReader,
    private readonly decoding: Decoding,
    private readonly where: string,
    private readonly resampler: ResamplerPort,
    private readonly firstSample: number,
  ) {}

  /**
   * Detects the format from the content (never from a name). Failures of the source are thrown as they come.
   *
   * @param from where another process left off, from `checkpointAt`
   * @param channel to decode, from 0; the mean of all if absent
   */
  static async open(
    source: ByteSource,
    ports: AudioPorts,
    from?: Checkpoint,
    channel?: number,
  ): Promise<AudioResult<Recording>> {
    if (source.sizeBytes === 0) return fail('empty', 'The file is empty.');
    const reader = new BlockReader(source);
    let isOpen = false;
    try {
      const part = await openPart(reader, ofChannel(ports.decoder, channel));
      if (!part.ok) return part;
      const { format, codec, sampleRateHz, channels, where } = part.value;
      const decoding = await Decoding.open(reader, part.value, from?.restart);
      isOpen = true;
      const facts = { format, codec, sampleRateHz, channels };
      return ok(new Recording(facts, reader, decoding, where, ports.resampler, from?.sample ?? 0));
    } finally {
      if (!isOpen) reader.close();
    }
  }

  /** Bytes of the file that have been read so far. */
  get readBytes(): number {
    return this.reader.readBytes;
  }

  /**
   * Where another process must begin so that it has the samples from `sample` on. Ask in order, for samples that have
   * come.
   */
  checkpointAt(sample: number): Checkpoint {
    const restart = this.decoding.restartFor(this.#inputFor(sample));
    return restart ? { sample, restart } : { sample };
  }

  /** What the samples came to, once they have ended: also why there are none. */
  get end(): AudioResult<RecordingEnd> {
    if (!this.#end) throw new Error('the recording has not ended');
    return this.#end.totalSamples > 0 ? ok(this.#end) : fail('no_samples', `${this.where} has no samples in it.`);
  }

  /** Samples at 16 kHz in blocks of any length, views that the next block may overwrite. */
  async *samples(): AsyncGenerator<Float32Array> {
    const rateHz = this.facts.sampleRateHz;
    let sample = this.firstSample;
    if (rateHz === OUTPUT_RATE_HZ) {
      yield* this.decoding.blocks(sample);
    } else {
      const firstInput = this.#inputFor(sample);
      const resampler: Resampler = this.resampler.open(rateHz, firstInput, sample);
      try {
        for await (const block of this.decoding.blocks(firstInput)) {
          const out = resampler.push(block);
          sample += out.length;
          if (out.length > 0) yield out;
        }
        const rest = resampler.flush();
        yield rest.subarray(0, Math.max(0, this.#total() - sample));
      } finally {
        resampler.close();
      }
    }
    const { totalSamples, warning } = this.decoding.end;
    this.#end = {
      totalSamples: this.#total(),
      durationSeconds: totalSamples / rateHz,
      ...(warning !== undefined && { warning }),
    };
  }

  /** Gives the memory back and ends the stream of the source. */
  close(): void {
    this.reader.close();
  }

  #total(): number {
    return Math.ceil((this.decoding.end.totalSamples * OUTPUT_RATE_HZ) / this.facts.sampleRateHz);
  }

  /** The first sample at the source's rate that the output `sample` is made of. */
  #inputFor(sample: number): number {
    const rateHz = this.facts.sampleRateHz;
    if (rateHz === OUTPUT_RATE_HZ) return sample;
    const position = Math.floor((sample * rateHz) / OUTPUT_RATE_HZ);
    return Math.max(0, position - this.resampler.contextInputSamples(rateHz));
  }
}
