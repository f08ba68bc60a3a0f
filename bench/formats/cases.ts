/** A coding in a container, with the sample rates and channel counts to measure. */
export interface FormatCase {
  readonly container: string;
  readonly coding: string;
  /** File extension, by which ffmpeg chooses the container. */
  readonly extension: string;
  /** Arguments of ffmpeg, or of the named tool with IN and OUT for the files. */
  readonly encode: readonly string[];
  readonly tool?: 'fdkaac';
  /** A file of `test/fixtures/formats`, used if no common tool encodes this. */
  readonly fixture?: string;
  readonly ratesHz: readonly number[];
  readonly channels: readonly number[];
}

const ALL_RATES = [8000, 11025, 16000, 22050, 44100, 48000, 96000, 192000];
const MPEG_RATES = [8000, 11025, 16000, 22050, 44100, 48000];
const AAC_RATES = [...MPEG_RATES, 96000];
const LAYER2_RATES = [16000, 22050, 44100, 48000];
const SOME_RATES = [8000, 44100, 192000];
const ALL_CHANNELS = [1, 2, 6, 8];
const STEREO = [1, 2];

const by = (
  container: string,
  extension: string,
  coding: string,
  encode: readonly string[],
  ratesHz: readonly number[],
  channels: readonly number[],
): FormatCase => ({ container, extension, coding, encode, ratesHz, channels });

/** Uncompressed and companded samples, the first coding at more rates than the others. */
function plain(container: string, extension: string, codecs: readonly string[]): FormatCase[] {
  const isWav = container === 'WAV';
  return codecs.map((codec, i) =>
    by(
      container,
      extension,
      codec,
      ['-c:a', codec],
      i > 0 ? [8000, 48000] : isWav ? ALL_RATES : SOME_RATES,
      i > 0 ? [2] : isWav ? ALL_CHANNELS : [1, 6],
    ),
  );
}

/**
 * Cases of a coding: all rates with one and two channels, and surround channels at one rate.
 */
const withSurround = (
  container: string,
  extension: string,
  coding: string,
  encode: readonly string[],
  ratesHz: readonly number[],
): FormatCase[] => [
  by(container, extension, coding, encode, ratesHz, STEREO),
  by(container, extension, `${coding}, surround`, encode, [48000], [6, 8]),
];

const AAC = ['-c:a', 'aac'];
const OPUS = ['-c:a', 'libopus'];
const VORBIS = ['-c:a', 'libvorbis'];
/** Video with ten frames a second in addition to the sound. */
const FILM = ['-f', 'lavfi', '-i', 'testsrc=s=64x64:r=10', '-shortest', '-c:v'];

