/** A search whose steps may do harm too. */
export interface Rounds<Settings, Result> {
  /** Score that is enough. */
  readonly wanted: number;
  readonly maxRounds: number;
  readonly run: (settings: Settings) => Promise<Result>;
  readonly scoreOf: (result: Result) => number;
  /** Settings of the next round; those of this one stay as they are. @param round 0 for the first */
  readonly next: (settings: Settings, result: Result, round: number) => Promise<Settings>;
  /** Called with every result but the one that is returned, once it is of no use any more. */
  readonly drop: (result: Result) => void;
}

/**
 * Runs with ever other settings until the score is enough. Where it never is, the round counts that had the highest score, the last of several; it is
 * run once more where it was not the last, since a result may rest on what only the last run has put down.
 */
export async function bestRound<Settings, Result>(
  first: Settings,
  { wanted, maxRounds, run, scoreOf, next, drop }: Rounds<Settings, Result>,
): Promise<Result> {
  let settings = first;
  let best = { settings, score: Number.NEGATIVE_INFINITY };
  for (let round = 0; ; round++) {
    const result = await run(settings);
    const score = scoreOf(result);
    if (score >= wanted) return result;
    if (score >= best.score) best = { settings, score };
    const isLast = round + 1 === maxRounds;
    if (isLast && best.settings === settings) return result;
    if (!isLast) settings = await next(settings, result, round);
    drop(result);
    if (isLast) return run(best.settings);
  }
}
