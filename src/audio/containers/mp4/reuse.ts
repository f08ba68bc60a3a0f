import type { PacketWalk } from '../../packets/packet.ts';

/**
 * How often the bytes of a file may be heard, on average. Writers use none twice; a few boxes could ask for the same
 * ones millions of times.
 */
const MOST_USES = 2;

/** What a walk found of it. */
export type Reuse = {
  /** Whether packets were left out, since those in front of them had more bytes than the file. */
  isEndless?: boolean;
  /** Bytes of the packets in front of the first one of the walk. */
  passedBytes?: number;
};

/** The packets of a walk, up to the one that uses bytes of the file too often: the same one wherever the walk began. */
export async function* withoutReuse(walk: PacketWalk, fileBytes: number, reuse: Reuse): PacketWalk {
  let left = MOST_USES * fileBytes - (reuse.passedBytes ?? 0);
  for await (const run of walk) {
    const end = run.packets.findIndex(({ length }) => {
      left -= length;
      return left < 0;
    });
    reuse.isEndless = end >= 0;
    if (end > 0) yield { packets: run.packets.slice(0, end) };
    if (end >= 0) return;
    yield run;
  }
}
