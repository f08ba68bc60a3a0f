import type { ShardMessage } from '../../src/jobs/job-messages.ts';
import type { CopyRpc, ProgressRpc } from '../../src/platform/object-stubs.ts';

/*
 * Methods of the service's objects behind the Workers `*-front.worker.ts` as tests call them. The classes cannot be
 * imported here, because they import WebAssembly modules.
 */

export interface SentMessage {
  readonly name: 'jobs' | 'priority';
  readonly message: ShardMessage | { readonly step: 'assemble' };
  readonly delaySeconds?: number;
}

export interface TestedJobProgress extends ProgressRpc {
  /** Messages sent since the last call. */
  sentSince(): Promise<SentMessage[]>;
  setQueuesDown(areDown: boolean): Promise<void>;
  alarmAt(): Promise<number | null>;
  runAlarm(): Promise<void>;
  /** Has the platform run the alarm now. */
  fireAlarm(): Promise<void>;
  loseAlarm(): Promise<void>;
  /** Makes every later alarm fail. */
  breakAlarm(): Promise<void>;
  /** Repairs the alarm and sets the clock of the service ahead. */
  setClock(aheadMs: number): Promise<void>;
  /** Resets the object; the call fails. */
  loseMemory(): Promise<void>;
  tables(): Promise<string[]>;
  /** Number of stored rows. */
  rows(): Promise<number>;
  /** Makes nearly every later call of the isolate fail, as out of memory. */
  breakIsolate(): Promise<void>;
}

export interface TestedLiveStream {
  loseAlarm(): Promise<void>;
  alarmAt(): Promise<number | null>;
  /** Resets the object; the call fails and the connection ends. */
  loseMemory(): Promise<void>;
  isConnected(): Promise<boolean>;
  storedKeys(): Promise<string[]>;
  /** Moves the drop `ms` into the past and runs the alarm. */
  elapse(ms: number): Promise<void>;
}

export interface TestedSourceCopy extends CopyRpc {
  /** Milliseconds until its alarm; null without one. */
  alarmIn(): Promise<number | null>;
  runAlarmNow(): Promise<void>;
  /** Sets the clock of the service ahead. */
  setClockAhead(ms: number): Promise<void>;
  /** Resets the object; the call fails. */
  loseMemory(): Promise<void>;
  stored(): Promise<Record<string, unknown>>;
}
