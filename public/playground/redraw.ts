/** Of the page's time, drawing takes this much at most: audio has to be sent meanwhile. */
const MAX_SHARE = 0.1;

/**
 * Draws again and again: at the interval while that is quick, less often as what is drawn grows.
 *
 * @returns what ends it
 */
export function redraw(
  draw: () => void,
  intervalMs: number,
  nowMs: () => number = () => performance.now(),
): () => void {
  let timer = setTimeout(drawNow, intervalMs);
  function drawNow(): void {
    const begun = nowMs();
    draw();
    timer = setTimeout(drawNow, Math.max(intervalMs, (nowMs() - begun) / MAX_SHARE));
  }
  return () => clearTimeout(timer);
}
