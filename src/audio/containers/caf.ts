import { type AudioResult, type DecoderPort, fail, ok, SeekNeeded } from '../audio-ports.ts';
import type { BlockReader } from '../block-reader.ts';
import { ascii, f64be, hasAscii, i64be, u32be } from '../bytes.ts';
import { aacTrack, alacTrack, decoderConfig, OPUS_RATE_HZ, opusHeadOf, XHE_AAC } from '../codec-config.ts';
import {
  type Container,
  MAX_PACKET_BYTES,
  type PacketWalk,
  type Part,
  type PlayedSpan,
  type RawPacket,
  shapeFault,
  type TrackCodec,
  trailingFileWarning,
} from '../container.ts';
import { blockPackets, ima4Blocks, pcmBlocks } from '../frame-walker.ts';
import { type EffectsChannels, effectsOfLayout, MAX_LAYOUT_BYTES, type PcmLayout, pcmDecoder } from '../pcm.ts';
import { oneSpan } from '../playback.ts';
import { openTrack } from '../track.ts';

/** The description chunk (Apple Core Audio Format 1.0, 'desc'). */
interface CafDescription {
  readonly sampleRateHz: number;
  readonly formatId: string;
  readonly formatFlags: number;
  /** 0 if packets differ in length: the packet table has their lengths. */
  readonly bytesPerPacket: number;
  readonly framesPerPacket: number;
  readonly channels: number;
  readonly bitsPerChannel: number;
}

/** The packet table chunk ('pakt'). */
interface CafPacketTable {
  readonly packets: number;
  readonly validFrames: number;
  readonly primingFrames: number;
  /** Start and end of the packet lengths in the file. */
  readonly offset: number;
  readonly endByte: number;
}

interface CafHeader {
  readonly description: CafDescription;
  /** Codec private data ('kuki'); may be empty. */
  readonly cookie: Uint8Array;
  readonly packetTable?: CafPacketTable;
  readonly effects: EffectsChannels;
  readonly dataOffset: number;
  readonly dataBytes: number;
  readonly warning?: string;
}

/** Chunks walked; real files have fewer than ten. */
const MAX_CHUNKS = 1000;
/** Cookies of ALAC and AAC have 24 to 100 bytes. */
const MAX_COOKIE_BYTES = 4096;
const DESCRIPTION_BYTES = 32;
const TABLE_HEADER_BYTES = 24;

const DAMAGED = fail('corrupt', 'The header of the Core Audio file is damaged.');

/** Walks the chunks of a Core Audio file. */
async function readCafHeader(reader: BlockReader, startByte: number): Promise<AudioResult<CafHeader>> {
  let description: CafDescription | undefined;
  let cookie: Uint8Array = new Uint8Array(0);
  let layout: Uint8Array = new Uint8Array(0);
  let packetTable: CafPacketTable | undefined;
  let data: { readonly dataOffset: number; readonly dataBytes: number; readonly warning?: string } | undefined;
  let offset = startByte + 8;
  for (let count = 0; count < MAX_CHUNKS; count++) {
    const head = await reader.peek(offset, 12);
    if (head.length < 12) break;
    const type = ascii(head, 0, 4);
    const size = i64be(head, 4);
    const body = offset + 12;
    if (data && type === 'caff') break;
    // Only the data chunk of an unfinished file may have an unknown length; it is the last chunk. Bytes after the audio
    // that are no chunk are ignored.
    if (size < 0 && (data || type !== 'data')) {
      if (data) break;
      return DAMAGED;
    }
    if (type === 'desc') {
      const bytes = await reader.peek(body, DESCRIPTION_BYTES);
      if (bytes.length < DESCRIPTION_BYTES) return DAMAGED;
      description = parseDescription(bytes);
    } else if (type === 'kuki') {
      const length = Math.min(size, MAX_COOKIE_BYTES);
      cookie = (await reader.peek(body, length)).slice(0, length);
    } else if (type === 'chan') {
      const length = Math.min(size, MAX_LAYOUT_BYTES);
      layout = (await reader.peek(body, length)).slice(0, length);
    } else if (type === 'pakt') {
      const bytes = await reader.peek(body, TABLE_HEADER_BYTES);
      if (bytes.length < TABLE_HEADER_BYTES || size < TABLE_HEADER_BYTES) return DAMAGED;
      packetTable = parsePacketTable(bytes, body, Math.min(reader.sizeBytes, body + size));
    } else if (type === 'data' && !data) {
      // Without seeking, a table after the packets would be found only by reading all packets first.
      const needsTable = !packetTable && description?.bytesPerPacket === 0;
      if (size > 0 && needsTable && reader.isOneWay(offset, body + size))
        throw new SeekNeeded('the table is after the packets');
      // The data follow a 4-byte edit count.
      data = { dataOffset: body + 4, ...extent(reader.sizeBytes - body - 4, size < 0 ? undefined : size - 4) };
    }
    // Chunks after the audio are needed only if packets differ in length.
    if (size < 0 || (data && description && description.bytesPerPacket > 0)) break;
    offset = body + size;
  }
  if (!description) return DAMAGED;
  if (!data || data.dataBytes <= 0) return fail('no_samples', 'The Core Audio file has no samples in it.');
  return ok({ description, cookie, packetTable, effects: effectsOfLayout(layout, description.channels), ...data });
}

