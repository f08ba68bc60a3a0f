import type { JobPlan } from './ports.ts';

/**
 * The plan that an isolate read last. A day's recording has 288 shards, and reading its plan of a hundred kilobytes and more for each of them
 * leaves more to the garbage collector than all else that a shard makes. A stored plan never changes, and its key tells job and version.
 */
export class PlanMemory {
  #last: { readonly key: string; readonly plan: JobPlan } | undefined;

  /** @throws what `read` throws; nothing is kept then */
  async get(key: string, read: () => Promise<JobPlan>): Promise<JobPlan> {
    if (this.#last?.key === key) return this.#last.plan;
    const plan = await read();
    this.#last = { key, plan };
    return plan;
  }
}
