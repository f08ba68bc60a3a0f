import { type AudioResult, type CodecName, type DecoderPort, fail, ok } from '../audio-ports.ts';
import { type BlockReader, skipZeros } from '../block-reader.ts';
import { ascii, hasAscii, u16le, u32le, u64le } from '../bytes.ts';
import { type Container, type Part, shapeFault, trailingFileWarning } from '../container.ts';
import { blockPackets, pcmBlocks } from '../frame-walker.ts';
import { effectsOfMask, type PcmLayout, pcmDecoder } from '../pcm.ts';
import { oneSpan } from '../playback.ts';
import { openMpeg } from './mpeg-audio.ts';

/** Codings of WAV with blocks of constant size. */
type BlockCodec = Extract<CodecName, 'adpcm-ima-wav' | 'adpcm-ms' | 'gsm-ms'>;

interface BlockFormat {
  readonly codec: BlockCodec;
  readonly sampleRateHz: number;
  readonly channels: number;
  readonly blockBytes: number;
  readonly bitsPerCodedSample: number;
}

const GSM_BLOCK_BYTES = 65;
const GSM_BLOCK_SAMPLES = 320;
/** Far above any encoder's blocks. */
const MAX_BLOCK_BYTES = 1 << 16;
/** Far below any encoder's blocks: shorter ones only cost time. */
const MIN_BLOCK_SAMPLES = 32;

/** Samples per channel in `bytes` of a block; 0 if there are too few. */
export function blockSamples({ codec, channels, bitsPerCodedSample }: BlockFormat, bytes: number): number {
  switch (codec) {
    case 'adpcm-ima-wav': {
      // 4 bytes a channel with one sample, then groups of 32-bit words that alternate between the channels.
      const [groupBytes, groupSamples] = bitsPerCodedSample === 3 ? [12, 32] : [4, 8];
      const left = bytes - 4 * channels;
      return left < 0 ? 0 : 1 + Math.floor(left / (groupBytes * channels)) * groupSamples;
    }
    case 'adpcm-ms':
      // 7 bytes a channel with two samples, then four bits a sample.
      return bytes < 7 * channels ? 0 : 2 + Math.floor(((bytes - 7 * channels) * 2) / channels);
    case 'gsm-ms':
      return bytes < GSM_BLOCK_BYTES ? 0 : GSM_BLOCK_SAMPLES;
  }
}

/** Undefined if the decoder supports the format; otherwise the fault, to complete a message. */
function blockFormatFault(format: BlockFormat): string | undefined {
  const { codec, channels, blockBytes, bitsPerCodedSample } = format;
  const maxChannels = codec === 'gsm-ms' ? 1 : codec === 'adpcm-ms' ? 6 : 2;
  if (channels > maxChannels) return `with ${channels} channels`;
  const isSupportedWidth =
    codec === 'gsm-ms' || bitsPerCodedSample === 4 || (codec === 'adpcm-ima-wav' && bitsPerCodedSample === 3);
  if (!isSupportedWidth) return `with ${bitsPerCodedSample} bits a sample`;
  if (
    codec === 'gsm-ms'
      ? blockBytes !== GSM_BLOCK_BYTES
      : blockBytes > MAX_BLOCK_BYTES || blockSamples(format, blockBytes) < MIN_BLOCK_SAMPLES
  ) {
    return `in blocks of ${blockBytes} bytes`;
  }
  return undefined;
}

/** Content of the format chunk. */
type WavFormat =
  | { readonly kind: 'pcm'; readonly sampleRateHz: number; readonly pcm: PcmLayout }
  | { readonly kind: 'blocks'; readonly blocks: BlockFormat }
  /** MPEG audio, whose frames repeat all parameters. */
  | { readonly kind: 'mpeg' };

interface WavHeader {
  readonly format: WavFormat;
  /** Samples per channel, from the fact chunk. */
  readonly factSamples?: number;
  readonly dataOffset: number;
  /** Bytes of the data chunk that are in the file. */
  readonly dataBytes: number;
  readonly warning?: string;
}

/** Chunks before the data chunk; real files have fewer than ten. */
const MAX_CHUNKS = 1000;
/** Writers to a pipe do not know the size and write this or a larger value into the header. */
const STREAMED_FROM = 0x7ffff000;

