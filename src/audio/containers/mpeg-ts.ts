import { type AudioResult, fail, ok } from '../audio-ports.ts';
import type { BlockReader } from '../block-reader.ts';
import { MAX_GAP_SECONDS, TrackStartTime } from '../clock.ts';
import { OPUS_RATE_HZ } from '../codec-config.ts';
import type { Container, Faults, PacketRun, RawPacket, TrackCodec } from '../container.ts';
import { oneSpan } from '../playback.ts';
import { openTrack } from '../track.ts';
import { audioFrame, MAX_HEADER_BYTES, type Unwrapped, type Unwrapper, unwrapperOf } from './mpeg-ts-frames.ts';
import {
  type Framing,
  findLayout,
  PACKET_BYTES,
  ProgramWatch,
  readProgram,
  type TsFaults,
  type TsProgram,
  tsPackets,
} from './mpeg-ts-tables.ts';

/** A packet with the other facts of its frame. */
interface TsFrame extends RawPacket, Pick<Unwrapped, 'track' | 'startTrim' | 'endTrim'> {}

/** Facts of a PES packet about the first frame that begins in it. */
interface Mark {
  readonly entry: number;
  readonly faultsBefore: Faults;
  readonly seconds: number | undefined;
}

/** Cuts the bytes of a stream into frames, which are not aligned with PES packets. */
class FrameBuffer {
  #buffer = new Uint8Array(1 << 17);
  #end = 0;
  #mark: (Mark & { at: number }) | undefined;

  constructor(
    private readonly framing: Framing,
    private readonly unwrapper: Unwrapper,
  ) {}

  get bytes(): number {
    return this.#end;
  }

  /** Marks the next byte as the start of a PES packet. */
  mark(mark: Mark): void {
    this.#mark = { ...mark, at: this.#end };
  }

  append(bytes: Uint8Array): void {
    if (this.#end + bytes.length > this.#buffer.length) {
      // No frame was found in this number of bytes.
      this.clear();
    }
    this.#buffer.set(bytes.subarray(0, this.#buffer.length), this.#end);
    this.#end += bytes.length;
  }

  /** Drops the incomplete frame, because bytes are missing after it. */
  clear(): void {
    this.#end = 0;
    this.#mark = undefined;
  }

  /** Moves all complete frames to `out`. */
  take(out: TsFrame[]): void {
    const data = this.#buffer.subarray(0, this.#end);
    let at = 0;
    while (at + MAX_HEADER_BYTES <= data.length) {
      const frame = this.#frameAt(data, at);
      if (!frame) {
        at++;
        continue;
      }
      if (at + frame.bytes > data.length) break;
      const mark = this.#mark && at >= this.#mark.at ? this.#mark : undefined;
      const unwrapped = this.unwrapper.unwrap(data.slice(at, at + frame.bytes));
      if (unwrapped) {
        const { bytes, isIndependent, ...facts } = unwrapped;
        // A walk that begins at a PES packet finds only a frame at its start.
        const entry =
          mark?.at === at && isIndependent ? { entry: mark.entry, faultsBefore: mark.faultsBefore } : undefined;
        out.push({ offset: 0, length: bytes.length, bytes, seconds: mark?.seconds, ...entry, ...facts });
      }
      if (mark) this.#mark = undefined;
      at += frame.bytes;
    }
    this.#buffer.copyWithin(0, at, this.#end);
    this.#end -= at;
    if (this.#mark) this.#mark.at -= at;
  }

  /** The frame at `at`; undefined if its successor is in the buffer and invalid. */
  #frameAt(data: Uint8Array, at: number) {
    const frame = audioFrame(this.framing, data, at);
    if (!frame) return undefined;
    const next = at + frame.bytes;
    return next + MAX_HEADER_BYTES > data.length || audioFrame(this.framing, data, next) ? frame : undefined;
  }
}

interface TsWalk {
  readonly stride: number;
  readonly pid: number;
  readonly framing: Framing;
  /** Channels of Opus; otherwise 0. */
  readonly channels: number;
  readonly program: TsProgram;
}

interface TsRun extends PacketRun {
  readonly packets: readonly TsFrame[];
}

const PTS_HZ = 90_000;
/** A PTS has 33 bits. */
const PTS_WRAP_SECONDS = 2 ** 33 / PTS_HZ;
/** A lower time is an overflow of the PTS if the step is at most this; otherwise the clock has restarted. */
const MAX_WRAP_STEP_SECONDS = 10;
/** Buffered bytes at which frames are cut. */
const CUT_BYTES = 1 << 15;

