import type { BlockReader } from '../../block-reader.ts';
import { FirstSeconds } from '../../packets/first-seconds.ts';
import { OPUS_RATE_HZ } from '../../packets/opus.ts';
import type { PacketRun } from '../../packets/packet.ts';
import { FrameBuffer, type TsSound } from './frame-buffer.ts';
import { ProgramWatch, type TsFaults } from './program-watch.ts';
import type { Framing, TsProgram } from './tables.ts';
import { PACKET_BYTES, tsPackets } from './ts-packets.ts';
import { unwrapperOf } from './unwrap.ts';

export interface TsWalk {
  readonly stride: number;
  readonly pid: number;
  readonly framing: Framing;
  /** Of Opus; else 0. */
  readonly channels: number;
  readonly program: TsProgram;
}

interface TsRun extends PacketRun {
  readonly packets: readonly TsSound[];
}

const PTS_HZ = 90_000;
/** PTS count 33 bits. */
const PTS_WRAP_SECONDS = 2 ** 33 / PTS_HZ;
/** A time that falls is the next round of them where it continues so near; else they starts again. */
const MAX_WRAP_STEP_SECONDS = 10;
/** Frames are looked for when so much is at hand, at the latest. */
const ENOUGH_BYTES = 1 << 15;

/** What a PES packet begins with (ISO/IEC 13818-1 §2.4.3.6). */
export interface PesHeader {
  readonly bytes: number;
  readonly seconds: number | undefined;
}

/** The header at the start of a payload; undefined where none is. */
function parsePesHeader(payload: Uint8Array): PesHeader | undefined {
  if (payload.length < 9 || payload[0] !== 0 || payload[1] !== 0 || payload[2] !== 1) return undefined;
  if (payload[6] >> 6 !== 2) return undefined;
  const bytes = 9 + payload[8];
  if (!(payload[7] & 0x80) || payload.length < 14) return { bytes, seconds: undefined };
  const high = ((payload[9] >> 1) & 7) * 2 ** 30;
  const low = (payload[10] << 22) | ((payload[11] >> 1) << 15) | (payload[12] << 7) | (payload[13] >> 1);
  return { bytes, seconds: (high + low) / PTS_HZ };
}

/**
 * The frames of one stream from the packet at `from` on, which should begin a PES packet. Ends at once where the first
 * of them are not understood: `unwrapper` then knows why.
 *
 * @param faults knows where a walk before left off, beside what it met
 */
export async function* walkStream(
  reader: BlockReader,
  walk: TsWalk,
  from: number,
  faults: TsFaults,
  unwrapper = unwrapperOf(walk.framing, walk.channels),
): AsyncGenerator<TsRun> {
  const buffer = new FrameBuffer(walk.framing, unwrapper);
  const watch = new ProgramWatch(walk.program, walk, faults);
  let pid: number | undefined;
  let hasSound = false;
  let counter: number | undefined;
  const before = new Uint8Array(PACKET_BYTES);
  let beforeBytes = 0;
  for await (const batch of tsPackets(reader, walk.stride, from, faults)) {
    const packets: TsSound[] = [];
    for (const packet of batch) {
      const now = watch.pass(packet);
      if (now !== pid) {
        buffer.take(packets);
        buffer.lose();
        counter = undefined;
        pid = now;
      }
      if (packet.pid !== pid || packet.isScrambled) continue;
      // A packet may come twice. Another one with the same counter comes after lost ones, or from another file put
      // after.
      if (packet.counter === counter && isSame(packet.payload, before.subarray(0, beforeBytes))) continue;
      before.set(packet.payload);
      beforeBytes = packet.payload.length;
      if (counter !== undefined && packet.counter !== ((counter + 1) & 15)) {
        buffer.take(packets);
        buffer.lose();
      }
      counter = packet.counter;
      let { payload } = packet;
      if (packet.isStart) {
        const header = parsePesHeader(payload);
        if (!header) continue;
        buffer.take(packets);
        const { pid: soundPid, wraps: wrapsBefore, lastSeconds: secondsBefore } = faults;
        const met = { pid: soundPid, wraps: wrapsBefore, lastSeconds: secondsBefore };
        let seconds = header.seconds;
        if (seconds !== undefined) {
          const { wraps = 0, lastSeconds = 0 } = faults;
          const nextRound = seconds + (wraps + 1) * PTS_WRAP_SECONDS;
          faults.wraps = wraps + (Math.abs(nextRound - lastSeconds) <= MAX_WRAP_STEP_SECONDS ? 1 : 0);
          seconds += faults.wraps * PTS_WRAP_SECONDS;
          faults.lastSeconds = seconds;
        }
        buffer.mark({ entry: packet.position, seconds, met });
        payload = payload.subarray(Math.min(header.bytes, payload.length));
      }
      buffer.append(payload);
      if (buffer.bytes >= ENOUGH_BYTES) buffer.take(packets);
    }
    hasSound ||= packets.length > 0;
    if (!hasSound && unwrapper.foreign !== undefined) return;
    if (packets.length > 0) yield runOf(packets);
  }
  const last: TsSound[] = [];
  buffer.take(last);
  if (last.length > 0) yield runOf(last);
}

const isSame = (one: Uint8Array, other: Uint8Array): boolean =>
  one.length === other.length && one.every((byte, i) => byte === other[i]);

const runOf = (packets: readonly TsSound[]): TsRun => ({
  packets,
  paddingSeconds: (packets.at(-1)?.endTrim ?? 0) / OPUS_RATE_HZ,
});

/**
 * Where players begin: the earliest of the times that the streams begin with. What comes later may be of another clock.
 */
export async function firstTime(
  reader: BlockReader,
  stride: number,
  from: number,
  pids: ReadonlySet<number>,
): Promise<{ seconds: number; scrambled: ReadonlySet<number> }> {
  const scrambled = new Set<number>();
  const starts = new Map<number, FirstSeconds>();
  for await (const batch of tsPackets(reader, stride, from)) {
    for (const packet of batch) {
      if (!pids.has(packet.pid)) continue;
      if (packet.isScrambled) scrambled.add(packet.pid);
      else if (packet.isStart) {
        const start = starts.get(packet.pid) ?? new FirstSeconds();
        starts.set(packet.pid, start);
        start.pass(parsePesHeader(packet.payload)?.seconds);
      }
    }
    if ((batch.at(-1)?.position ?? 0) > from + FIRST_BYTES) break;
  }
  return { seconds: Math.min(...[...starts.values()].map(({ seconds }) => seconds)), scrambled };
}

/** Bytes in which every stream should have begun. */
const FIRST_BYTES = 1 << 20;
