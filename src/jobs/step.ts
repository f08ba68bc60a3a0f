/** A step that was begun, and its lease. */
export interface BegunStep {
  /** How often it was begun without an end that is known, this time included. */
  readonly starts: number;
  /** Prolongs the lease. False when the job has ended. */
  renew(): Promise<boolean>;
  /** The step is to be begun again. @param isForgiven whether this start does not count */
  putBack(dueAt: number, isForgiven: boolean): Promise<void>;
  /** @param pulse called between units of work of at most a few hundred milliseconds */
  run(pulse: () => Promise<void>): Promise<void>;
}
