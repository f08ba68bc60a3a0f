import { type AudioResult, fail, ok } from '../audio-ports.ts';
import type { BlockReader } from '../block-reader.ts';
import { ascii, hasAscii, u16be, u32be } from '../bytes.ts';
import { type Container, shapeFault, trailingFileWarning } from '../container.ts';
import { blockPackets, ima4Blocks, pcmBlocks } from '../frame-walker.ts';
import { effectsOfLayout, MAX_LAYOUT_BYTES, type PcmLayout, pcmDecoder } from '../pcm.ts';

/** Coding of the samples. */
type AiffFormat =
  | { readonly kind: 'pcm'; readonly sampleRateHz: number; readonly pcm: PcmLayout }
  /** IMA ADPCM of QuickTime: packets of 34 bytes a channel. */
  | { readonly kind: 'ima4'; readonly sampleRateHz: number; readonly channels: number };

interface AiffHeader {
  readonly format: AiffFormat;
  readonly dataOffset: number;
  /** Bytes of audio that are in the file. */
  readonly dataBytes: number;
  readonly warning?: string;
}

/** Chunks walked; real files have fewer than ten. */
const MAX_CHUNKS = 1000;

const DAMAGED = fail('corrupt', 'The header of the AIFF file is damaged.');

/** AIFF and AIFF-C: finds the format and the samples, whose chunks may come in either order. */
async function readAiffHeader(reader: BlockReader, startByte: number): Promise<AudioResult<AiffHeader>> {
  const isCompressed = hasAscii(await reader.peek(startByte, 12), 8, 'AIFC');
  let format: AiffFormat | undefined;
  let layout: Uint8Array = new Uint8Array(0);
  let data: { readonly dataOffset: number; readonly declared: number | undefined } | undefined;
  let offset = startByte + 12;
  for (let count = 0; count < MAX_CHUNKS && !(format && data); count++) {
    const head = await reader.peek(offset, 8);
    if (head.length < 8) break;
    const size = u32be(head, 4);
    const body = offset + 8;
    if (hasAscii(head, 0, 'COMM')) {
      const bytes = await reader.peek(body, Math.min(size, 22));
      const parsed = parseCommon(bytes.subarray(0, size), isCompressed);
      if (!parsed.ok) return parsed;
      format = parsed.value;
    } else if (hasAscii(head, 0, 'CHAN')) {
      const length = Math.min(size, MAX_LAYOUT_BYTES);
      layout = (await reader.peek(body, length)).slice(0, length);
    } else if (hasAscii(head, 0, 'SSND')) {
      const bytes = await reader.peek(body, 8);
      if (bytes.length < 8) break;
      const skipped = 8 + u32be(bytes, 0);
      // Writers to a pipe do not know the size and write 0; the size of an empty chunk is 8.
      data = { dataOffset: body + skipped, declared: size === 0 ? undefined : Math.max(0, size - skipped) };
    }
    offset = body + size + (size & 1);
  }
  if (!format) return DAMAGED;
  if (format.kind === 'pcm') format = withEffects(format, layout);
  if (!data) return fail('no_samples', 'The AIFF file has no samples in it.');
  const { dataOffset, declared } = data;
  const available = Math.max(0, reader.sizeBytes - dataOffset);
  if (declared !== undefined && declared <= available) {
    return ok({ format, dataOffset, dataBytes: declared });
  }
  const warning = declared === undefined || declared >= STREAMED_FROM ? STREAMED_WARNING : TRUNCATED_WARNING;
  return ok({ format, dataOffset, dataBytes: available, warning });
}

/** The format with the low-frequency effects channels of a Core Audio layout. */
function withEffects(format: AiffFormat & { kind: 'pcm' }, layout: Uint8Array): AiffFormat {
  const effects = effectsOfLayout(layout, format.pcm.channels);
  return effects.length > 0 ? { ...format, pcm: { ...format.pcm, effects } } : format;
}

/** Writers that do not know the size write this or a larger value. */
const STREAMED_FROM = 0x7fff0000;
const STREAMED_WARNING =
  'The header of the AIFF file does not say how long the recording is; everything up to the end of the file was used.';
const TRUNCATED_WARNING = 'The AIFF file is shorter than its header says; the available part was used.';

