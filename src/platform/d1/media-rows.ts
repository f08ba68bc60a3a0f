/**
 * Names of rows that no request can reach, because a recording's name cannot contain `#`. The row of a replaced
 * recording ends with `#` and its former name; the column `former_name` is computed from that form, so it must not
 * change.
 */
const unnamed = (objectKey: string) => `#${objectKey}`;
const former = (objectKey: string, name: string) => `${unnamed(objectKey)}#${name}`;

/** A complete recording; times are milliseconds since the Unix epoch. */
export interface MediaRow {
  readonly key: string;
  readonly sizeBytes: number;
  readonly uploadedAt: number;
  readonly expiresAt: number;
}

/**
 * The newest recording of the name ?2 that was uploaded at ?4 or earlier and expires after ?3. Only the current and the
 * last replaced recording are compared: all have the same lifetime, so older ones have expired first.
 */
export const AS_OF_SQL = `
  SELECT key, sizeBytes, uploadedAt, expiresAt FROM (
    SELECT object_key AS key, size_bytes AS sizeBytes, created_at AS uploadedAt, expires_at AS expiresAt, 1 AS isNamed
    FROM media
    WHERE account_id = ?1 AND name = ?2 AND created_at <= ?4 AND size_bytes IS NOT NULL
    UNION ALL
    SELECT * FROM (
      SELECT object_key, size_bytes, created_at, expires_at, 0 FROM media
      WHERE account_id = ?1 AND former_name = ?2 AND created_at <= ?4 AND size_bytes IS NOT NULL
      ORDER BY created_at DESC LIMIT 1
    )
  ) WHERE expiresAt > ?3 ORDER BY uploadedAt DESC, isNamed DESC LIMIT 1`;

/**
 * The table `media`: the object of each recording's name. Unnamed rows hold objects that are still being written or
 * were replaced; the sweep removes them, like all others, when they expire. So a job that reads a recording can finish
 * after the recording was replaced.
 */
export function createMediaRows(db: D1Database) {
  return {
    /**
     * Records an object that is about to be written. Times are milliseconds since the Unix epoch.
     *
     * @param name of an object that bypasses the Worker and is therefore never published; while unfinished jobs refer
     *   to the name, the sweep keeps the object
     */
    async claim(accountId: string, objectKey: string, now: number, expiresAt: number, name?: string): Promise<void> {
      await db
        .prepare('INSERT INTO media (account_id, name, object_key, created_at, expires_at) VALUES (?1, ?2, ?3, ?4, ?5)')
        .bind(accountId, name === undefined ? unnamed(objectKey) : former(objectKey, name), objectKey, now, expiresAt)
        .run();
    },

    async dropClaim(accountId: string, objectKey: string): Promise<void> {
      await db
        .prepare('DELETE FROM media WHERE account_id = ?1 AND name = ?2')
        .bind(accountId, unnamed(objectKey))
        .run();
    },

    /** Gives a complete object its name, and unnames the previous recording, in one transaction. */
    async publish(
      accountId: string,
      name: string,
      objectKey: string,
      sizeBytes: number,
      now: number,
      expiresAt: number,
    ): Promise<void> {
      await db.batch([
        db
          .prepare(`UPDATE media SET name = '#' || object_key || '#' || name WHERE account_id = ?1 AND name = ?2`)
          .bind(accountId, name),
        db
          .prepare(
            `UPDATE media SET name = ?3, size_bytes = ?4, created_at = ?5, expires_at = ?6
             WHERE account_id = ?1 AND name = ?2`,
          )
          .bind(accountId, unnamed(objectKey), name, sizeBytes, now, expiresAt),
      ]);
    },

    async expire(accountId: string, name: string, now: number): Promise<void> {
      await db
        .prepare('UPDATE media SET expires_at = ?3 WHERE account_id = ?1 AND name = ?2')
        .bind(accountId, name, now)
        .run();
    },

    /**
     * The recording that had the name at `asOf`, or got it within `slackMs` after that, even if it was replaced since;
     * undefined if there is none that had not expired at `asOf`.
     */
    async findAsOf(accountId: string, name: string, asOf: number, slackMs: number): Promise<MediaRow | undefined> {
      const row = await db
        .prepare(AS_OF_SQL)
        .bind(accountId, name, asOf, asOf + slackMs)
        .first<MediaRow>();
      return row ?? undefined;
    },

    async find(accountId: string, name: string, now: number): Promise<MediaRow | undefined> {
      const row = await db
        .prepare(
          `SELECT object_key AS key, size_bytes AS sizeBytes, created_at AS uploadedAt, expires_at AS expiresAt
           FROM media
           WHERE account_id = ?1 AND name = ?2 AND expires_at > ?3 AND size_bytes IS NOT NULL`,
        )
        .bind(accountId, name, now)
        .first<MediaRow>();
      return row ?? undefined;
    },
  };
}
export type MediaRows = ReturnType<typeof createMediaRows>;
