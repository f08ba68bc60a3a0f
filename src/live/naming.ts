import type { Segmenter } from '../diarization/segmenter.ts';
import { keptBlocks } from './blocks.ts';
import type { Ear } from './ear.ts';
import { linksOf } from './links.ts';
import { type Look, look } from './look.ts';
import { continuityOf, type Local, mapLocals, seemsNew, type Voice } from './mapping.ts';
import { LIVE, type LiveTiming, SAMPLE_RATE_HZ } from './parameters.ts';
import type { Speakers } from './speakers.ts';
import type { Told } from './told.ts';

/** What a session knows that tells who somebody is. */
export interface Hearing {
  readonly segmenter: Segmenter;
  readonly ear: Ear;
  readonly speakers: Speakers;
  readonly told: Told;
}

/** Which speaker of the stream each local speaker of a look is: by the voice, by what was told of it, and by a look further back for those who seem new. */
export class Naming {
  /** Looks whose voices were kept. */
  #kept = 0;

  constructor(
    private readonly hearing: Hearing,
    private readonly timing: LiveTiming,
    private readonly frameShiftSamples: number,
    private readonly pause: () => Promise<void>,
  ) {}

  get kept(): number {
    return this.#kept;
  }

  restore(kept: number): void {
    this.#kept = kept;
  }

  /**
   * @param decidedUntil frames before this one were told about
   * @param isLast whether nobody may be waited for any more
   * @returns [local speakers] the label of each, −1 for those that are silent or not known yet
   */
  async name(seen: Look, decidedUntil: number, isLast: boolean): Promise<Int32Array> {
    const locals: Local[] = [];
    for (let local = 0; local < seen.speakers; local++) {
      if (seen.sum(local, 0, seen.endFrame) === 0) continue;
      locals.push({
        local,
        voice: await this.#voiceOf(seen, local),
        continuity: continuityOf(seen, local, decidedUntil, this.hearing.speakers.labels, (f, l) =>
          this.hearing.told.has(f, l),
        ),
        mayWait:
          !isLast &&
          this.#pending(seen, local, decidedUntil).length * this.frameShiftSamples < this.timing.maxPendingSamples,
      });
    }
    const asked = await this.#lookFurtherBack(seen, locals, decidedUntil);
    const chosen = mapLocals(asked, this.hearing.speakers, this.timing.minNewSpeakerSeconds);
    const labels = new Int32Array(seen.speakers).fill(-1);
    const isKept = this.hearing.ear.end >= this.#kept * LIVE.itemEverySeconds * SAMPLE_RATE_HZ;
    locals.forEach(({ local, voice }, row) => {
      const label = chosen[row];
      labels[local] = label;
      if (label < 0 || voice === undefined) return;
      this.hearing.speakers.hear(label, voice);
      if (isKept) this.hearing.speakers.keep(label, voice, this.#kept);
    });
    if (isKept) this.#kept++;
    return labels;
  }

  /**
   * Where the speech begins that a local speaker was at in the end of the decided past without being told; `decidedUntil` where there is none. A pause
   * longer than those within a turn ends it: else its turn would begin in the pause, by as much as was said before it.
   */
  pendingSince(seen: Look, local: number, decidedUntil: number): number {
    const longestPause = Math.round((LIVE.minOffSeconds * SAMPLE_RATE_HZ) / this.frameShiftSamples);
    let since = decidedUntil;
    for (const frame of this.#pending(seen, local, decidedUntil)) {
      if (since - frame > longestPause + 1) break;
      since = frame;
    }
    return since;
  }

  /** Frames at the end of the decided past in which a local speaker talked and nobody was told in its place, the latest first. */
  #pending(seen: Look, local: number, decidedUntil: number): number[] {
    const frames: number[] = [];
    const oldest = decidedUntil - Math.round((2 * LIVE.maxPendingSeconds * SAMPLE_RATE_HZ) / this.frameShiftSamples);
    for (let frame = decidedUntil - 1; frame >= Math.max(0, oldest, seen.firstFrame); frame--) {
      if (!seen.isActive(local, frame)) continue;
      if (this.hearing.told.count(frame) >= seen.count(frame)) break;
      frames.push(frame);
    }
    return frames;
  }

  /** How a local speaker sounds in this look; undefined where it hardly speaks alone. */
  async #voiceOf(seen: Look, local: number): Promise<Voice | undefined> {
    const now = this.hearing.ear.end;
    const kept = keptBlocks(this.hearing.ear, now - this.timing.windowSamples, now, this.frameShiftSamples, (frame) =>
      seen.isAlone(local, frame),
    );
    const embedding = kept && (await this.hearing.ear.embed(kept.blocks));
    return embedding && { embedding, seconds: kept.seconds };
  }

  /** The same, with what a look further back says of those who seem new. */
  async #lookFurtherBack(seen: Look, locals: readonly Local[], decidedUntil: number): Promise<Local[]> {
    const { wideSamples, minNewSpeakerSeconds } = this.timing;
    let wide: Look | undefined;
    const asked: Local[] = [];
    for (const local of locals) {
      if (!seemsNew(local, this.hearing.speakers, minNewSpeakerSeconds)) {
        asked.push(local);
        continue;
      }
      if (!wide) {
        const now = this.hearing.ear.end;
        const start = Math.max(now - wideSamples, Math.min(0, now - LIVE.leastWindowSamples));
        const kept = this.hearing.ear.start > 0 ? Math.max(start, this.hearing.ear.start) : start;
        await this.pause();
        wide = await look(this.hearing.segmenter, this.hearing.ear.window(kept, now), kept);
      }
      const links = linksOf(wide, seen, local.local, decidedUntil, this.hearing.speakers.labels, this.hearing.told);
      asked.push({ ...local, links });
    }
    return asked;
  }
}
