import { type AudioResult, type CodecName, type DecoderPort, fail, ok } from '../audio-ports.ts';
import type { BlockReader } from '../block-reader.ts';
import { ascii, hasAscii, u16le, u32le } from '../bytes.ts';
import { MAX_GAP_SECONDS, TrackStartTime } from '../clock.ts';
import {
  aacConfig,
  aacTrack,
  alacTrack,
  OPUS_RATE_HZ,
  parseOpusHead,
  parseVorbisIdentification,
  parseVorbisModes,
  splitXiphHeaders,
  vorbisPrivateData,
} from '../codec-config.ts';
import {
  type Container,
  endlessWalkWarning,
  type Part,
  type PartStart,
  type PlayedSpan,
  type TrackCodec,
  trailingFileWarning,
} from '../container.ts';
import { effectsOfMask, type PcmLayout } from '../pcm.ts';
import { oneSpan } from '../playback.ts';
import { firstReadable, openTrack } from '../track.ts';
import { parseStreamInfo, STREAM_INFO_BYTES } from './flac.ts';
import {
  type BlocksEnd,
  type BlockWalk,
  elementsIn,
  elementsOf,
  floatOf,
  ID,
  readBody,
  uintOf,
  walkBlocks,
} from './matroska-blocks.ts';

/** One audio track, from the header. */
interface MatroskaTrack {
  readonly number: number;
  readonly isEnabled: boolean;
  readonly isDefault: boolean;
  readonly codecId: string;
  readonly codecPrivate: Uint8Array;
  readonly codecDelayNs: number;
  readonly sampleRateHz: number;
  readonly channels: number;
  readonly bitDepth: number;
  readonly encoding: ContentEncoding;
}

/** Encoding of the packets by the writer. */
type ContentEncoding =
  | { readonly kind: 'none' }
  /** The same first bytes were removed from each packet. */
  | { readonly kind: 'stripped'; readonly prefix: Uint8Array }
  | { readonly kind: 'compressed' }
  | { readonly kind: 'encrypted' };

/** Tracks that are parsed; no recording has more, and each takes more memory than its bytes in the file. */
const MAX_TRACKS = 100;

const VIDEO_TYPE = 1;
const AUDIO_TYPE = 2;
const HEADER_STRIPPING = 3;

interface Tracks {
  readonly audio: readonly MatroskaTrack[];
  /** Numbers of the audio and video tracks. */
  readonly played: ReadonlySet<number>;
  readonly trackCount: number;
}

/** @param body of `Tracks` */
export function parseTracks(body: Uint8Array): Tracks {
  const audio: MatroskaTrack[] = [];
  const played = new Set<number>();
  let trackCount = 0;
  for (const entry of elementsIn(body)) {
    if (entry.id !== ID.TRACK_ENTRY) continue;
    if (++trackCount > MAX_TRACKS) continue;
    const fields = fieldsOf(entry.body);
    const number = (field: number, fallback: number) => (fields.has(field) ? uintOf(fields.get(field)!) : fallback);
    const type = number(ID.TRACK_TYPE, 0);
    if (type === AUDIO_TYPE || type === VIDEO_TYPE) played.add(number(ID.TRACK_NUMBER, 0));
    if (type !== AUDIO_TYPE) continue;
    const audioFields = fieldsOf(fields.get(ID.AUDIO) ?? new Uint8Array(0));
    const rate = audioFields.get(ID.SAMPLING_FREQUENCY);
    const codecId = fields.get(ID.CODEC_ID) ?? new Uint8Array(0);
    audio.push({
      number: number(ID.TRACK_NUMBER, 0),
      isEnabled: number(ID.FLAG_ENABLED, 1) !== 0,
      isDefault: number(ID.FLAG_DEFAULT, 1) !== 0,
      codecId: ascii(codecId, 0, 64).replace(/\0.*$/s, ''),
      codecPrivate: fields.get(ID.CODEC_PRIVATE) ?? new Uint8Array(0),
      codecDelayNs: number(ID.CODEC_DELAY, 0),
      sampleRateHz: Math.round(rate ? floatOf(rate) : 8000),
      channels: audioFields.has(ID.CHANNELS) ? uintOf(audioFields.get(ID.CHANNELS)!) : 1,
      bitDepth: audioFields.has(ID.BIT_DEPTH) ? uintOf(audioFields.get(ID.BIT_DEPTH)!) : 0,
      encoding: encodingOf(fields.get(ID.CONTENT_ENCODINGS)),
    });
  }
  return { audio, played, trackCount };
}

