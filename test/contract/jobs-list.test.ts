import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ContractService, faultyFields, startContractService } from './service.ts';
import { storeJob } from './stored-job.ts';

let service: ContractService;
beforeAll(async () => {
  service = await startContractService();
});
afterAll(() => service?.stop());

const list = (query = '', key?: string, path = '/v2/jobs') => service.call('GET', `${path}${query}`, { key });
const ids = (body: { items: { id: string }[] }) => body.items.map(({ id }) => id);

/** Ids of all pages, read by following the cursors. */
async function pages(query: string, key: string): Promise<string[][]> {
  const found: string[][] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const { status, body } = await list(`?${query}${cursor && `&cursor=${encodeURIComponent(cursor)}`}`, key);
    expect(status).toBe(200);
    found.push(ids(body));
    cursor = body.nextCursor;
  }
  return found;
}

describe('GET /v2/jobs', () => {
  it('is empty for an account without jobs', async () => {
    const { token } = await service.newKey({ account: 'nobody' });
    const answer = await list('', token);
    expect([answer.status, answer.body]).toEqual([200, { items: [], nextCursor: null }]);
  });

  it('lists ten jobs with id, status and time, newest first; also at /v1/jobs', async () => {
    const { token, accountId } = await service.newKey({ account: 'ten' });
    for (let i = 0; i < 12; i++) {
      await storeJob(service, { id: `ten-${i}`, status: 'running', accountId, createdAt: 1_750_000_000_000 + i });
    }
    const { body } = await list('', token);
    expect(ids(body)).toEqual([11, 10, 9, 8, 7, 6, 5, 4, 3, 2].map((i) => `ten-${i}`));
    expect(body.items[0]).toEqual({ id: 'ten-11', status: 'running', createdAt: '2025-06-15T15:06:40.011Z' });
    expect((await list('', token, '/v1/jobs')).body).toEqual(body);
    expect((await list('', token, '/v1/jobs/')).body).toEqual(body);
    expect(await pages('limit=5', token)).toEqual([
      [11, 10, 9, 8, 7].map((i) => `ten-${i}`),
      [6, 5, 4, 3, 2].map((i) => `ten-${i}`),
      [1, 0].map((i) => `ten-${i}`),
    ]);
    expect(await pages('limit=12', token)).toHaveLength(1);
    expect((await list('?status=&cursor=&limit=', token)).status).toBe(400);
  });

  it('keeps page positions when jobs are added, deleted or have equal times', async () => {
    const { token, accountId } = await service.newKey({ account: 'stable' });
    const createdAt = 1_750_000_000_000;
    for (const id of ['a', 'b', 'c', 'd'])
      await storeJob(service, { id: `s-${id}`, status: 'failed', accountId, createdAt });
    const first = (await list('?limit=2', token)).body;
    await storeJob(service, { id: 's-new', status: 'created', accountId, createdAt: createdAt + 1 });
    await service.call('DELETE', '/v1/jobs/s-c', { key: token });
    const second = (await list(`?limit=2&cursor=${first.nextCursor}`, token)).body;
    expect([ids(first), ids(second), second.nextCursor]).toEqual([['s-d', 's-c'], ['s-b', 's-a'], null]);
    expect(ids((await list('', token)).body)).toEqual(['s-new', 's-d', 's-b', 's-a']);
  });

  it('filters by status', async () => {
    const { token, accountId } = await service.newKey({ account: 'states' });
    const states = ['created', 'pending', 'running', 'succeeded', 'failed', 'canceled'];
    for (const status of states) await storeJob(service, { id: `state-${status}`, status, accountId });
    for (const status of states) expect(await pages(`status=${status}`, token)).toEqual([[`state-${status}`]]);
  });

  it('lists only jobs of the account and refuses foreign or changed cursors', async () => {
    const mine = await service.newKey({ account: 'mine' });
    const theirs = await service.newKey({ account: 'theirs' });
    for (const i of [1, 2, 3]) {
      await storeJob(service, { id: `mine-${i}`, status: 'running', accountId: mine.accountId });
      await storeJob(service, { id: `theirs-${i}`, status: 'running', accountId: theirs.accountId });
    }
    expect((await pages('limit=1', mine.token)).flat()).toEqual(['mine-3', 'mine-2', 'mine-1']);
    const { nextCursor } = (await list('?limit=1', mine.token)).body;
    const foreign = await list(`?cursor=${nextCursor}`, theirs.token);
    expect([foreign.status, faultyFields(foreign)]).toEqual([400, ['cursor']]);
    const otherFilter = await list(`?status=failed&cursor=${nextCursor}`, mine.token);
    expect([otherFilter.status, faultyFields(otherFilter)]).toEqual([400, ['cursor']]);
    for (const addition of ['.x', '=']) {
      const longer = await list(`?cursor=${encodeURIComponent(nextCursor + addition)}`, mine.token);
      expect([longer.status, faultyFields(longer)]).toEqual([400, ['cursor']]);
    }
    for (const cursor of ['x', 'a.b', '.', '%00', `${nextCursor}x`, `x${nextCursor}`, 'é.é', 'x'.repeat(5000)]) {
      const damaged = await list(`?cursor=${encodeURIComponent(cursor)}`, mine.token);
      expect([cursor, damaged.status, faultyFields(damaged)]).toEqual([cursor, 400, ['cursor']]);
    }
    expect(nextCursor).not.toContain(mine.accountId);
  });

  it('accepts a limit written as a float with a zero fraction', async () => {
    const { token } = await service.newKey({ account: 'floats' });
    expect((await list('?limit=10.0', token)).status).toBe(200);
    expect((await list('?limit=100.00', token)).status).toBe(200);
  });

  it.each(['0', '101', '-1', '1.5', 'ten', '', '1e1', '010', '0.0', '101.0', '10.01'])(
    'refuses the limit %j',
    async (limit) => {
      const answer = await list(`?limit=${limit}`);
      expect([answer.status, faultyFields(answer)]).toEqual([400, ['limit']]);
    },
  );

  it('reports all faulty parameters together', async () => {
    const answer = await list(`?limit=0&status=done&cursor=${'x'.repeat(2000)}`);
    expect(faultyFields(answer).sort()).toEqual(['cursor', 'limit', 'status']);
    expect(faultyFields(await list('?limit=0&cursor=x')).sort()).toEqual(['cursor', 'limit']);
    expect(JSON.stringify(answer.body)).toContain('created, pending, running');
  });

  it('requires a key with jobs:read', async () => {
    const { token } = await service.newKey({ scopes: ['jobs:write'] });
    for (const path of ['/v1/jobs', '/v2/jobs']) {
      expect((await list('', token, path)).status).toBe(403);
      expect((await service.call('GET', path, { key: null })).status).toBe(401);
      expect((await service.call('PUT', path)).status).toBe(405);
    }
    expect((await service.call('GET', '/v2/nothing', { key: null })).status).toBe(401);
    expect((await service.call('GET', '/v2/nothing')).status).toBe(404);
  });
});
