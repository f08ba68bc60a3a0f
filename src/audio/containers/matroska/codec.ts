import { hasAscii, u16le, u32le } from '../../bytes.ts';
import { effectsOfMask } from '../../channel-layout.ts';
import { aacConfig, aacTrack } from '../../packets/aac.ts';
import { alacTrack } from '../../packets/alac.ts';
import { OPUS_RATE_HZ, parseOpusHead } from '../../packets/opus.ts';
import type { TrackCodec } from '../../packets/packet.ts';
import {
  parseVorbisIdentification,
  parseVorbisModes,
  splitXiphHeaders,
  vorbisPrivateData,
} from '../../packets/vorbis.ts';
import type { PcmLayout } from '../../pcm.ts';
import { type AudioResult, fail, ok } from '../../result.ts';
import type { CodecName } from '../../types.ts';
import { parseStreamInfo, STREAM_INFO_BYTES } from '../flac/stream-info.ts';
import type { MatroskaTrack } from './tracks.ts';

const PLAIN: Readonly<Record<string, CodecName>> = {
  'A_MPEG/L3': 'mp3',
  'A_MPEG/L2': 'mp2',
  A_AC3: 'ac3',
  A_EAC3: 'eac3',
};

/** Names for codings that are not decoded. */
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

/** What a decoder needs, from the header of a track. */
export function codecOfTrack(track: MatroskaTrack): AudioResult<TrackCodec> {
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

/** WAVE_FORMAT_EXTENSIBLE: a mask of the channels, and the coding after it. */
const EXTENSIBLE = 0xfffe;
const EXTENSIBLE_BYTES = 40;

/** Sound as in WAV: the private data is a WAVEFORMATEX. */
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