/** Body of the first element of each id. */
function fieldsOf(body: Uint8Array): ReadonlyMap<number, Uint8Array> {
  const fields = new Map<number, Uint8Array>();
  for (const element of elementsIn(body)) if (!fields.has(element.id)) fields.set(element.id, element.body);
  return fields;
}

function encodingOf(encodings: Uint8Array | undefined): ContentEncoding {
  const encoding = encodings && fieldsOf(encodings).get(ID.CONTENT_ENCODING);
  if (!encoding) return { kind: 'none' };
  const fields = fieldsOf(encoding);
  if (fields.has(ID.CONTENT_ENCRYPTION)) return { kind: 'encrypted' };
  const compression = fields.get(ID.CONTENT_COMPRESSION);
  if (!compression) return { kind: 'none' };
  const settings = fieldsOf(compression);
  const algorithm = settings.get(ID.CONTENT_COMP_ALGO);
  if (!algorithm || uintOf(algorithm) !== HEADER_STRIPPING) return { kind: 'compressed' };
  return { kind: 'stripped', prefix: settings.get(ID.CONTENT_COMP_SETTINGS) ?? new Uint8Array(0) };
}

const PLAIN: Readonly<Record<string, CodecName>> = {
  'A_MPEG/L3': 'mp3',
  'A_MPEG/L2': 'mp2',
  A_AC3: 'ac3',
  A_EAC3: 'eac3',
};

/** Names of codings that are not supported. */
const NAMES: readonly (readonly [prefix: string, name: string])[] = [
  ['A_DTS', 'DTS'],
  ['A_TRUEHD', 'Dolby TrueHD'],
  ['A_MLP', 'MLP'],
  ['A_WAVPACK', 'WavPack'],
  ['A_TTA', 'True Audio'],
  ['A_REAL', 'RealAudio'],
  ['A_MPEG/L1', 'MPEG layer I'],
  ['A_AC4', 'AC-4'],
];

/** Codec parameters from the header of a track. */
function codecOfTrack(track: MatroskaTrack): AudioResult<TrackCodec> {
  const { codecId, codecPrivate, channels, sampleRateHz } = track;
  const plain = (codec: CodecName, extraData: Uint8Array = new Uint8Array(0), extra: Partial<TrackCodec> = {}) =>
    ok({ codec, sampleRateHz, channels, extraData: extraData.slice(), ...extra });
  const damaged = (name: string) => fail('corrupt', `The Matroska file has a damaged header of its ${name} track.`);
  if (PLAIN[codecId]) return plain(PLAIN[codecId]);
  if (codecId.startsWith('A_AAC')) {
    const data = codecPrivate.length > 0 ? codecPrivate : aacConfig(sampleRateHz, channels);
    return data ? aacTrack(data, channels, 'The Matroska file') : damaged('AAC');
  }
  if (codecId === 'A_OPUS') {
    const head = parseOpusHead(codecPrivate);
    return head
      ? plain('opus', codecPrivate, { sampleRateHz: OPUS_RATE_HZ, channels: head.channels })
      : damaged('Opus');
  }
  if (codecId === 'A_VORBIS') {
    const headers = splitXiphHeaders(codecPrivate);
    const identification = headers && parseVorbisIdentification(headers[0]);
    if (!headers || !identification) return damaged('Vorbis');
    const data = vorbisPrivateData(headers[0], headers[2]);
    if (!parseVorbisModes(data)) return damaged('Vorbis');
    return plain('vorbis', data, { sampleRateHz: identification.sampleRateHz, channels: identification.channels });
  }
  if (codecId === 'A_FLAC') {
    const start = hasAscii(codecPrivate, 0, 'fLaC') ? 8 : 4;
    const data = codecPrivate.subarray(start, start + STREAM_INFO_BYTES);
    if (data.length < STREAM_INFO_BYTES) return damaged('FLAC');
    const info = parseStreamInfo(data);
    return plain('flac', data, { sampleRateHz: info.sampleRateHz, channels: info.channels });
  }
  if (codecId === 'A_ALAC') {
    const alac = alacTrack(codecPrivate);
    return alac ? ok(alac) : damaged('ALAC');
  }
  if (codecId === 'A_MS/ACM') return codecOfWaveFormat(track);
  const pcm = pcmLayout(track);
  if (pcm) return plain('pcm', undefined, { pcm });
  const name = NAMES.find(([prefix]) => codecId.startsWith(prefix))?.[1];
  const shown = name ?? `a coding called "${codecId.replace(/[^\x20-\x7e]/g, '?')}"`;
  return fail('unsupported', `The Matroska file holds audio in ${shown}, which is not supported.`);
}

