import { LiveStream as Real } from '../../src/live-worker.ts';

/** The object of a live stream that fails to discard its stream. */
export class LiveStream extends Real {
  override async discard(): Promise<void> {
    throw new Error('the object is overloaded');
  }
}
