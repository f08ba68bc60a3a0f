/** A step that has begun, and its lease. */
export interface BegunStep {
  /** Starts so far without a known end, this one included. */
  readonly starts: number;
  /** Renews the lease. Resolves to false when the job has ended. */
  renew(): Promise<boolean>;
  /** Schedules another start. @param isForgiven this start does not count against the job */
  putBack(dueAt: number, isForgiven: boolean): Promise<void>;
  /** @param pulse called between units of work of at most a few hundred milliseconds */
  run(pulse: () => Promise<void>): Promise<void>;
}