/** Header of a PES packet (ISO/IEC 13818-1 §2.4.3.6). */
interface PesHeader {
  readonly bytes: number;
  readonly seconds: number | undefined;
}

/** The header at the start of a payload; undefined if there is none. */
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
 * The frames of one stream from the packet at `from`, which should begin a PES packet. Ends if the first of them have
 * an unsupported coding, which `unwrapper` then names.
 *
 * @param faults also has the state in which an earlier walk left off
 */
async function* walkStream(
  reader: BlockReader,
  walk: TsWalk,
  from: number,
  faults: TsFaults,
  unwrapper = unwrapperOf(walk.framing, walk.channels),
): AsyncGenerator<TsRun> {
  const buffer = new FrameBuffer(walk.framing, unwrapper);
  const watch = new ProgramWatch(walk.program, walk, faults);
  let pid: number | undefined;
  let hasFrames = false;
  let counter: number | undefined;
  const previous = new Uint8Array(PACKET_BYTES);
  let previousBytes = 0;
  for await (const batch of tsPackets(reader, walk.stride, from, faults)) {
    const packets: TsFrame[] = [];
    for (const packet of batch) {
      const currentPid = watch.pidAfter(packet);
      if (currentPid !== pid) {
        buffer.take(packets);
        buffer.clear();
        counter = undefined;
        pid = currentPid;
      }
      if (packet.pid !== pid || packet.isScrambled) continue;
      // A packet may be repeated. A different one with the same counter follows lost packets, or begins an appended
      // file.
      if (packet.counter === counter && isSame(packet.payload, previous.subarray(0, previousBytes))) continue;
      previous.set(packet.payload);
      previousBytes = packet.payload.length;
      if (counter !== undefined && packet.counter !== ((counter + 1) & 15)) {
        buffer.take(packets);
        buffer.clear();
      }
      counter = packet.counter;
      let { payload } = packet;
      if (packet.isStart) {
        const header = parsePesHeader(payload);
        if (!header) continue;
        buffer.take(packets);
        const { pid: audioPid, wraps: wrapsBefore, lastSeconds: secondsBefore } = faults;
        const faultsBefore = { pid: audioPid, wraps: wrapsBefore, lastSeconds: secondsBefore };
        let seconds = header.seconds;
        if (seconds !== undefined) {
          const { wraps = 0, lastSeconds = 0 } = faults;
          const wrapped = seconds + (wraps + 1) * PTS_WRAP_SECONDS;
          faults.wraps = wraps + (Math.abs(wrapped - lastSeconds) <= MAX_WRAP_STEP_SECONDS ? 1 : 0);
          seconds += faults.wraps * PTS_WRAP_SECONDS;
          faults.lastSeconds = seconds;
        }
        buffer.mark({ entry: packet.position, seconds, faultsBefore });
        payload = payload.subarray(Math.min(header.bytes, payload.length));
      }
      buffer.append(payload);
      if (buffer.bytes >= CUT_BYTES) buffer.take(packets);
    }
    hasFrames ||= packets.length > 0;
    if (!hasFrames && unwrapper.unsupported !== undefined) return;
    if (packets.length > 0) yield runOf(packets);
  }
  const last: TsFrame[] = [];
  buffer.take(last);
  if (last.length > 0) yield runOf(last);
}

const isSame = (one: Uint8Array, other: Uint8Array): boolean =>
  one.length === other.length && one.every((byte, i) => byte === other[i]);

const runOf = (packets: readonly TsFrame[]): TsRun => ({
  packets,
  paddingSeconds: (packets.at(-1)?.endTrim ?? 0) / OPUS_RATE_HZ,
});

/** Start of playback: the earliest start of the streams, from the first bytes. Later times may be of another clock. */
async function firstTime(
  reader: BlockReader,
  stride: number,
  from: number,
  pids: ReadonlySet<number>,
): Promise<{ seconds: number; scrambled: ReadonlySet<number> }> {
  const scrambled = new Set<number>();
  const starts = new Map<number, TrackStartTime>();
  for await (const batch of tsPackets(reader, stride, from)) {
    for (const packet of batch) {
      if (!pids.has(packet.pid)) continue;
      if (packet.isScrambled) scrambled.add(packet.pid);
      else if (packet.isStart) {
        const start = starts.get(packet.pid) ?? new TrackStartTime();
        starts.set(packet.pid, start);
        start.add(parsePesHeader(packet.payload)?.seconds);
      }
    }
    if ((batch.at(-1)?.position ?? 0) > from + FIRST_BYTES) break;
  }
  return { seconds: Math.min(...[...starts.values()].map(({ seconds }) => seconds)), scrambled };
}