/** Formats to measure. Containers that the service cannot read give no row. */
export const CASES: readonly FormatCase[] = [
  ...plain('WAV', 'wav', [
    'pcm_s16le',
    'pcm_u8',
    'pcm_s24le',
    'pcm_s32le',
    'pcm_f32le',
    'pcm_f64le',
    'pcm_alaw',
    'pcm_mulaw',
  ]),
  by('WAV', 'wav', 'adpcm_ima_wav', ['-c:a', 'adpcm_ima_wav'], ALL_RATES, STEREO),
  by('WAV', 'wav', 'adpcm_ms', ['-c:a', 'adpcm_ms'], ALL_RATES, STEREO),
  by('WAV', 'wav', 'gsm_ms', ['-c:a', 'libgsm_ms'], [8000], [1]),
  by('WAV', 'wav', 'mp3', ['-c:a', 'libmp3lame'], MPEG_RATES, STEREO),
  by('RF64', 'wav', 'pcm_s16le', ['-c:a', 'pcm_s16le', '-rf64', 'always'], SOME_RATES, [1, 8]),
  ...plain('AIFF', 'aiff', ['pcm_s16be', 'pcm_s8', 'pcm_s24be', 'pcm_s32be']),
  ...plain('AIFF-C', 'aifc', ['pcm_s16le', 'pcm_f32be', 'pcm_f64be', 'pcm_alaw', 'pcm_mulaw']),
  by('AIFF-C', 'aifc', 'adpcm_ima_qt', ['-c:a', 'adpcm_ima_qt'], [8000, 22050, 44100], STEREO),
  ...plain('CAF', 'caf', [
    'pcm_s16le',
    'pcm_s8',
    'pcm_s16be',
    'pcm_s24le',
    'pcm_s32le',
    'pcm_f32le',
    'pcm_f64be',
    'pcm_alaw',
    'pcm_mulaw',
  ]),
  ...withSurround('CAF', 'caf', 'alac', ['-c:a', 'alac'], SOME_RATES),
  by('CAF', 'caf', 'adpcm_ima_qt', ['-c:a', 'adpcm_ima_qt'], [8000, 22050, 44100], STEREO),
  by('FLAC', 'flac', 'flac, 16 bits', ['-c:a', 'flac', '-sample_fmt', 's16'], ALL_RATES, ALL_CHANNELS),
  by('FLAC', 'flac', 'flac, 24 bits', ['-c:a', 'flac', '-sample_fmt', 's32'], SOME_RATES, [1, 8]),
  by('MP3', 'mp3', 'mp3, constant', ['-c:a', 'libmp3lame', '-b:a', '64k'], MPEG_RATES, STEREO),
  by('MP3', 'mp3', 'mp3, variable', ['-c:a', 'libmp3lame', '-q:a', '4'], MPEG_RATES, STEREO),
  by('MP2', 'mp2', 'mp2', ['-c:a', 'mp2'], LAYER2_RATES, STEREO),
  ...withSurround('ADTS', 'aac', 'aac', AAC, AAC_RATES),
  by('ADTS', 'aac', 'aac without noise substitution', [...AAC, '-aac_pns', '0'], [16000, 44100], ALL_CHANNELS),
  {
    ...by(
      'ADTS',
      'aac',
      'HE-AAC',
      ['-p', '5', '-b', '48000', '-f', '2', '-o', 'OUT', 'IN'],
      [32000, 44100, 48000],
      STEREO,
    ),
    tool: 'fdkaac',
  },
  {
    ...by(
      'ADTS',
      'aac',
      'HE-AAC v2',
      ['-p', '29', '-b', '32000', '-f', '2', '-o', 'OUT', 'IN'],
      [32000, 44100, 48000],
      [2],
    ),
    tool: 'fdkaac',
  },
  { ...by('AMR', 'amr', 'amr-nb', [], [8000], [1]), fixture: 'amr-nb-8000-mono.amr' },
  { ...by('AMR', 'amr', 'amr-wb', [], [16000], [1]), fixture: 'amr-wb-16000-mono.amr' },
  ...withSurround('M4A', 'm4a', 'aac', AAC, AAC_RATES),
  ...withSurround('M4A', 'm4a', 'alac', ['-c:a', 'alac'], ALL_RATES),
  {
    ...by('M4A', 'm4a', 'HE-AAC', ['-p', '5', '-b', '48000', '-o', 'OUT', 'IN'], [32000, 44100, 48000], STEREO),
    tool: 'fdkaac',
  },
  by(
    'MP4',
    'mp4',
    'aac, fragmented',
    [...AAC, '-movflags', 'frag_keyframe+empty_moov', '-frag_duration', '2000000'],
    [16000, 48000],
    STEREO,
  ),
  by('MP4', 'mp4', 'mp3', ['-c:a', 'libmp3lame'], LAYER2_RATES, STEREO),
  by('MP4', 'mp4', 'flac', ['-c:a', 'flac', '-strict', '-2'], [8000, 44100], [1, 6]),
  by('MP4', 'mp4', 'opus', [...OPUS, '-strict', '-2'], [48000], ALL_CHANNELS),
  by('MP4', 'mp4', 'ac3', ['-c:a', 'ac3'], [44100, 48000], [1, 2, 6]),
  by('MP4', 'mp4', 'eac3', ['-c:a', 'eac3'], [48000], [2, 6]),
  ...plain('MOV', 'mov', ['pcm_s16le', 'pcm_s24be', 'pcm_f32le', 'pcm_alaw', 'pcm_mulaw']),
  by('MOV', 'mov', 'aac', AAC, [16000, 48000], STEREO),
  by('MOV', 'mov', 'alac', ['-c:a', 'alac'], [44100], STEREO),
  by('MP4', 'mp4', 'aac, with pictures', [...FILM, 'mpeg4', ...AAC], [48000], STEREO),
  by('MOV', 'mov', 'aac, with pictures', [...FILM, 'mpeg4', ...AAC], [44100], STEREO),
  by('Matroska', 'mka', 'aac', AAC, AAC_RATES, STEREO),
  by('Matroska', 'mka', 'flac', ['-c:a', 'flac'], [8000, 44100], [1, 6]),
  by('Matroska', 'mka', 'mp3', ['-c:a', 'libmp3lame'], MPEG_RATES, STEREO),
  by('Matroska', 'mka', 'mp2', ['-c:a', 'mp2'], LAYER2_RATES, STEREO),
  by('Matroska', 'mka', 'ac3', ['-c:a', 'ac3'], [48000], [2, 6]),
  by('Matroska', 'mka', 'eac3', ['-c:a', 'eac3'], [48000], [2, 6]),
  by('Matroska', 'mka', 'alac', ['-c:a', 'alac'], [44100], STEREO),
  by('Matroska', 'mkv', 'aac, with pictures', [...FILM, 'mpeg4', ...AAC], [48000], STEREO),
  by('Matroska', 'mka', 'vorbis', VORBIS, [16000, 44100], STEREO),
  by('Matroska', 'mka', 'pcm_s16le', ['-c:a', 'pcm_s16le'], SOME_RATES, [1]),
  by('WebM', 'webm', 'opus', OPUS, [48000], ALL_CHANNELS),
  by('WebM', 'webm', 'vorbis', VORBIS, [44100], STEREO),
  by('WebM', 'webm', 'opus, with pictures', [...FILM, 'libvpx', ...OPUS], [48000], STEREO),
  ...withSurround('OGG', 'ogg', 'vorbis', VORBIS, ALL_RATES),
  by('OGG', 'opus', 'opus', OPUS, [48000], ALL_CHANNELS),
  by('OGG', 'opus', 'opus, 16 kbit/s speech', [...OPUS, '-b:a', '16k', '-application', 'voip'], [48000], STEREO),
  by('OGG', 'oga', 'flac', ['-c:a', 'flac'], [8000, 44100], [1, 6]),
  by('MPEG-TS', 'ts', 'aac', AAC, [16000, 44100, 48000], [1, 2, 6]),
  by('MPEG-TS', 'ts', 'aac in LATM', [...AAC, '-mpegts_flags', 'latm'], [16000, 44100, 48000], [1, 2, 6]),
  by('MPEG-TS', 'ts', 'opus', OPUS, [48000], ALL_CHANNELS),
  by('MPEG-TS', 'ts', 'mp2', ['-c:a', 'mp2'], [44100, 48000], STEREO),
  by('MPEG-TS', 'ts', 'mp3', ['-c:a', 'libmp3lame'], [44100, 48000], STEREO),
  by('MPEG-TS', 'ts', 'aac, with pictures', [...FILM, 'mpeg2video', '-q:v', '31', ...AAC], [48000], STEREO),
  by('MPEG-TS', 'ts', 'ac3', ['-c:a', 'ac3'], [48000], [2, 6]),
];
