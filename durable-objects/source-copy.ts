import { DurableObject } from 'cloudflare:workers';
import type { JobsEnv } from '../src/env.ts';
import { dispatch, JobGone, keepLease, LEASE_MS } from '../src/jobs/dispatch.ts';
import { failJob, removeWork } from '../src/jobs/end-job.ts';
import { outboxId } from '../src/jobs/job-messages.ts';
import type { JobPorts } from '../src/jobs/job-ports.ts';
import { isTerminal } from '../src/jobs/job-record.ts';
import { isTemporary } from '../src/jobs/source-error.ts';
import { copyKey } from '../src/jobs/work-keys.ts';
import type { CopyRpc } from '../src/platform/object-stubs.ts';
import { type CopyEnd, type CopyState, copyRecording } from '../src/platform/sources/copy.ts';
import { copyClient, jobPorts } from '../src/services-jobs.ts';
import { erase } from './erase.ts';

/** The platform ends an alarm after 15 minutes. */
const CALL_MS = 12 * 60_000;
/** Pauses before the second, third … attempt if the server fails; received bytes reset them. */
const PAUSES_MS = [5000, 15_000, 60_000];

interface Request {
  readonly jobId: string;
  readonly url: string;
  readonly maxBytes: number;
}

/**
 * Copies the recording of one job into the bucket if it cannot be read at its source: the server serves no ranges but
 * the container needs them, sends nothing that identifies the version of the file, or is slow. A slow server occupies
 * this object and no consumer of a queue. When the copy is complete, the job's `ingest` message is sent again.
 */
export class SourceCopy extends DurableObject<JobsEnv> implements CopyRpc {
  #isCopying = false;

  async request(jobId: string, url: string, maxBytes: number): Promise<void> {
    const request: Request = { jobId, url, maxBytes };
    await this.ctx.storage.put('request', request);
    if (!this.#isCopying) await this.ctx.storage.setAlarm(Date.now());
  }

  override async alarm(): Promise<void> {
    const request = await this.ctx.storage.get<Request>('request');
    if (!request) return;
    this.#isCopying = true;
    try {
      await this.#copy(request);
    } finally {
      this.#isCopying = false;
    }
  }

  async #copy(request: Request): Promise<void> {
    const ports = jobPorts(this.env);
    const { jobId } = request;
    const { storage } = this.ctx;
    // The job may have ended while the copy waited for its next attempt.
    if (await isOver(ports, jobId)) return erase(storage);
    const state = await storage.get<CopyState>('state');
    const id = outboxId({ step: 'ingest', jobId });
    let run: Promise<CopyEnd> | undefined;
    const end = await keepLease(ports, jobId, id, (signal) => {
      run = this.#run(request, state, signal);
      return run;
    }).catch(async (error: unknown): Promise<CopyEnd> => {
      if (!(error instanceof JobGone)) throw error;
      // Wait until the run notices the abort and deletes its copy: until then it may write to the storage.
      await run?.catch(() => undefined);
      return { kind: 'unwanted' };
    });
    switch (end.kind) {
      case 'whole':
        await dispatch(ports, { step: 'ingest', jobId });
        // The job may have ended just before: then no step reads the copy.
        if (await isOver(ports, jobId)) await removeWork(ports, jobId);
        return erase(storage);
      case 'unwanted':
        await removeWork(ports, jobId);
        return erase(storage);
      case 'unfinished':
        await storage.delete('tries');
        return storage.setAlarm(Date.now());
      case 'failed': {
        const now = await storage.get<CopyState>('state');
        const hasGrown = (now?.copiedBytes ?? 0) > (state?.copiedBytes ?? 0);
        const tries = hasGrown ? 0 : ((await storage.get<number>('tries')) ?? 0);
        const { kind, message } = end.error;
        // A file that changed during the copy is copied again.
        if ((isTemporary(kind) || kind === 'changed') && tries < PAUSES_MS.length) {
          const pauseMs = PAUSES_MS[tries];
          await storage.put('tries', tries + 1);
          await ports.store.renewLease(id, ports.now() + pauseMs + LEASE_MS);
          return storage.setAlarm(Date.now() + pauseMs);
        }
        await failJob(ports, jobId, { code: `source_${kind}`, message });
        return erase(storage);
      }
    }
  }

  #run({ jobId, url, maxBytes }: Request, state: CopyState | undefined, signal: AbortSignal): Promise<CopyEnd> {
    const target = {
      bucket: this.env.BUCKET,
      key: copyKey(jobId),
      maxBytes,
      timeoutMs: CALL_MS,
      signal,
      save: async (next: CopyState | undefined) => {
        if (next) await this.ctx.storage.put('state', next);
        else await this.ctx.storage.delete('state');
      },
    };
    return copyRecording(copyClient(this.env), url, target, state);
  }
}

/** Whether a job has ended or is gone. */
async function isOver(ports: JobPorts, jobId: string): Promise<boolean> {
  const job = await ports.store.find(jobId);
  return !job || isTerminal(job.status);
}
