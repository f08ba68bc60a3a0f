import type { WebhookPort } from '../../src/jobs/job-ports.ts';
import type { Invocation } from './timeline.ts';
import type { World } from './world.ts';

/** A webhook as received. */
export interface Post {
  readonly jobId: string;
  readonly body: string;
  readonly attempt: number;
  readonly isAccepted: boolean;
}

/** Receivers of webhooks; those with `broken` in their URL refuse all. */
export class Receivers {
  readonly posts: Post[] = [];

  constructor(private readonly world: World) {}

  portOf(caller: Invocation): WebhookPort {
    const { time, faults } = this.world;
    return {
      post: async (url, bytes, headers) => {
        await caller.sleep(time.between(5, time.chance(0.2) ? 10_000 : 500));
        const body = new TextDecoder().decode(bytes);
        const { jobId } = JSON.parse(body) as { jobId: string };
        const isAccepted = !url.includes('broken') && !faults.chance(0.3);
        const attempt = Number(headers['x-retry-num'] ?? 0);
        this.posts.push({ jobId, body, attempt, isAccepted });
        time.trace(`POST ${jobId} ${attempt} ${isAccepted ? 'accepted' : 'refused'}`);
        if (isAccepted) return { ok: true, value: { status: 204 } };
        if (time.chance(0.5)) return { ok: true, value: { status: 500 } };
        return { ok: false, error: { reason: 'http_timeout', detail: '' } };
      },
    };
  }
}
