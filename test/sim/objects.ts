import { vi } from 'vitest';
import type { CopyRpc, ProgressRpc } from '../../src/platform/object-stubs.ts';
import type { SimulatedEnv } from './doubles.ts';
import type { WithAlarm } from './durable-object.ts';

/**
 * The real classes, by their names only: they are typed for workerd, with the modules that are bundled there, and this
 * folder for Node.
 */

export type Progress = ProgressRpc & WithAlarm;
export const { JobProgress } = await vi.importActual<{
  readonly JobProgress: new (state: object, env: SimulatedEnv) => Progress;
}>('../../durable-objects/job-progress.ts');

export type Copying = CopyRpc & WithAlarm;
export const { SourceCopy } = await vi.importActual<{
  readonly SourceCopy: new (state: object, env: SimulatedEnv) => Copying;
}>('../../durable-objects/source-copy.ts');