function pcmLayout({ codecId, bitDepth, channels }: MatroskaTrack): PcmLayout | undefined {
  const bytesPerSample = bitDepth / 8;
  if (codecId === 'A_PCM/FLOAT/IEEE') {
    return bitDepth === 32 || bitDepth === 64 ? { encoding: 'float', bytesPerSample, channels } : undefined;
  }
  if (codecId !== 'A_PCM/INT/LIT' && codecId !== 'A_PCM/INT/BIG') return undefined;
  if (![8, 16, 24, 32].includes(bitDepth)) return undefined;
  const isBigEndian = codecId === 'A_PCM/INT/BIG';
  return { encoding: bitDepth === 8 ? 'unsigned' : 'signed', bytesPerSample, isBigEndian, channels };
}

/** WAVE_FORMAT_EXTENSIBLE: a channel mask, then the coding. */
const EXTENSIBLE = 0xfffe;
const EXTENSIBLE_BYTES = 40;

/** Audio as in WAV: the private data are a WAVEFORMATEX. */
function codecOfWaveFormat(track: MatroskaTrack): AudioResult<TrackCodec> {
  const format = track.codecPrivate;
  if (format.length < 16) return fail('corrupt', 'The Matroska file has a damaged header of its audio track.');
  const [channels, sampleRateHz, bits] = [u16le(format, 2), u32le(format, 4), u16le(format, 14)];
  const isExtensible = u16le(format, 0) === EXTENSIBLE && format.length >= EXTENSIBLE_BYTES;
  const tag = u16le(format, isExtensible ? 24 : 0);
  const effects = isExtensible ? effectsOfMask(u32le(format, 20), channels) : [];
  const pcm = (encoding: PcmLayout['encoding']): AudioResult<TrackCodec> => {
    const layout = { encoding, bytesPerSample: bits / 8, channels, ...(effects.length > 0 ? { effects } : {}) };
    return ok({ codec: 'pcm', sampleRateHz, channels, extraData: new Uint8Array(0), pcm: layout });
  };
  if (tag === 1 && bits === 8) return pcm('unsigned');
  if (tag === 1 && [16, 24, 32].includes(bits)) return pcm('signed');
  if (tag === 3 && (bits === 32 || bits === 64)) return pcm('float');
  if (tag === 6 && bits === 8) return pcm('alaw');
  if (tag === 7 && bits === 8) return pcm('mulaw');
  if (tag === 0x55) return ok({ codec: 'mp3', sampleRateHz, channels, extraData: new Uint8Array(0) });
  const name = `0x${tag.toString(16).padStart(4, '0')}`;
  return fail('unsupported', `The Matroska file holds audio in the WAV coding ${name}, which is not supported.`);
}

const DISPLAY_NAME = 'The Matroska file';
/** Longest element of a header: private data with pictures. */
const MAX_HEADER_ELEMENT_BYTES = 4 << 20;
const DEFAULT_NS_PER_TICK = 1_000_000;
/** Longest stripped header of packets: writers strip sync words. */
const MAX_PREFIX_BYTES = 64;
/** Blocks that are searched for the track that begins first. */
const FIRST_BLOCKS = 64;