function parseCommon(bytes: Uint8Array, isCompressed: boolean): AudioResult<AiffFormat> {
  if (bytes.length < (isCompressed ? 22 : 18)) return DAMAGED;
  const channels = u16be(bytes, 0);
  const bits = u16be(bytes, 6);
  const sampleRateHz = Math.round(extendedFloat(bytes, 8));
  const fault = shapeFault('AIFF', sampleRateHz, channels);
  if (fault) return fault;
  const type = isCompressed ? ascii(bytes, 18, 22) : 'NONE';
  if (type === 'ima4') {
    return channels <= 2
      ? ok({ kind: 'ima4', sampleRateHz, channels })
      : fail('unsupported', `AIFF files that hold IMA ADPCM with ${channels} channels are not supported.`);
  }
  const sample = sampleOf(type, bits);
  if (sample === undefined) {
    const printable = type.replace(/[^\x20-\x7e]/g, '?').trim();
    return fail('unsupported', `The AIFF file holds a coding ('${printable}') that is not supported.`);
  }
  if (sample.bytesPerSample < 1 || sample.bytesPerSample > (sample.encoding === 'float' ? 8 : 4)) {
    return fail('unsupported', `AIFF files with ${bits} bits a sample are not supported.`);
  }
  return ok({ kind: 'pcm', sampleRateHz, pcm: { ...sample, channels } });
}

/** The sample format of a compression type; samples of odd widths are left-aligned in whole bytes. */
function sampleOf(type: string, bits: number): Omit<PcmLayout, 'channels'> | undefined {
  const bytesPerSample = Math.ceil(bits / 8);
  switch (type) {
    case 'NONE':
    case 'twos':
      return { encoding: 'signed', bytesPerSample, isBigEndian: true };
    case 'sowt':
      return { encoding: 'signed', bytesPerSample };
    case 'in24':
      return { encoding: 'signed', bytesPerSample: 3, isBigEndian: true };
    case 'in32':
      return { encoding: 'signed', bytesPerSample: 4, isBigEndian: true };
    case '42ni':
      return { encoding: 'signed', bytesPerSample: 3 };
    case '23ni':
      return { encoding: 'signed', bytesPerSample: 4 };
    case 'raw ':
      return bits <= 8 ? { encoding: 'unsigned', bytesPerSample: 1 } : undefined;
    case 'fl32':
    case 'FL32':
      return { encoding: 'float', bytesPerSample: 4, isBigEndian: true };
    case 'fl64':
    case 'FL64':
      return { encoding: 'float', bytesPerSample: 8, isBigEndian: true };
    case 'alaw':
    case 'ALAW':
      return { encoding: 'alaw', bytesPerSample: 1 };
    case 'ulaw':
    case 'ULAW':
      return { encoding: 'mulaw', bytesPerSample: 1 };
    default:
      return undefined;
  }
}

/** An 80-bit IEEE extended float. */
function extendedFloat(bytes: Uint8Array, at: number): number {
  const exponent = u16be(bytes, at) & 0x7fff;
  const mantissa = u32be(bytes, at + 2) * 2 ** 32 + u32be(bytes, at + 6);
  return (bytes[at] & 0x80 ? -1 : 1) * mantissa * 2 ** (exponent - 16383 - 63);
}

/** AIFF and AIFF-C: uncompressed, A-law, µ-law, IMA ADPCM. */
export const aiff: Container = {
  format: 'aiff',
  hasMagic: true,

  detect: (head) => hasAscii(head, 0, 'FORM') && (hasAscii(head, 8, 'AIFF') || hasAscii(head, 8, 'AIFC')),

  async open(reader, startByte, decoders) {
    const header = await readAiffHeader(reader, startByte);
    if (!header.ok) return header;
    const { format, dataOffset, dataBytes, warning } = header.value;
    const { sampleRateHz } = format;
    const common = {
      format: 'aiff',
      displayName: 'The AIFF file',
      sampleRateHz,
      async warnings() {
        const end = dataOffset + dataBytes + (dataBytes & 1);
        const isJoined = hasAscii(await reader.peek(end, 4), 0, 'FORM');
        return [
          ...(warning === undefined ? [] : [warning]),
          ...(isJoined ? [trailingFileWarning('The AIFF file')] : []),
        ];
      },
    } as const;
    if (format.kind === 'pcm') {
      const blocks = pcmBlocks(format.pcm, dataOffset, dataBytes);
      return ok({
        ...common,
        codec: 'pcm',
        channels: format.pcm.channels,
        openDecoder: () => pcmDecoder(format.pcm, sampleRateHz, decoders),
        walk: (_, entry) => blockPackets(blocks, entry),
      });
    }
    const { channels } = format;
    const blocks = ima4Blocks(channels, dataOffset, dataBytes);
    return ok({
      ...common,
      codec: 'adpcm-ima-qt',
      channels,
      openDecoder: () => decoders.open({ codec: 'adpcm-ima-qt', sampleRateHz, channels }),
      walk: (_, entry) => blockPackets(blocks, entry),
    });
  },
};
