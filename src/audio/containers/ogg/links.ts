import type { PacketIndex, TrackCodec } from '../../packets/packet.ts';

/** One of the recordings that stand behind one another in a file. Plain JSON. */
export interface OggLink extends Omit<PacketIndex, 'track'> {
  readonly serial: number;
  /** Absent where `trackOf` tells it: all songs of a radio station have the same headers, of some 10 kB in Vorbis. */
  readonly track?: TrackCodec;
  /** Number of the link in front that has the same track. */
  readonly trackOf?: number;
}

/** A link with its own track. */
export type WholeLink = PacketIndex & { readonly serial: number };

/** Links in one file: a day of internet radio with one for each song has some 400. */
export const MAX_LINKS = 1024;
/** Bytes of JSON that all links may take together. They are part of every plan of a job, and a thousand could have a thousand headers and damages. */
const MAX_LINK_BYTES = 4 << 20;

/** Collects links so that the index stays small. */
export class LinkList {
  readonly links: OggLink[] = [];
  totalSamples = 0;
  /** Silence that their times ask for. */
  gapSamples = 0;
  #bytes = 0;
  /** The first link with each track. */
  readonly #tracks = new Map<string, number>();

  /** Whether the link found room. */
  add({ track, ...link }: WholeLink): boolean {
    const key = JSON.stringify(track);
    const trackOf = this.#tracks.get(key);
    const stored: OggLink = trackOf === undefined ? { ...link, track } : { ...link, trackOf };
    this.#bytes += JSON.stringify(stored).length;
    if (this.#bytes > MAX_LINK_BYTES) return false;
    if (trackOf === undefined) this.#tracks.set(key, this.links.length);
    this.links.push(stored);
    this.totalSamples += link.totalSamples;
    this.gapSamples += link.gaps.reduce((sum, value, i) => sum + (i % 2 === 1 ? Math.max(0, value) : 0), 0);
    return true;
  }
}

/** The link with its track. @throws RangeError where there is none: the index is not from here */
export function wholeLink(links: readonly OggLink[], link: OggLink): WholeLink {
  const { trackOf, ...rest } = link;
  const track = link.track ?? links[trackOf ?? -1]?.track;
  if (!track) throw new RangeError('a link without a track');
  return { ...rest, track };
}
