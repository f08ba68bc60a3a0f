import { vi } from 'vitest';
import type { CopyRpc, ProgressRpc } from '../../src/platform/object-stubs.ts';
import type { SimulatedEnv } from './doubles.ts';
import type { WithAlarm } from './durable-object.ts';

/**
 * The real classes, imported without their types: those need the types of workerd, and this folder has those of Node.
 */

export type Progress = ProgressRpc & WithAlarm;
export const { JobProgress } = await vi.importActual<{
  readonly JobProgress: new (state: object, env: SimulatedEnv) => Progress;
}>('../../durable-objects/job-progress.ts');

export type Copying = CopyRpc & WithAlarm;
export const { SourceCopy } = await vi.importActual<{
  readonly SourceCopy: new (state: object, env: SimulatedEnv) => Copying;
}>('../../durable-objects/source-copy.ts');