function parseDescription(bytes: Uint8Array): CafDescription {
  return {
    sampleRateHz: Math.round(f64be(bytes, 0)),
    formatId: ascii(bytes, 8, 12),
    formatFlags: u32be(bytes, 12),
    bytesPerPacket: u32be(bytes, 16),
    framesPerPacket: u32be(bytes, 20),
    channels: u32be(bytes, 24),
    bitsPerChannel: u32be(bytes, 28),
  };
}

const parsePacketTable = (bytes: Uint8Array, body: number, endByte: number): CafPacketTable => ({
  packets: i64be(bytes, 0),
  validFrames: i64be(bytes, 8),
  primingFrames: u32be(bytes, 16) | 0,
  offset: body + TABLE_HEADER_BYTES,
  endByte,
});

function extent(available: number, declared: number | undefined): { dataBytes: number; warning?: string } {
  if (declared !== undefined && declared <= available) return { dataBytes: declared };
  const warning =
    declared === undefined
      ? 'The header of the Core Audio file does not say how long the recording is; ' +
        'everything up to the end of the file was used.'
      : TRUNCATED_WARNING;
  return { dataBytes: Math.max(0, available), warning };
}

const TRUNCATED_WARNING = 'The Core Audio file is shorter than its header says; the available part was used.';

const isCaf = (head: Uint8Array): boolean => hasAscii(head, 0, 'caff');

/** Positions of the coded data and of the packet lengths. */
interface PacketLayout {
  readonly table: Pick<CafPacketTable, 'packets' | 'offset' | 'endByte'>;
  readonly dataOffset: number;
  readonly dataEndByte: number;
}

/** Bytes of the table in one read. */
const TABLE_BYTES = 2048;
/** A length is coded in groups of seven bits, the highest first; no packet needs more than five. */
const MAX_LENGTH_BYTES = 5;

/** The lengths in the table, in order, up to the first invalid one. */
async function* readLengths(reader: BlockReader, from: number, endByte: number): AsyncGenerator<number[]> {
  for (let position = from; position < endByte; ) {
    const wanted = Math.min(TABLE_BYTES, endByte - position);
    const view = (await reader.peekTable(position, wanted)).subarray(0, wanted);
    const isEnd = position + view.length >= endByte;
    const lengths: number[] = [];
    let at = 0;
    while (at < view.length && (isEnd || at + MAX_LENGTH_BYTES <= view.length)) {
      const first = at;
      let bytes = 0;
      while (at < view.length && at - first < MAX_LENGTH_BYTES && view[at] & 0x80)
        bytes = bytes * 128 + (view[at++] & 0x7f);
      if (at === view.length || at - first === MAX_LENGTH_BYTES) break;
      bytes = bytes * 128 + view[at++];
      if (bytes > MAX_PACKET_BYTES) break;
      lengths.push(bytes);
    }
    if (lengths.length === 0) return;
    yield lengths;
    position += at;
  }
}

