/** What an answer must have to be the service's. */
export interface Members {
  /** Texts; null where the answer has no body. */
  readonly fields: readonly string[] | null;
  readonly lists?: readonly string[];
}

/** Whether something that was parsed from JSON has all of them. */
export function hasMembers(answer: unknown, { fields, lists = [] }: Members): boolean {
  if (typeof answer !== 'object' || answer === null || fields === null) return false;
  const members = answer as Readonly<Record<string, unknown>>;
  return (
    fields.every((field) => typeof members[field] === 'string') && lists.every((list) => Array.isArray(members[list]))
  );
}
