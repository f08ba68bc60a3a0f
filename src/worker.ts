import { createApp } from './app.ts';
import { docsAssets, playgroundAssets } from './docs-assets.ts';
import type { ApiEnv } from './env.ts';
import { expire } from './jobs/sweeps.ts';
import { log } from './platform/log.ts';
import { appServices, sweepLive } from './services-api.ts';
import { controlPorts } from './services-common.ts';

export { AccountQuota } from '../durable-objects/account-quota.ts';

const app = createApp(appServices, { docs: docsAssets, playground: playgroundAssets });

export default {
  fetch: app.fetch,

  async scheduled(_controller, env) {
    // Run both even if one fails: outputs must be deleted on time.
    const swept = await Promise.allSettled([expire(controlPorts(env)), sweepLive(env)]);
    const faults = swept.filter((result) => result.status === 'rejected').map(({ reason }) => reason);
    for (const fault of faults) log('error', 'sweep_failed', { error: String(fault) });
    if (faults.length > 0) throw faults[0];
  },
} satisfies ExportedHandler<ApiEnv>;