/** The packets from the one at byte `entry`. */
async function* walkPackets(reader: BlockReader, layout: PacketLayout, entry = layout.dataOffset): PacketWalk {
  let left = layout.table.packets;
  let offset = layout.dataOffset;
  for await (const batch of readLengths(reader, layout.table.offset, layout.table.endByte)) {
    const packets: RawPacket[] = [];
    for (const length of batch) {
      if (left-- <= 0 || offset + length > layout.dataEndByte) {
        if (packets.length > 0) yield { packets };
        return;
      }
      if (offset >= entry) packets.push({ offset, length, entry: offset });
      offset += length;
    }
    if (packets.length > 0) yield { packets };
  }
}

const DISPLAY_NAME = 'The Core Audio file';

type CafCodec = 'alac' | 'aac' | 'opus';

/** Parses the header of each coding. */
const TRACK_OF = { alac: alacOf, aac: aacOf, opus: opusOf };

/** Opens a file with ALAC, AAC or Opus in packets whose lengths are in a table. */
async function openCoded(
  reader: BlockReader,
  header: CafHeader,
  codec: CafCodec,
  decoders: DecoderPort,
): Promise<AudioResult<Part>> {
  const { packetTable: table, dataOffset, dataBytes, warning } = header;
  if (!table) return fail('corrupt', `${DISPLAY_NAME} has no table of its packets.`);
  const track = TRACK_OF[codec](header);
  if (!track.ok) return track;
  const layout = { table, dataOffset, dataEndByte: dataOffset + dataBytes };
  const opened = await openTrack(reader, decoders, {
    format: 'caf',
    displayName: DISPLAY_NAME,
    track: track.value,
    walk: (_, entry) => walkPackets(reader, layout, entry),
  });
  if (!opened.ok) return opened;
  const scale = opened.value.sampleRateHz / header.description.sampleRateHz;
  return ok({
    ...opened.value,
    playedSpans: () => playedSpansOf(table, scale),
    warnings: (_, { packets }) => [
      ...(packets < table.packets ? [`${DISPLAY_NAME} is incomplete; the available part was used.`] : []),
      ...(warning === undefined || warning === TRUNCATED_WARNING ? [] : [warning]),
    ],
  });
}

/**
 * Valid and priming frames are counted at the rate of the description. The decoder's rate may be higher: twice as high
 * for AAC, 48 kHz for Opus.
 */
function playedSpansOf(table: CafPacketTable, scale: number): readonly PlayedSpan[] {
  const from = Math.max(0, Math.round(table.primingFrames * scale));
  const valid = Math.round(table.validFrames * scale);
  return oneSpan(from, valid > 0 ? from + valid : undefined);
}

/** An ALAC cookie is the bare configuration, or the configuration in QuickTime atoms. */
function alacOf({ cookie, description }: CafHeader): AudioResult<TrackCodec> {
  const at = hasAscii(cookie, 4, 'frma') ? 24 : hasAscii(cookie, 4, 'alac') ? 12 : 0;
  const track = alacTrack(cookie.subarray(at));
  if (!track) return fail('corrupt', `${DISPLAY_NAME} has a damaged header of its ALAC track.`);
  return ok({ ...track, sampleRateHz: description.sampleRateHz });
}

function aacOf({ cookie, description }: CafHeader): AudioResult<TrackCodec> {
  const found = decoderConfig(cookie);
  return aacTrack(found?.privateData ?? new Uint8Array(0), description.channels, DISPLAY_NAME);
}

/** Opus as in voice messages of phones. The cookie that maps more than two channels is undocumented. */
function opusOf({ description: { channels } }: CafHeader): AudioResult<TrackCodec> {
  if (channels > 2) {
    return fail('unsupported', `${DISPLAY_NAME} holds Opus with ${channels} channels, which is not supported.`);
  }
  return ok({ codec: 'opus', sampleRateHz: OPUS_RATE_HZ, channels, extraData: opusHeadOf(channels) });
}

