import type { CopiesPort } from '../jobs/job-ports.ts';

/** The method of the copying object that may be called from outside. */
export interface CopyRpc {
  request(jobId: string, url: string, maxBytes: number): Promise<void>;
}

/** `CopiesPort` over one Durable Object a job. */
export function createCopies(namespace: DurableObjectNamespace): CopiesPort {
  // The binding's type does not say which class stands after it; `durable-objects/` may not be imported here.
  const of = (jobId: string) => namespace.get(namespace.idFromName(jobId)) as unknown as CopyRpc;
  return { request: (jobId, url, maxBytes) => of(jobId).request(jobId, url, maxBytes) };
}
