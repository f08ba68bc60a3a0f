import { crc32MsbFirst } from '../../src/audio/crc.ts';

/** Bytes of a packet of a transport stream. */
export const PACKET = 188;

/** Positions of the packets of a stream. */
export function packetsOf(file: Uint8Array, pid: number): number[] {
  const found: number[] = [];
  for (let at = 0; at < file.length; at += PACKET) {
    if ((((file[at + 1] & 0x1f) << 8) | file[at + 2]) === pid) found.push(at);
  }
  return found;
}

/** Shifts all times by `seconds`; they wrap at 33 bits. */
export function moved(file: Uint8Array, pid: number, seconds: number): Uint8Array {
  const out = file.slice();
  for (const at of packetsOf(file, pid)) {
    if (!(file[at + 1] & 0x40)) continue;
    const start = at + 4 + (file[at + 3] & 0x20 ? 1 + file[at + 4] : 0) + 9;
    const old =
      ((file[start] >> 1) & 7) * 2 ** 30 +
      ((file[start + 1] << 22) | ((file[start + 2] >> 1) << 15) | (file[start + 3] << 7) | (file[start + 4] >> 1));
    const time = (old + seconds * 90_000) % 2 ** 33;
    const low = time % 2 ** 30;
    out[start] = 0x21 | (Math.floor(time / 2 ** 30) << 1);
    out.set([low >> 22, ((low >> 14) & 0xfe) | 1, low >> 7, (low << 1) | 1], start + 1);
  }
  return out;
}

/** Replaces the PID in all packets of a stream. */
export function renamed(file: Uint8Array, pid: number, to: number): Uint8Array {
  const out = file.slice();
  for (const at of packetsOf(file, pid)) out.set([(file[at + 1] & 0xe0) | (to >> 8), to & 255], at + 1);
  return out;
}

const TABLE_PID = 0x1000;

/** Replaces the table of streams of the only program, which has the usual PID. */
export function withStreams(file: Uint8Array, streams: readonly (readonly [type: number, pid: number])[]): Uint8Array {
  const out = file.slice();
  const fields = streams.flatMap(([type, pid]) => [type, 0xe0 | (pid >> 8), pid & 255, 0xf0, 0]);
  const [, clockPid] = streams[0];
  const head = [2, 0xb0, 13 + fields.length, 0, 1, 0xc1, 0, 0, 0xe0 | (clockPid >> 8), clockPid & 255, 0xf0, 0];
  const section = Uint8Array.of(...head, ...fields, 0, 0, 0, 0);
  const sum = new DataView(section.buffer);
  sum.setInt32(section.length - 4, crc32MsbFirst(section.subarray(0, -4), -1));
  for (const at of packetsOf(file, TABLE_PID)) {
    out.fill(0xff, at + 4, at + PACKET);
    out[at + 3] = 0x10 | (out[at + 3] & 15);
    out[at + 4] = 0;
    out.set(section, at + 5);
  }
  return out;
}