const CODED: Readonly<Record<string, CafCodec>> = {
  alac: 'alac',
  'aac ': 'aac',
  aach: 'aac',
  aacp: 'aac',
  opus: 'opus',
};

/** Core Audio Format: uncompressed, A-law, µ-law, IMA ADPCM, ALAC, AAC, Opus. */
export const caf: Container = {
  format: 'caf',
  hasMagic: true,

  detect: isCaf,

  async open(reader, startByte, decoders) {
    const header = await readCafHeader(reader, startByte);
    if (!header.ok) return header;
    const { description } = header.value;
    const fault = shapeFault('Core Audio', description.sampleRateHz, description.channels);
    if (fault) return fault;
    const codec = CODED[description.formatId];
    return codec ? openCoded(reader, header.value, codec, decoders) : openPlain(reader, header.value, decoders);
  },
};

/** Opens a coding whose packets have a constant length. */
function openPlain(reader: BlockReader, header: CafHeader, decoders: DecoderPort): AudioResult<Part> {
  const { description, dataOffset, dataBytes, packetTable, effects, warning } = header;
  const { sampleRateHz, channels, formatId } = description;
  if (formatId === 'usac') {
    return fail('unsupported', `The Core Audio file holds audio in ${XHE_AAC}, which is not supported.`);
  }
  const layout = formatId === 'ima4' ? undefined : pcmLayout(description);
  if (formatId === 'ima4' ? channels > 2 : !layout) {
    const printable = formatId.replace(/[^\x20-\x7e]/g, '?').trim();
    return fail('unsupported', `The Core Audio file holds a coding ('${printable}') that is not supported.`);
  }
  const common = {
    format: 'caf',
    displayName: 'The Core Audio file',
    sampleRateHz,
    channels,
    async warnings() {
      const isJoined = hasAscii(await reader.peek(dataOffset + dataBytes, 4), 0, 'caff');
      return [
        ...(warning === undefined ? [] : [warning]),
        ...(isJoined ? [trailingFileWarning('The Core Audio file')] : []),
      ];
    },
  } as const;
  if (layout) {
    const pcm = effects.length > 0 ? { ...layout, effects } : layout;
    const blocks = pcmBlocks(pcm, dataOffset, dataBytes);
    return ok({
      ...common,
      codec: 'pcm',
      openDecoder: () => pcmDecoder(pcm, sampleRateHz, decoders),
      walk: (_, entry) => blockPackets(blocks, entry),
    });
  }
  const blocks = ima4Blocks(channels, dataOffset, dataBytes);
  const valid = packetTable?.validFrames ?? 0;
  return ok({
    ...common,
    codec: 'adpcm-ima-qt',
    openDecoder: () => decoders.open({ codec: 'adpcm-ima-qt', sampleRateHz, channels }),
    walk: (_, entry) => blockPackets(blocks, entry),
    playedSpans: () => oneSpan(0, valid > 0 ? valid : undefined),
  });
}

const IS_FLOAT = 1;
const IS_LITTLE_ENDIAN = 2;

function pcmLayout({ formatId, formatFlags, bytesPerPacket, channels }: CafDescription): PcmLayout | undefined {
  const bytesPerSample = bytesPerPacket / channels;
  if (formatId === 'alaw' || formatId === 'ulaw') {
    return bytesPerSample === 1
      ? { encoding: formatId === 'alaw' ? 'alaw' : 'mulaw', bytesPerSample, channels }
      : undefined;
  }
  const encoding = formatFlags & IS_FLOAT ? 'float' : 'signed';
  const sizes = encoding === 'float' ? [4, 8] : [1, 2, 3, 4];
  if (formatId !== 'lpcm' || !sizes.includes(bytesPerSample)) return undefined;
  return { encoding, bytesPerSample, channels, ...(formatFlags & IS_LITTLE_ENDIAN ? {} : { isBigEndian: true }) };
}
