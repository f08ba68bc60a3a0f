/**
 * Erases all that an object keeps, the alarm last: where the rest could not be erased, it comes and has it tried again.
 */
export async function erase(storage: Pick<DurableObjectStorage, 'deleteAll' | 'deleteAlarm'>): Promise<void> {
  await storage.deleteAll();
  await storage.deleteAlarm();
}
