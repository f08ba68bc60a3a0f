/** Erases the storage of an object, the alarm last: if `deleteAll` fails, the alarm retries it. */
export async function erase(storage: Pick<DurableObjectStorage, 'deleteAll' | 'deleteAlarm'>): Promise<void> {
  await storage.deleteAll();
  await storage.deleteAlarm();
}
