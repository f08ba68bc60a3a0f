import { find } from './page.ts';

/** Accepts files that are dropped anywhere on the page. */
export function listenToDrops(isBusy: () => boolean, onFile: (file: File) => void): void {
  const zone = find('drop', HTMLElement);
  const hasFiles = ({ dataTransfer }: DragEvent) => dataTransfer?.types.includes('Files') === true;
  window.addEventListener('dragover', (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    zone.hidden = isBusy();
  });
  window.addEventListener('dragleave', (event) => {
    if (event.relatedTarget === null) zone.hidden = true;
  });
  window.addEventListener('drop', (event) => {
    zone.hidden = true;
    if (!hasFiles(event)) return;
    event.preventDefault();
    const file = event.dataTransfer?.files[0];
    if (file && !isBusy()) onFile(file);
  });
}