const FORMAT_NAMES: Readonly<Record<number, string>> = {
  69: 'G.726 ADPCM',
  255: 'AAC',
  352: 'Windows Media',
  353: 'Windows Media',
};

const BLOCK_CODECS: Readonly<Record<number, readonly [codec: BlockCodec, name: string]>> = {
  2: ['adpcm-ms', 'Microsoft ADPCM'],
  17: ['adpcm-ima-wav', 'IMA ADPCM'],
  49: ['gsm-ms', 'GSM 6.10'],
};

/** Widths of samples that fill their bytes, by format tag: their alignment is ignored, as some writers get it wrong. */
const PLAIN_BITS: Readonly<Record<number, readonly number[]>> = { 1: [8, 16, 32], 3: [32, 64] };

/** Tails of the two GUID families whose first two bytes are a plain format tag. */
const GUID_TAILS = ['000000001000800000aa00389b71', '00002107d3118644c8c1ca000000'];

/** RIFF, RF64 and BW64: finds the format and the position of the samples. */
async function readWavHeader(reader: BlockReader, startByte: number): Promise<AudioResult<WavHeader>> {
  let format: WavFormat | undefined;
  let ds64DataBytes: number | undefined;
  let factSamples: number | undefined;
  const magic = await reader.peek(startByte, 12);
  const is64 = !hasAscii(magic, 0, 'RIFF');
  let offset = startByte + 12;
  let hasOddSize = false;
  for (let count = 0; count < MAX_CHUNKS; count++) {
    if (hasOddSize && (await startsKnown(reader, offset - 1))) offset--;
    const head = await reader.peek(offset, 8);
    if (head.length < 8 || offset + 8 > reader.sizeBytes) break;
    const size = u32le(head, 4);
    hasOddSize = size % 2 === 1;
    const body = offset + 8;
    if (hasAscii(head, 0, 'ds64') && size >= 16) {
      const bytes = await reader.peek(body, 16);
      if (bytes.length >= 16) ds64DataBytes = u64le(bytes, 8);
    } else if (hasAscii(head, 0, 'fmt ')) {
      const bytes = await reader.peek(body, Math.min(size, 40));
      const parsed = parseFormat(bytes.subarray(0, Math.min(size, 40)));
      if (!parsed.ok) return parsed;
      format = parsed.value;
    } else if (hasAscii(head, 0, 'fact') && size >= 4) {
      const bytes = await reader.peek(body, 4);
      if (bytes.length >= 4) factSamples = u32le(bytes, 0);
    } else if (hasAscii(head, 0, 'data')) {
      if (!format) return fail('corrupt', 'The WAV file has no format before its samples.');
      const declared = is64 && size === 0xffffffff ? (ds64DataBytes ?? size) : size;
      return ok({
        format,
        factSamples,
        dataOffset: body,
        ...(await dataExtent(reader, reader.sizeBytes, body, declared)),
      });
    }
    offset = body + size + (size & 1);
  }
  return fail('no_samples', 'The WAV file has no samples in it.');
}

/** Whether a chunk begins at `offset`: some writers omit the padding byte after a chunk of odd size. */
async function startsKnown(reader: BlockReader, offset: number): Promise<boolean> {
  const head = await reader.peek(offset, 4);
  return ['data', 'fmt ', 'fact', 'LIST'].some((name) => hasAscii(head, 0, name));
}

