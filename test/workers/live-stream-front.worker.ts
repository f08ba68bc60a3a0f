import type { StoredStream } from '../../durable-objects/live-storage.ts';
import { LiveStream as Real } from '../../src/live-worker.ts';
import type { TestedLiveStream } from './tested-objects.ts';

/** The object of a live stream with a view of its storage, and faults of the platform on request. */
export class LiveStream extends Real implements TestedLiveStream {
  async loseAlarm(): Promise<void> {
    await this.ctx.storage.deleteAlarm();
  }

  async alarmAt(): Promise<number | null> {
    return this.ctx.storage.getAlarm();
  }

  async loseMemory(): Promise<void> {
    this.ctx.abort();
  }

  async isConnected(): Promise<boolean> {
    return this.ctx.getWebSockets().length > 0;
  }

  async storedKeys(): Promise<string[]> {
    return [...this.ctx.storage.kv.list()].map(([key]) => key);
  }

  async elapse(ms: number): Promise<void> {
    const stream = this.ctx.storage.kv.get('stream') as StoredStream;
    const { phase } = stream;
    if (phase.name === 'running' && phase.dropped) {
      const dropped = { ...phase.dropped, at: phase.dropped.at - ms };
      this.ctx.storage.kv.put('stream', { ...stream, phase: { ...phase, dropped } });
    }
    await this.alarm();
  }
}
