import { type AudioResult, type CodecSpec, type DecoderPort, fail, ok } from '../audio-ports.ts';
import type { BlockReader } from '../block-reader.ts';
import { ascii, hasAscii, u24be, u32be } from '../bytes.ts';
import type { Container, Part, PartEnd, PlayedSpan } from '../container.ts';
import { framePackets, frameWarnings } from '../frame-walker.ts';
import { oneSpan } from '../playback.ts';
import {
  adtsLockAt,
  adtsSyntax,
  BLOCK_SAMPLES,
  findMpegSync,
  type MpegFamily,
  type MpegHeader,
  mpegSyntax,
  parseAdtsHeader,
  SYNC_BYTES,
  sideInfoBytes,
  trailingStreamWarning,
} from './mpeg-frames.ts';

/** Content of the silent first frame of most MP3 files. */
interface InfoTag {
  /** Number of frames after the tag frame, if stated. */
  readonly frames?: number;
  /** Samples that the encoder added at the start; 0 if not stated. */
  readonly delaySamples: number;
  /** Samples that the encoder added at the end; 0 if not stated. */
  readonly paddingSamples: number;
  readonly hasDelay: boolean;
}

/** Encoders that write the three bytes of delay and padding ('LAME tag'). */
const DELAY_WRITERS = ['LAME', 'Lavf', 'Lavc'];

/** Reads the Xing/Info or VBRI tag of the first frame; undefined for a frame of audio. */
function readInfoTag(frame: Uint8Array, header: MpegHeader): InfoTag | undefined {
  const side = 4 + sideInfoBytes(header);
  // If the header has a checksum, some writers put the tag two bytes later.
  for (const at of [side, side + 2]) {
    if (hasAscii(frame, at, 'Xing') || hasAscii(frame, at, 'Info')) return readXing(frame, at);
  }
  if (hasAscii(frame, 36, 'VBRI') && frame.length >= 36 + 18) {
    return { frames: u32be(frame, 36 + 14), delaySamples: 0, paddingSamples: 0, hasDelay: false };
  }
  return undefined;
}

function readXing(frame: Uint8Array, at: number): InfoTag {
  const none: InfoTag = { delaySamples: 0, paddingSamples: 0, hasDelay: false };
  if (at + 8 > frame.length) return none;
  const flags = u32be(frame, at + 4);
  let position = at + 8;
  let frames: number | undefined;
  if (flags & 1 && position + 4 <= frame.length) frames = u32be(frame, position);
  position += (flags & 1 ? 4 : 0) + (flags & 2 ? 4 : 0) + (flags & 4 ? 100 : 0) + (flags & 8 ? 4 : 0);
  const counted = frames === undefined || frames === 0 ? none : { ...none, frames };
  if (position + 24 > frame.length || !DELAY_WRITERS.includes(ascii(frame, position, position + 4))) return counted;
  const packed = u24be(frame, position + 21);
  return { ...counted, delaySamples: packed >> 12, paddingSamples: packed & 0xfff, hasDelay: true };
}

/** Delay of every decoder (ISO/IEC 11172-3 synthesis filterbank and overlap). */
const DECODER_DELAY_SAMPLES = 529;

/**
 * Decoded samples at the end that are the encoder's padding, as players cut it: 0 without the tag.
 *
 * @param decodedSamples frames in the file × samples per frame
 */
function paddingOf(tag: InfoTag | undefined, decodedSamples: number, frameSamples: number): number {
  if (!tag?.hasDelay) return 0;
  const tagged = (tag.frames ?? 0) * frameSamples;
  // More frames than the tag states: concatenated files, to whose end the tag does not apply.
  if (tagged < decodedSamples) return 0;
  return Math.max(0, decodedSamples - (tagged - tag.paddingSamples + DECODER_DELAY_SAMPLES));
}

const REJECTED: Readonly<Record<Exclude<MpegFamily, 'mp3' | 'layer2'>, string>> = {
  'free-format': 'The file is an MP3 file in free format, which is not supported.',
  layer1: 'The file is an MPEG layer I file (MP1), which is not supported.',
  adts: 'The file holds AAC where MP3 should be, which is not supported.',
};

/** MPEG-1, 2 and 2.5 layer III, and layer II, constant and variable bit rate. */
export const mp3: Container = {
  format: 'mp3',
  hasMagic: false,
  detect: (head) => findMpegSync(head, head.length < SYNC_BYTES) !== undefined,
  open: (reader, startByte, decoders) => openMpeg(reader, startByte, reader.sizeBytes, decoders),
};