function parseFormat(bytes: Uint8Array): AudioResult<WavFormat> {
  if (bytes.length < 14) return fail('corrupt', 'The header of the WAV file is cut short.');
  let tag = u16le(bytes, 0);
  let channelMask = 0;
  const channels = u16le(bytes, 2);
  const sampleRateHz = u32le(bytes, 4);
  const blockAlign = u16le(bytes, 12);
  const bits = bytes.length >= 16 ? u16le(bytes, 14) : 0;
  if (tag === 0xfffe) {
    if (bytes.length < 40) return fail('corrupt', 'The header of the WAV file is cut short.');
    let tail = '';
    for (const byte of bytes.subarray(26, 40)) tail += byte.toString(16).padStart(2, '0');
    if (!GUID_TAILS.includes(tail)) return fail('unsupported', 'The WAV file holds a coding that is not supported.');
    tag = u16le(bytes, 24);
    channelMask = u32le(bytes, 20);
  }
  const shape = shapeFault('WAV', sampleRateHz, channels);
  if (shape) return shape;
  if (tag === 80 || tag === 85) return ok({ kind: 'mpeg' });
  const blockCodec = BLOCK_CODECS[tag];
  if (blockCodec) {
    const [codec, name] = blockCodec;
    const blocks = { codec, sampleRateHz, channels, blockBytes: blockAlign, bitsPerCodedSample: bits };
    const fault = blockFormatFault(blocks);
    return fault === undefined
      ? ok({ kind: 'blocks', blocks })
      : fail('unsupported', `WAV files that hold ${name} ${fault} are not supported.`);
  }
  const bytesByAlign = blockAlign > 0 && blockAlign % channels === 0 ? blockAlign / channels : Math.ceil(bits / 8);
  const bytesPerSample = PLAIN_BITS[tag]?.includes(bits)
    ? bits / 8
    : tag === 1 && bits === 24 && bytesByAlign !== 4
      ? 3
      : bytesByAlign;
  const effects = effectsOfMask(channelMask, channels);
  const pcm = (encoding: PcmLayout['encoding']) => {
    const layout = { encoding, channels, bytesPerSample, ...(effects.length > 0 ? { effects } : {}) };
    return ok({ kind: 'pcm', sampleRateHz, pcm: layout } as const);
  };
  const bitError = () => fail('unsupported', `WAV files with ${bits} bits a sample in this coding are not supported.`);
  switch (tag) {
    case 1:
      if (bytesPerSample < 1 || bytesPerSample > 4 || bits > bytesPerSample * 8) return bitError();
      return pcm(bytesPerSample === 1 ? 'unsigned' : 'signed');
    case 3:
      return bytesPerSample === 4 || bytesPerSample === 8 ? pcm('float') : bitError();
    case 6:
      return bytesPerSample === 1 ? pcm('alaw') : bitError();
    case 7:
      return bytesPerSample === 1 ? pcm('mulaw') : bitError();
    default: {
      const name = FORMAT_NAMES[tag] ?? `a coding (format tag ${tag})`;
      return fail('unsupported', `The WAV file holds ${name}, which is not supported.`);
    }
  }
}

async function dataExtent(
  reader: BlockReader,
  endByte: number,
  dataOffset: number,
  declared: number,
): Promise<{ dataBytes: number; warning?: string }> {
  const available = Math.max(0, endByte - dataOffset);
  if (declared === 0 && available > 0 && !(await chunksReachEnd(reader, dataOffset, endByte))) {
    return { dataBytes: available, warning: STREAMED_WARNING };
  }
  if (declared <= available) return { dataBytes: declared };
  return { dataBytes: available, warning: declared >= STREAMED_FROM ? STREAMED_WARNING : TRUNCATED_WARNING };
}

const STREAMED_WARNING =
  'The header of the WAV file does not say how long the recording is; everything up to the end of the file was used.';
const TRUNCATED_WARNING = 'The WAV file is shorter than its header says; the available part was used.';

/** Distinguishes an empty data chunk from one of unknown size: only after the former do chunks follow to the end. */
async function chunksReachEnd(reader: BlockReader, from: number, endByte: number): Promise<boolean> {
  let offset = from;
  for (let count = 0; count < 100 && offset + 8 <= endByte; count++) {
    const head = await reader.peek(offset, 8);
    if (head.length < 8 || !/^[\x20-\x7e]{4}$/.test(ascii(head, 0, 4))) return false;
    const size = u32le(head, 4);
    offset += 8 + size + (size & 1);
    if (offset === endByte || offset === endByte + 1) return true;
  }
  return false;
}

/** Chunks after the samples. */
const MAX_CHUNKS_AFTER = 100;
/** A header with the shortest format. */
const MIN_FILE_BYTES = 44;
/** Bytes after the last chunk that may be ignored without a warning: padding, tags of players. */
const MAX_TAIL_BYTES = 4096;
/** Zeros after the samples, before further audio; more zeros are padding or damage. */
const MAX_ZERO_BYTES = 16 << 20;

const IS_NAME = /^[\x20-\x7e]{4}$/;
const TAGS = ['ID3', 'TAG', 'APETAGEX'];

const isWave = (head: Uint8Array): boolean =>
  (hasAscii(head, 0, 'RIFF') || hasAscii(head, 0, 'RF64') || hasAscii(head, 0, 'BW64')) && hasAscii(head, 8, 'WAVE');

