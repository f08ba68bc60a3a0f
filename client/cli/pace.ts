/** Speed up to which the service keeps up without a sign from it, seconds of audio a second. */
const UNHEARD_SPEED = 2;
/** Audio that may be under way behind the last sign; the service closes a stream with more than 5 s unprocessed. */
const LEAD_SECONDS = 3;
/** A call that comes so much later than it was told to is taken for one after a standstill (a stopped process, a full pipe). */
const STANDSTILL_MS = 250;

/**
 * Says when the next audio may go out. Beyond `UNHEARD_SPEED` times real time only as fast as the service follows: an event with
 * a timestamp shows that everything before it has been processed; from there on a moderate speed is taken for granted. What a standstill
 * of the sender made late is caught up with as far as the lead, no further: all of it at once would end the stream.
 */
export class Pacer {
  private startedMs: number;
  private heardMs: number;
  private heardSeconds = 0;
  private dueMs: number;

  /**
   * @param speed seconds of audio a second, infinite for as fast as it goes
   * @param nowMs a clock that never goes back
   */
  constructor(
    private readonly speed: number,
    private readonly nowMs: () => number = () => performance.now(),
  ) {
    this.startedMs = nowMs();
    this.heardMs = this.startedMs;
    this.dueMs = this.startedMs;
  }

  /** The service has told something about this moment of the stream. */
  heard(timestampSeconds: number): void {
    if (timestampSeconds <= this.heardSeconds) return;
    this.heardSeconds = timestampSeconds;
    this.heardMs = this.nowMs();
  }

  /** How long to wait before sending what follows the first `sentSeconds`; 0 to send it now. */
  waitMs(sentSeconds: number): number {
    const now = this.nowMs();
    this.forgive(now);
    const bySpeed = this.startedMs + (1000 * sentSeconds) / this.speed;
    const beyondSign = sentSeconds - this.heardSeconds - LEAD_SECONDS;
    const bySign = this.speed > UNHEARD_SPEED ? this.heardMs + (1000 * beyondSign) / UNHEARD_SPEED : bySpeed;
    this.dueMs = Math.max(now, bySpeed, bySign);
    return this.dueMs - now;
  }

  private forgive(now: number): void {
    const lateMs = now - this.dueMs;
    this.startedMs += Math.max(0, lateMs - 1000 * LEAD_SECONDS);
    if (lateMs > STANDSTILL_MS) this.heardMs = Math.min(now, this.heardMs + lateMs);
  }
}
