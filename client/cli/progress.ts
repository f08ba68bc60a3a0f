import { SingleBar } from 'cli-progress';
import { note } from './run.ts';

/** Shows on stderr how far a command is: a bar at a terminal, else a line per stage. */
export class Progress {
  private bar: SingleBar | undefined;
  private stage = '';

  /** Starts a stage of so many units; does nothing when it has begun already. */
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

  /** Units done so far; the bar never goes back. */
  update(value: number): void {
    const { bar } = this;
    if (bar && value > bar.getProgress() * bar.getTotal()) bar.update(Math.min(value, bar.getTotal()));
  }

  /** Takes the bar away. */
  end(): void {
    this.bar?.stop();
    this.bar = undefined;
    this.stage = '';
  }
}