/** Matroska and WebM; of a video its audio. */
export const matroska: Container = {
  format: 'matroska',
  hasMagic: true,

  detect: (head) => head[0] === 0x1a && head[1] === 0x45 && head[2] === 0xdf && head[3] === 0xa3,

  async open(reader, startByte, decoders) {
    const header = await readHeader(reader, startByte);
    if (!header.ok) return header;
    const { audio, trackCount } = header.value;
    const preferred = audio.find(({ isEnabled, isDefault }) => isEnabled && isDefault) ?? audio[0];
    if (!preferred) {
      return trackCount === 0
        ? fail('corrupt', `${DISPLAY_NAME} has no tracks in it.`)
        : fail('no_samples', `${DISPLAY_NAME} has no audio track.`);
    }
    const others = audio.filter((track) => track !== preferred);
    return firstReadable([preferred, ...others], (track) => openAudio(reader, header.value, track, decoders));
  },
};

async function openAudio(
  reader: BlockReader,
  { played, nsPerTick, firstCluster, endByte }: Header,
  track: MatroskaTrack,
  decoders: DecoderPort,
): Promise<AudioResult<Part>> {
  const { encoding } = track;
  if (encoding.kind === 'encrypted')
    return fail('unsupported', `${DISPLAY_NAME} is encrypted (DRM), so it cannot be read.`);
  if (encoding.kind === 'compressed') {
    return fail('unsupported', `${DISPLAY_NAME} has compressed packets in its audio track, which is not supported.`);
  }
  if (encoding.kind === 'stripped' && encoding.prefix.length > MAX_PREFIX_BYTES) {
    return fail('corrupt', `${DISPLAY_NAME} has a damaged header: too many bytes were left out of every packet.`);
  }
  const codec = codecOfTrack(track);
  if (!codec.ok) return codec;
  const prefix = encoding.kind === 'stripped' ? encoding.prefix : new Uint8Array(0);
  const walk: BlockWalk = { trackNumber: track.number, nsPerTick, prefix };
  const start = await firstTime(
    reader,
    { ...walk, trackNumber: undefined, prefix: new Uint8Array(0) },
    firstCluster,
    played,
  );
  const opened = await openTrack(reader, decoders, {
    format: 'matroska',
    displayName: DISPLAY_NAME,
    track: codec.value,
    walk: (faults: BlocksEnd, entry = firstCluster) => walkBlocks(reader, walk, entry, faults),
  });
  if (!opened.ok) return opened;
  const { sampleRateHz: rateHz } = opened.value;
  return ok({
    ...opened.value,
    playedSpans: (first, faults: BlocksEnd) => playedSpansOf(track, codec.value, first, rateHz, start, faults),
    paddingOf: ({ endPadding }) => Math.min(endPadding, rateHz),
    warnings(faults: BlocksEnd) {
      // Recordings of browsers state no size.
      const isCut = endByte === undefined ? faults.isCut === true : endByte > reader.sizeBytes;
      const lostSeconds = ((faults.lostSamples ?? 0) / rateHz).toFixed(1);
      return [
        ...(isCut ? [`${DISPLAY_NAME} is incomplete; the available part was used.`] : []),
        ...(faults.hasAnother ? [trailingFileWarning(DISPLAY_NAME)] : []),
        ...(faults.isEndless ? [endlessWalkWarning(DISPLAY_NAME)] : []),
        ...(faults.lostSamples
          ? [`The beginning of the Matroska file, ${lostSeconds} s of it, is damaged and was taken as silence.`]
          : []),
      ];
    },
  });
}

interface Header {
  readonly audio: readonly MatroskaTrack[];
  /** Numbers of the audio and video tracks. */
  readonly played: ReadonlySet<number>;
  readonly trackCount: number;
  readonly nsPerTick: number;
  readonly firstCluster: number;
  /** Stated end of the recording; undefined if its size is unknown. */
  readonly endByte: number | undefined;
}

