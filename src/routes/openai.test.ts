import { describe, expect, it } from 'vitest';
import type { JobView, JobWatchItem } from '../jobs/app-services.ts';
import { speakerNames } from './openai-answers.ts';
import { TranscriptionFault, waitForSuccess } from './openai-jobs.ts';

it('names known speakers, and other speakers by letters that are no known names', () => {
  const nameOf = speakerNames(
    new Map([
      ['S3', 'Alice'],
      ['S4', 'B'],
    ]),
  );
  expect(['S0', 'S3', 'S1', 'S0', 'S4'].map(nameOf)).toEqual(['A', 'Alice', 'C', 'A', 'B']);
  const many = speakerNames(new Map());
  expect(Array.from({ length: 28 }, (_, at) => many(`S${at}`)).slice(24)).toEqual(['Y', 'Z', 'AA', 'AB']);
});

describe('a request that waits for a job', () => {
  const job = (status: JobView['status'], error?: JobView['error']): JobView => {
    return { id: 'j', kind: 'diarize', status, createdAt: 0, updatedAt: 0, error };
  };
  const wait = async (items: readonly JobWatchItem[], found: JobView | undefined = job('running')) => {
    const jobs = {
      async *watch() {
        yield* items;
      },
      find: async () => found,
    };
    let heartbeats = 0;
    const onHeartbeat = async () => void heartbeats++;
    const waiting = { jobs, accountId: 'a', until: 0, isOpen: () => true, onHeartbeat };
    const ended = await waitForSuccess(waiting, 'j', 'file').catch((error) => {
      expect(error).toBeInstanceOf(TranscriptionFault);
      return error as TranscriptionFault;
    });
    return { ended, heartbeats };
  };
  const status = (view: JobView): JobWatchItem => ({ kind: 'status', id: 1, job: view });

  it('returns the successful job', async () => {
    const items: JobWatchItem[] = [status(job('running')), { kind: 'heartbeat' }, status(job('succeeded'))];
    expect(await wait(items)).toEqual({ ended: job('succeeded'), heartbeats: 1 });
  });

  it('throws the reason of a failure or cancellation', async () => {
    const failed = (code: string) => wait([status(job('failed', { code, message: 'No speech.' }))]);
    expect((await failed('no_speech')).ended).toMatchObject({
      status: 400,
      body: { error: { message: 'No speech.', type: 'invalid_request_error', param: 'file', code: 'no_speech' } },
    });
    expect((await failed('internal')).ended).toMatchObject({ status: 500, body: { error: { type: 'server_error' } } });
    expect((await wait([status(job('canceled'))])).ended).toMatchObject({ body: { error: { code: 'canceled' } } });
  });

  it('throws the address of the job when the wait is over', async () => {
    const { ended } = await wait([status(job('running'))]);
    expect(ended).toMatchObject({ status: 504, body: { error: { code: 'timeout', type: 'server_error' } } });
    expect((ended as TranscriptionFault).message).toContain('/v1/jobs/j');
  });
});