/** Opens the MPEG audio that fills `[startByte, endByte)`. */
export async function openMpeg(
  reader: BlockReader,
  startByte: number,
  endByte: number,
  decoders: DecoderPort,
): Promise<AudioResult<Part>> {
  const wanted = Math.min(SYNC_BYTES, endByte - startByte);
  const head = (await reader.peek(startByte, wanted)).slice(0, wanted);
  const sync = findMpegSync(head, startByte + head.length >= endByte);
  if (!sync) return fail('corrupt', 'The MP3 file has no whole frame in it.');
  const { family, header } = sync;
  if ((family !== 'mp3' && family !== 'layer2') || !header) {
    return fail('unsupported', REJECTED[family as keyof typeof REJECTED]);
  }
  const [name, codec] = family === 'mp3' ? (['MP3', 'mp3'] as const) : (['MP2', 'mp2'] as const);
  const tag = codec === 'mp3' ? readInfoTag(head.subarray(sync.at, sync.at + header.frameBytes), header) : undefined;
  const firstByte = startByte + sync.at + (tag ? header.frameBytes : 0);
  const { sampleRateHz, channels, frameSamples } = header;
  return ok({
    format: 'mp3',
    displayName: `The ${name} file`,
    codec,
    sampleRateHz,
    channels,
    openDecoder: () => decoders.open({ codec, sampleRateHz, channels }),
    walk: (faults, entry = firstByte) =>
      framePackets(reader, mpegSyntax(header.lock), { startByte: entry, endByte }, frameSamples, faults),
    playedSpans: (): readonly PlayedSpan[] => oneSpan(tag?.hasDelay ? tag.delaySamples + DECODER_DELAY_SAMPLES : 0),
    paddingOf: ({ position }) => paddingOf(tag, position, frameSamples),
    async warnings(faults, end: PartEnd) {
      // Missing frames may be in skipped bytes.
      const hasTooFew = !faults.skippedBytes && tag?.frames !== undefined && tag.frames > end.packets + 1;
      const framesEnd = Number(faults.framesEnd ?? firstByte);
      const seconds = (end.position - paddingOf(tag, end.position, frameSamples)) / sampleRateHz;
      const rest = await trailingStreamWarning(name, reader, { startByte: framesEnd, endByte }, seconds);
      return [...frameWarnings(name, faults, faults.isCut === true || hasTooFew), ...rest];
    },
  });
}

/** Frames that are decoded to find the sample rate: the first ones may lack bandwidth extension. */
const TRIAL_FRAMES = 24;

/** Raw AAC with ADTS headers: AAC-LC, HE-AAC and HE-AAC v2. The encoder's delay is not stated, so nothing is cut. */
export const adts: Container = {
  format: 'adts',
  hasMagic: false,

  detect: (head) => findMpegSync(head, head.length < SYNC_BYTES)?.family === 'adts',

  async open(reader, startByte, decoders) {
    const endByte = reader.sizeBytes;
    const wanted = Math.min(SYNC_BYTES, endByte - startByte);
    const head = (await reader.peek(startByte, wanted)).slice(0, wanted);
    const sync = findMpegSync(head, startByte + head.length >= endByte);
    if (sync?.family !== 'adts') return fail('corrupt', 'The AAC file has no whole frame in it.');
    const header = parseAdtsHeader(head, sync.at);
    if (header.blocks > 1)
      return fail('unsupported', 'AAC files with several blocks in an ADTS frame are not supported.');
    const lock = adtsLockAt(head, sync.at);
    const firstByte = startByte + sync.at;
    const { coreRateHz } = header;
    const channels = Math.max(1, header.channels);
    const factor = await rateFactor(reader, decoders, lock, { coreRateHz, channels }, firstByte);
    if (factor === undefined) return fail('unsupported', 'The AAC file is coded in a way that is not supported.');
    const sampleRateHz = factor * coreRateHz;
    return ok({
      format: 'adts',
      displayName: 'The AAC file',
      codec: 'aac',
      sampleRateHz,
      channels,
      openDecoder: () => decoders.open(specOf(sampleRateHz, channels)),
      walk: (faults, entry = firstByte) =>
        framePackets(reader, adtsSyntax(lock), { startByte: entry, endByte }, factor * BLOCK_SAMPLES, faults),
      async warnings(faults, { position }) {
        const rest = { startByte: Number(faults.framesEnd ?? firstByte), endByte };
        return [
          ...frameWarnings('AAC', faults),
          ...(await trailingStreamWarning('AAC', reader, rest, position / sampleRateHz)),
        ];
      },
    });
  },
};

/** Every packet has a header with all parameters. */
const specOf = (sampleRateHz: number, channels: number): CodecSpec => ({ codec: 'aac', sampleRateHz, channels });

/** Sample rate divided by the rate of the headers: only the coded data show bandwidth extension. */
async function rateFactor(
  reader: BlockReader,
  decoders: DecoderPort,
  lock: number,
  { coreRateHz, channels }: { readonly coreRateHz: number; readonly channels: number },
  startByte: number,
): Promise<number | undefined> {
  const decoder = decoders.open(specOf(coreRateHz, channels));
  const range = { startByte, endByte: reader.sizeBytes };
  let tries = 0;
  let factor = 0;
  try {
    frames: for await (const { packets } of framePackets(reader, adtsSyntax(lock), range, BLOCK_SAMPLES, {})) {
      for (const { offset, length } of packets) {
        const frame = (await reader.peek(offset, length)).subarray(0, length);
        if (decoder.decode(frame).length > 0) factor = Math.max(factor, Math.round(decoder.sampleRateHz / coreRateHz));
        if (++tries === TRIAL_FRAMES) break frames;
      }
    }
  } finally {
    decoder.close();
  }
  return factor === 1 || factor === 2 ? factor : undefined;
}
