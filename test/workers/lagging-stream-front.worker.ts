import { LiveStream as Real } from '../../src/live-worker.ts';

/** The object of a live stream in an isolate whose running streams lag. */
export class LiveStream extends Real {
  override async open(): Promise<boolean> {
    return false;
  }
}
