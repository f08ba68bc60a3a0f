import {
  type AudioResult,
  type ByteSource,
  type DecoderPort,
  fail,
  ok,
  type Resampler,
  type ResamplerPort,
  SAMPLE_RATE_HZ,
} from './audio-ports.ts';
import { BlockReader, OutOfBounds, skipHeadTags, skipZeros } from './block-reader.ts';
import type { Container, Part } from './container.ts';
import { aiff } from './containers/aiff.ts';
import { amr } from './containers/amr.ts';
import { caf } from './containers/caf.ts';
import { flac } from './containers/flac.ts';
import { matroska } from './containers/matroska.ts';
import { mp4 } from './containers/mp4.ts';
import { adts, mp3 } from './containers/mpeg-audio.ts';
import { mpegTs } from './containers/mpeg-ts.ts';
import { ogg } from './containers/ogg.ts';
import { wav } from './containers/wav.ts';
import { Decoding, type Restart } from './decode.ts';
import { rejectKnownFormat, UNKNOWN } from './sniff.ts';

/** Formats with a distinct magic first; ADTS and MPEG audio are recognised by a chain of frame headers. */
const CONTAINERS: readonly Container[] = [wav, flac, aiff, caf, amr, mp4, matroska, ogg, mpegTs, adts, mp3];

/** Bytes after the tags that `detect` reads. */
const HEAD_BYTES = 1 << 16;
/** Zeros before the audio, from recorders and broken tags. */
const MAX_ZERO_BYTES = 4 << 20;
/** Other bytes before the audio: the rest of a tag whose stated size is too small, mostly a picture. */
const MAX_JUNK_BYTES = 1 << 20;
/** Successive heads overlap by half, so that no chain of the longest frames is cut in two. */
const JUNK_STEP_BYTES = HEAD_BYTES / 2;
/** After junk, frames must fill most of this number of bytes: programs and archives contain a few by chance. */
const PROOF_BYTES = 1 << 18;
const PROOF_SHARE = 0.5;

/** Detects the format from the content (never from a name) and reads its head. @throws the errors of the source */
export async function openPart(reader: BlockReader, decoders: DecoderPort): Promise<AudioResult<Part>> {
  try {
    return advised(await detect(reader, decoders));
  } catch (error) {
    if (error instanceof OutOfBounds) return DAMAGED_SIZE;
    throw error;
  }
}

export const DAMAGED_SIZE = fail('corrupt', 'The file is damaged: it states an impossible size.');

/** Adds advice if another coding would help: not for encryption or values out of bounds. */
function advised(opened: AudioResult<Part>): AudioResult<Part> {
  if (opened.ok || opened.error.kind !== 'unsupported') return opened;
  const { kind, message } = opened.error;
  if (!/ not supported( yet)?\.$/.test(message)) return opened;
  return fail(kind, `${message.slice(0, -1)}; convert it to FLAC, MP3 or 16-bit WAV.`);
}

async function detect(reader: BlockReader, decoders: DecoderPort): Promise<AudioResult<Part>> {
  const startByte = await skipHeadTags(reader);
  const head = await readHead(reader, startByte);
  const known = CONTAINERS.find((candidate) => candidate.hasMagic && candidate.detect(head)) ?? rejectKnownFormat(head);
  if (known) return 'open' in known ? known.open(reader, startByte, decoders) : known;
  const stream = bareStream(head);
  if (stream) return stream.open(reader, startByte, decoders);
  const zerosEnd = Math.min(reader.sizeBytes, startByte + MAX_ZERO_BYTES);
  const afterZeros = await skipZeros(reader, startByte, zerosEnd);
  if (afterZeros > startByte && afterZeros < zerosEnd) {
    const streamAfterZeros = bareStream(await readHead(reader, afterZeros));
    if (streamAfterZeros) return streamAfterZeros.open(reader, afterZeros, decoders);
  }
  return (await openAfterJunk(reader, startByte, decoders)) ?? UNKNOWN;
}

/** The first decodable frame stream after bytes of any kind; undefined if there is none. */
async function openAfterJunk(
  reader: BlockReader,
  startByte: number,
  decoders: DecoderPort,
): Promise<AudioResult<Part> | undefined> {
  const end = Math.min(reader.sizeBytes, startByte + MAX_JUNK_BYTES);
  for (let at = startByte + JUNK_STEP_BYTES; at < end; at += JUNK_STEP_BYTES) {
    const stream = bareStream(await readHead(reader, at));
    const opened = await stream?.open(reader, at, decoders);
    if (opened?.ok && (await isMostlyFrames(opened.value, reader.sizeBytes))) return opened;
  }
  return undefined;
}

