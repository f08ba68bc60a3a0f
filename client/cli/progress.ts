import { SingleBar } from 'cli-progress';
import { note } from './run.ts';

/** Shows progress on stderr: a bar on a terminal, otherwise a line per stage. */
export class Progress {
  private bar: SingleBar | undefined;
  private stage = '';

  /** Starts a stage, unless it is the current one. @param total number of its units */
  begin(stage: string, total: number): void {
    if (stage === this.stage) return;
    this.end();
    this.stage = stage;
    if (!process.stderr.isTTY) {
      note(`${stage} …`);
      return;
    }
    this.bar = new SingleBar({
      format: '{stage} {bar} {percentage} %  {duration_formatted}',
      stream: process.stderr,
      hideCursor: true,
      clearOnComplete: true,
      barsize: 30,
      barCompleteChar: '█',
      barIncompleteChar: '░',
      fps: 5,
    });
    this.bar.start(total, 0, { stage });
  }

  /** @param value units done so far; the bar never goes back */
  update(value: number): void {
    const { bar } = this;
    if (bar && value > bar.getProgress() * bar.getTotal()) bar.update(Math.min(value, bar.getTotal()));
  }

  /** Removes the bar. */
  end(): void {
    this.bar?.stop();
    this.bar = undefined;
    this.stage = '';
  }
}