/** Bytes that are searched for the start of every stream. */
const FIRST_BYTES = 1 << 20;

const DISPLAY_NAME = 'The MPEG transport stream';
const HEAD_BYTES = 1 << 14;

/** MPEG transport streams with AAC (ADTS or LATM), MPEG audio, AC-3, E-AC-3 or Opus; of a video its audio. */
export const mpegTs: Container = {
  format: 'mpeg-ts',
  hasMagic: true,

  detect: (head) => findLayout(head) !== undefined,

  async open(reader, startByte, decoders) {
    const layout = findLayout(await reader.peek(startByte, HEAD_BYTES));
    if (!layout) return fail('corrupt', `${DISPLAY_NAME} is damaged at its beginning.`);
    const { stride } = layout;
    const firstByte = startByte + layout.firstByte;
    const program = await readProgram(reader, stride, firstByte);
    if (!program) return fail('corrupt', `${DISPLAY_NAME} has no table of its streams.`);
    const { streams } = program;
    const stream = streams.find(({ framing }) => framing);
    if (!stream?.framing) {
      const unsupported = streams.find((other) => other.unsupported)?.unsupported;
      return unsupported
        ? fail('unsupported', `${DISPLAY_NAME} holds audio in ${unsupported}, which is not supported.`)
        : fail('no_samples', `${DISPLAY_NAME} has no audio track.`);
    }
    const played = streams.filter(({ framing, unsupported, isVideo }) => framing || unsupported || isVideo);
    const { seconds, scrambled } = await firstTime(reader, stride, firstByte, new Set(played.map(({ pid }) => pid)));
    if (scrambled.has(stream.pid)) return fail('unsupported', `${DISPLAY_NAME} is encrypted, so it cannot be read.`);
    const { pid, framing, channels = 0 } = stream;
    const walk: TsWalk = { stride, pid, framing, channels, program };
    const start = await readStart(reader, walk, firstByte);
    if (!start.ok) return start;
    const { track, startTrim } = start.value;
    const opened = await openTrack(reader, decoders, {
      format: 'mpeg-ts',
      displayName: DISPLAY_NAME,
      track,
      walk: (faults: TsFaults, entry = firstByte) => walkStream(reader, walk, entry, faults),
    });
    if (!opened.ok) return opened;
    return ok({
      ...opened.value,
      playedSpans({ firstSeconds = 0 }) {
        const late = firstSeconds - seconds;
        const lead = late > 0 && late <= MAX_GAP_SECONDS ? Math.round(late * opened.value.sampleRateHz) : 0;
        return oneSpan(startTrim, undefined, lead);
      },
      paddingOf: ({ endPadding }) => endPadding,
      warnings: (faults: TsFaults) => [
        ...(faults.isCut ? [`${DISPLAY_NAME} is incomplete; the available part was used.`] : []),
        ...(faults.hasOther
          ? ['Parts of the audio of the MPEG transport stream have another coding and were left out.']
          : []),
      ],
    });
  },
};

/** Coding of the audio, and the number of samples that are cut at its beginning. */
async function readStart(
  reader: BlockReader,
  walk: TsWalk,
  firstByte: number,
): Promise<AudioResult<{ readonly track: TrackCodec; readonly startTrim: number }>> {
  const unwrapper = unwrapperOf(walk.framing, walk.channels);
  let track: TrackCodec | undefined;
  let startTrim = 0;
  search: for await (const { packets } of walkStream(reader, walk, firstByte, {}, unwrapper)) {
    for (const packet of packets) {
      track ??= packet.track;
      if (!packet.startTrim) break search;
      startTrim += packet.startTrim;
    }
  }
  if (track) return ok({ track, startTrim });
  return unwrapper.unsupported === undefined
    ? fail('no_samples', `${DISPLAY_NAME} has no samples in it.`)
    : fail('unsupported', `${DISPLAY_NAME} holds audio in ${unwrapper.unsupported}, which is not supported.`);
}