/** Whether the packets of a part fill most of the bytes after the first one. */
async function isMostlyFrames(part: Part, sizeBytes: number): Promise<boolean> {
  let bytes = 0;
  let from: number | undefined;
  let end = sizeBytes;
  for await (const { packets } of part.walk({})) {
    from ??= packets[0]?.offset ?? 0;
    end = Math.min(sizeBytes, from + PROOF_BYTES);
    for (const { offset, length } of packets) if (offset < end) bytes += length;
    if ((packets.at(-1)?.offset ?? 0) >= end) break;
  }
  return from !== undefined && bytes >= PROOF_SHARE * (end - from);
}

const readHead = async (reader: BlockReader, at: number): Promise<Uint8Array> =>
  (await reader.peek(at, HEAD_BYTES)).slice(0, HEAD_BYTES);

/** A format of bare frames, which can begin anywhere in a file. */
const bareStream = (head: Uint8Array) => CONTAINERS.find((candidate) => !candidate.hasMagic && candidate.detect(head));

export interface AudioPorts {
  readonly decoder: DecoderPort;
  readonly resampler: ResamplerPort;
}

/** Facts from the head of a recording. */
export interface RecordingFacts {
  readonly format: string;
  readonly codec: string;
  /** Rate of the decoded samples. */
  readonly sampleRateHz: number;
  readonly channels: number;
}

/** State from which another process continues the same recording. Plain JSON. */
export interface Checkpoint {
  /** The next sample at 16 kHz. */
  readonly sample: number;
  /** Absent if decoding begins at the start of the file. */
  readonly restart?: Restart;
}

/** Result of a complete recording. */
export interface RecordingEnd {
  /** At 16 kHz: all samples whose time is before the end of the recording. */
  readonly totalSamples: number;
  readonly durationSeconds: number;
  readonly warning?: string;
}

function ofChannel(decoder: DecoderPort, channel: number | undefined): DecoderPort {
  return channel === undefined ? decoder : { channel, open: (spec) => decoder.open({ ...spec, channel }) };
}

/** One forward pass over a recording: 16 kHz mono samples, bit-identical from any checkpoint (`decode.ts`). */
export class Recording {
  #end: RecordingEnd | undefined;

  private constructor(
    readonly facts: RecordingFacts,
    private readonly reader: BlockReader,
    private readonly decoding: Decoding,
    private readonly displayName: string,
    private readonly resampler: ResamplerPort,
    private readonly firstSample: number,
  ) {}

  /**
   * Detects the format from the content (never from a name).
   *
   * @param from state of another process, from `checkpointAt`
   * @param channel to decode, from 0; the mean of all if absent
   * @throws the errors of the source
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
      const { format, codec, sampleRateHz, channels, displayName } = part.value;
      const decoding = await Decoding.open(reader, part.value, from?.restart);
      isOpen = true;
      const facts = { format, codec, sampleRateHz, channels };
      return ok(new Recording(facts, reader, decoding, displayName, ports.resampler, from?.sample ?? 0));
    } finally {
      if (!isOpen) reader.close();
    }
  }

  /** Bytes of the file read so far. */
  get readBytes(): number {
    return this.reader.readBytes;
  }

  /**
   * State from which another process gets the samples from `sample`. Call in ascending order, for samples that
   * `samples` has yielded.
   */
  checkpointAt(sample: number): Checkpoint {
    const restart = this.decoding.restartFor(this.#inputFor(sample));
    return restart ? { sample, restart } : { sample };
  }

  /** Result after the last sample; a failure if there was none. */
  get end(): AudioResult<RecordingEnd> {
    if (!this.#end) throw new Error('the recording has not ended');
    return this.#end.totalSamples > 0 ? ok(this.#end) : fail('no_samples', `${this.displayName} has no samples in it.`);
  }

  /** Samples at 16 kHz in blocks of any length; the next block may overwrite a block. */
  async *samples(): AsyncGenerator<Float32Array> {
    const rateHz = this.facts.sampleRateHz;
    let sample = this.firstSample;
    if (rateHz === SAMPLE_RATE_HZ) {
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

  /** Frees the memory and ends the stream of the source. */
  close(): void {
    this.reader.close();
  }

  #total(): number {
    return Math.ceil((this.decoding.end.totalSamples * SAMPLE_RATE_HZ) / this.facts.sampleRateHz);
  }

  /** The first sample at the source's rate that the output `sample` depends on. */
  #inputFor(sample: number): number {
    const rateHz = this.facts.sampleRateHz;
    if (rateHz === SAMPLE_RATE_HZ) return sample;
    const position = Math.floor((sample * rateHz) / SAMPLE_RATE_HZ);
    return Math.max(0, position - this.resampler.contextInputSamples(rateHz));
  }
}