/**
 * Warns of possible audio after the samples: another file, or bytes that are no chunk, no tag and no zeros.
 *
 * @param from first byte after the samples
 */
async function trailingDataWarning(reader: BlockReader, from: number): Promise<string[]> {
  const end = reader.sizeBytes;
  let offset = from;
  let isPadded = false;
  for (let count = 0; count < MAX_CHUNKS_AFTER && end - offset >= MIN_FILE_BYTES; count++) {
    const head = await reader.peek(offset, 12);
    if (isWave(head)) return [trailingFileWarning('The WAV file')];
    const size = u32le(head, 4);
    if (IS_NAME.test(ascii(head, 0, 4)) && offset + 8 + size <= end) {
      offset += 8 + size;
      isPadded = false;
      continue;
    }
    // A chunk of odd length is followed by a padding byte, which some writers omit.
    if (isPadded || head[0] !== 0) break;
    offset++;
    isPadded = true;
  }
  const rest = end - offset;
  if (rest <= MAX_TAIL_BYTES) return [];
  const nonZero = await skipZeros(reader, offset, Math.min(end, offset + MAX_ZERO_BYTES));
  if (end - nonZero <= MAX_TAIL_BYTES || nonZero === offset + MAX_ZERO_BYTES) return [];
  const head = await reader.peek(nonZero, 16);
  if (TAGS.some((tag) => hasAscii(head, 0, tag))) return [];
  return [`${rest} bytes after the samples of the WAV file are not described by its header and were left out.`];
}

/** WAV, RF64 and BW64: uncompressed, A-law, µ-law, ADPCM, GSM 6.10, and MPEG audio. */
export const wav: Container = {
  format: 'wav',
  hasMagic: true,

  detect: isWave,

  async open(reader, startByte, decoders) {
    const header = await readWavHeader(reader, startByte);
    if (!header.ok) return header;
    const part = await partOf(reader, header.value, decoders);
    if (!part.ok) return part;
    const { dataOffset, dataBytes, warning } = header.value;
    const { warnings } = part.value;
    return ok({
      ...part.value,
      format: 'wav',
      displayName: 'The WAV file',
      // MPEG audio has its own warnings.
      warnings: async (faults, end) => [
        ...(warning === undefined ? [] : [warning]),
        ...(await trailingDataWarning(reader, dataOffset + dataBytes)),
        ...((await warnings?.(faults, end)) ?? []),
      ],
    });
  },
};

async function partOf(
  reader: BlockReader,
  header: WavHeader,
  decoders: DecoderPort,
): Promise<AudioResult<Omit<Part, 'format' | 'displayName'>>> {
  const { format, dataOffset, dataBytes } = header;
  switch (format.kind) {
    case 'pcm': {
      const { sampleRateHz, pcm } = format;
      const blocks = pcmBlocks(pcm, dataOffset, dataBytes);
      return ok({
        codec: 'pcm',
        sampleRateHz,
        channels: pcm.channels,
        openDecoder: () => pcmDecoder(pcm, sampleRateHz, decoders),
        walk: (_, entry) => blockPackets(blocks, entry),
      });
    }
    case 'blocks': {
      const { blocks } = format;
      const layout = { dataOffset, dataBytes, blockBytes: blocks.blockBytes, samplesOf: samplesOf(blocks) };
      return ok({
        ...blocks,
        openDecoder: () => decoders.open(blocks),
        walk: (_, entry) => blockPackets(layout, entry),
        playedSpans: () => oneSpan(0, blockTotal(blocks, header)),
      });
    }
    case 'mpeg':
      if (dataBytes === 0) return fail('no_samples', 'The WAV file has no samples in it.');
      return openMpeg(reader, dataOffset, dataOffset + dataBytes, decoders);
  }
}

const samplesOf = (format: BlockFormat) => (bytes: number) => blockSamples(format, bytes);

/** Samples of all blocks; the fact chunk states the total without the padding of the last block. */
function blockTotal(format: BlockFormat, { dataBytes, factSamples }: WavHeader): number {
  const fullBlocks = Math.floor(dataBytes / format.blockBytes);
  const perBlock = blockSamples(format, format.blockBytes);
  const total = fullBlocks * perBlock + blockSamples(format, dataBytes - fullBlocks * format.blockBytes);
  return factSamples !== undefined && factSamples < total && factSamples > total - perBlock ? factSamples : total;
}