async function readHeader(reader: BlockReader, startByte: number): Promise<AudioResult<Header>> {
  const damaged = fail('corrupt', 'The header of the Matroska file is damaged.');
  for await (const top of elementsOf(reader, startByte, reader.sizeBytes)) {
    if (top.id === ID.EBML) {
      const fields = [...elementsIn(await readBody(reader, top, 1024))];
      const docType = fields.find((field) => field.id === ID.DOC_TYPE);
      const name = docType ? ascii(docType.body, 0, 32).replace(/\0.*$/s, '') : 'matroska';
      if (name !== 'matroska' && name !== 'webm') {
        return fail(
          'unsupported',
          `The file is an EBML file of the kind "${name.replace(/[^\x20-\x7e]/g, '?')}", which is not supported.`,
        );
      }
    }
    if (top.id !== ID.SEGMENT) continue;
    const endByte = top.size === undefined ? undefined : top.bodyStart + top.size;
    let tracks: ReturnType<typeof parseTracks> | undefined;
    let nsPerTick = DEFAULT_NS_PER_TICK;
    let firstCluster: number | undefined;
    let tracksEnd: number | undefined;
    for await (const part of elementsOf(reader, top.bodyStart, reader.sizeBytes)) {
      if (part.id === ID.INFO) {
        for (const field of elementsIn(await readBody(reader, part, MAX_HEADER_ELEMENT_BYTES))) {
          if (field.id === ID.TIMESTAMP_SCALE) nsPerTick = uintOf(field.body) || DEFAULT_NS_PER_TICK;
        }
      } else if (part.id === ID.TRACKS) {
        tracks ??= parseTracks(await readBody(reader, part, MAX_HEADER_ELEMENT_BYTES));
        tracksEnd ??= part.size === undefined ? undefined : part.bodyStart + part.size;
      } else if (part.id === ID.CLUSTER) firstCluster ??= part.start;
      if (tracks && firstCluster !== undefined) break;
    }
    if (!tracks) return damaged;
    // Without a cluster the first ones may be damaged: the walk searches for the next one.
    firstCluster ??= tracksEnd;
    if (firstCluster === undefined) return fail('no_samples', `${DISPLAY_NAME} has no samples in it.`);
    return ok({ ...tracks, nsPerTick, firstCluster, endByte });
  }
  return damaged;
}

/** Start of a recording in its clock. */
interface Start {
  readonly seconds: number;
  /** Whether the beginning is damaged. */
  readonly isDamaged: boolean;
}

/**
 * Start of playback: the earliest start of the audio and video tracks, from the first blocks; 0 if the beginning is
 * damaged.
 */
async function firstTime(
  reader: BlockReader,
  walk: BlockWalk,
  firstCluster: number,
  played: ReadonlySet<number>,
): Promise<Start> {
  const end: BlocksEnd = {};
  const starts = new Map<number, TrackStartTime>();
  for await (const run of walkBlocks(reader, walk, firstCluster, end)) {
    for (const { seconds, trackNumber: number } of run.packets.slice(0, FIRST_BLOCKS)) {
      if (number === undefined || !played.has(number)) continue;
      const start = starts.get(number) ?? new TrackStartTime();
      starts.set(number, start);
      start.add(seconds);
    }
    break;
  }
  if (end.isLateStart) return { seconds: 0, isDamaged: true };
  return { seconds: Math.min(...[...starts.values()].map(({ seconds }) => seconds)), isDamaged: false };
}

function playedSpansOf(
  track: MatroskaTrack,
  codec: TrackCodec,
  { firstSeconds = 0 }: PartStart,
  rateHz: number,
  start: Start,
  faults: BlocksEnd,
): readonly PlayedSpan[] {
  // Opus has the delay in its header; some writers count the container's field at the rate of the encoder's input.
  const preSkip = codec.codec === 'opus' ? parseOpusHead(codec.extraData)?.preSkip : undefined;
  const delaySeconds = preSkip === undefined ? track.codecDelayNs / 1e9 : preSkip / OPUS_RATE_HZ;
  const lateSeconds = Math.max(0, firstSeconds - start.seconds);
  const lead = lateSeconds <= MAX_GAP_SECONDS ? Math.round(lateSeconds * rateHz) : 0;
  const delay = delaySeconds <= 1 ? Math.round(delaySeconds * rateHz) : 0;
  if (start.isDamaged) faults.lostSamples = lead;
  return oneSpan(delay, undefined, lead);
}
