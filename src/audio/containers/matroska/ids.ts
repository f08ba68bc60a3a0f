/** Element ids (RFC 9559 §5). */
export const EBML = 0x1a45dfa3;
export const DOC_TYPE = 0x4282;
export const SEGMENT = 0x18538067;
export const INFO = 0x1549a966;
export const TIMESTAMP_SCALE = 0x2ad7b1;
export const TRACKS = 0x1654ae6b;
export const TRACK_ENTRY = 0xae;
export const TRACK_NUMBER = 0xd7;
export const TRACK_TYPE = 0x83;
export const FLAG_ENABLED = 0xb9;
export const FLAG_DEFAULT = 0x88;
export const CODEC_ID = 0x86;
export const CODEC_PRIVATE = 0x63a2;
export const CODEC_DELAY = 0x56aa;
export const AUDIO = 0xe1;
export const SAMPLING_FREQUENCY = 0xb5;
export const CHANNELS = 0x9f;
export const BIT_DEPTH = 0x6264;
export const CONTENT_ENCODINGS = 0x6d80;
export const CONTENT_ENCODING = 0x6240;
export const CONTENT_COMPRESSION = 0x5034;
export const CONTENT_COMP_ALGO = 0x4254;
export const CONTENT_COMP_SETTINGS = 0x4255;
export const CONTENT_ENCRYPTION = 0x5035;
export const CLUSTER = 0x1f43b675;
export const TIMESTAMP = 0xe7;
export const SIMPLE_BLOCK = 0xa3;
export const BLOCK_GROUP = 0xa0;
export const BLOCK = 0xa1;
export const DISCARD_PADDING = 0x75a2;

/** What may stand beside clusters, or beside blocks, and is passed over by its size. */
export const PASSED_OVER: ReadonlySet<number> = new Set([
  0x114d9b74, // SeekHead
  0x1c53bb6b, // Cues
  0x1941a469, // Attachments
  0x1043a770, // Chapters
  0x1254c367, // Tags
  INFO,
  TRACKS,
  0xec, // Void
  0xbf, // CRC-32
  0xa7, // Position
  0xab, // PrevSize
  0x5854, // SilentTracks
  0xaf, // EncryptedBlock
]);
