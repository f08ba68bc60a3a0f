/** A shard that is handed out, and its number of starts without a known end. */
export interface HandedOut {
  readonly shard: number;
  readonly starts: number;
}

interface Counts {
  /** Shards `[0, next)` were handed out. */
  readonly next: number;
  readonly done: number;
  /** Earliest lease of the shards that are handed out and not done. */
  readonly earliestLease: number | undefined;
}

/** The shards of a job in the SQLite of its object: which are handed out, until when, and which are done. */
export class ShardLeases {
  constructor(private readonly sql: SqlStorage) {
    // A shard that is done has no lease.
    sql.exec(`CREATE TABLE IF NOT EXISTS shards (
      tag TEXT NOT NULL, shard INTEGER NOT NULL, lease_until INTEGER, starts INTEGER NOT NULL DEFAULT 0,
      in_work INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (tag, shard)) WITHOUT ROWID`);
  }

  counts(tag: string): Counts {
    const { handed_out, done, earliest } = this.sql
      .exec(
        `SELECT COUNT(*) AS handed_out, COUNT(*) - COUNT(lease_until) AS done, MIN(lease_until) AS earliest
         FROM shards WHERE tag = ?`,
        tag,
      )
      .one();
    return {
      next: Number(handed_out),
      done: Number(done),
      earliestLease: earliest === null ? undefined : Number(earliest),
    };
  }

  /** @returns undefined for a shard that is not handed out */
  find(tag: string, shard: number): { leaseUntil: number | undefined; starts: number; isInWork: boolean } | undefined {
    const [row] = this.sql
      .exec('SELECT lease_until, starts, in_work FROM shards WHERE tag = ? AND shard = ?', tag, shard)
      .toArray();
    if (!row) return undefined;
    return {
      leaseUntil: row.lease_until === null ? undefined : Number(row.lease_until),
      starts: Number(row.starts),
      isInWork: row.in_work === 1,
    };
  }

  handOut(tag: string, shard: number, leaseUntil: number): void {
    this.sql.exec('INSERT INTO shards (tag, shard, lease_until) VALUES (?, ?, ?)', tag, shard, leaseUntil);
  }

  /** @returns number of starts, this one included */
  begin(tag: string, shard: number, leaseUntil: number): number {
    const { starts } = this.sql
      .exec(
        `UPDATE shards SET lease_until = ?, starts = starts + 1, in_work = 1
         WHERE tag = ? AND shard = ? RETURNING starts`,
        leaseUntil,
        tag,
        shard,
      )
      .one();
    return Number(starts);
  }

  renew(tag: string, shard: number, leaseUntil: number): void {
    this.sql.exec(
      'UPDATE shards SET lease_until = ? WHERE tag = ? AND shard = ? AND lease_until IS NOT NULL',
      leaseUntil,
      tag,
      shard,
    );
  }

  /** The shard waits for its next start. */
  putBack(tag: string, shard: number, leaseUntil: number, forgivenStarts = 0): void {
    this.sql.exec(
      `UPDATE shards SET lease_until = ?, in_work = 0, starts = MAX(0, starts - ?)
       WHERE tag = ? AND shard = ? AND lease_until IS NOT NULL`,
      leaseUntil,
      forgivenStarts,
      tag,
      shard,
    );
  }

  done(tag: string, shard: number): void {
    this.sql.exec('UPDATE shards SET lease_until = NULL WHERE tag = ? AND shard = ?', tag, shard);
  }

  /** Shards whose lease ran out. */
  expired(tag: string, now: number): HandedOut[] {
    const rows = this.sql
      .exec('SELECT shard, starts FROM shards WHERE tag = ? AND lease_until <= ? ORDER BY shard', tag, now)
      .toArray();
    return rows.map(({ shard, starts }) => ({ shard: Number(shard), starts: Number(starts) }));
  }

  /** Ends the leases of all shards that are handed out: they count as lost. */
  expireAll(tag: string): void {
    this.sql.exec('UPDATE shards SET lease_until = 0, in_work = 0 WHERE tag = ? AND lease_until IS NOT NULL', tag);
  }

  forget(tag: string): void {
    this.sql.exec('DELETE FROM shards WHERE tag = ?', tag);
  }
}
