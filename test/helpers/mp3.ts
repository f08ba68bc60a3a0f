/** Bit rates in kbit/s of MPEG-2 layer III, by the header's index. */
const BITRATES_KBPS = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160];
const SAMPLE_RATES_HZ = [22050, 24000, 16000];

/**
 * Makes a long recording: repeats the audio frames of an MPEG-2 layer III file, without its tags and the frame that
 * states its length.
 *
 * @throws if the file has another format
 */
export function loopMp3(file: Uint8Array, times: number): Uint8Array {
  const first = frameLength(file, 0);
  const head = new TextDecoder('latin1').decode(file.subarray(0, first));
  const start = /Xing|Info/.test(head) ? first : 0;
  let end = start;
  while (end + 4 <= file.length && file[end] === 0xff && end + frameLength(file, end) <= file.length) {
    end += frameLength(file, end);
  }
  const frames = file.subarray(start, end);
  const looped = new Uint8Array(frames.length * times);
  for (let index = 0; index < times; index++) looped.set(frames, index * frames.length);
  return looped;
}

/** Length in bytes of the frame whose header is at `at`. */
function frameLength(file: Uint8Array, at: number): number {
  const [sync, version, rates] = [file[at], file[at + 1], file[at + 2]];
  if (sync !== 0xff || (version & 0xfe) !== 0xf2) throw new Error(`no MPEG-2 layer III frame at byte ${at}`);
  const kbps = BITRATES_KBPS[rates >> 4];
  return Math.floor((72_000 * kbps) / SAMPLE_RATES_HZ[(rates >> 2) & 3]) + ((rates >> 1) & 1);
}
