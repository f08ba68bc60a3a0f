import { element, find } from './page.ts';
import type { FormValues } from './request.ts';
import { SNIPPET_LANGUAGES, type SnippetLanguage, snippet } from './snippets.ts';

/** Shows the request of the form as code. */
export class CodeExample {
  private language: SnippetLanguage = 'curl';
  private readonly code = find('code', HTMLElement);

  constructor(
    private readonly values: () => FormValues,
    say: (message: string) => void,
  ) {
    const tabs = find('languages', HTMLElement);
    for (const [name, title] of Object.entries(SNIPPET_LANGUAGES)) {
      const tab = element('button', '', title);
      tab.type = 'button';
      tab.setAttribute('aria-pressed', String(name === this.language));
      tab.addEventListener('click', () => {
        this.language = name as SnippetLanguage;
        for (const other of tabs.children) other.setAttribute('aria-pressed', String(other === tab));
        this.update();
      });
      tabs.append(tab);
    }
    find('copy', HTMLButtonElement).addEventListener('click', () => {
      // The clipboard is undefined if the page comes over plain http from another machine.
      const copied = navigator.clipboard?.writeText(this.code.textContent ?? '');
      void copied?.then(() => say('Copied.')).catch(() => undefined);
    });
  }

  update(): void {
    const { file, address, model, speakers, transcribe, source } = this.values();
    this.code.textContent = snippet(this.language, {
      origin: location.origin,
      url: address.trim() === '' ? 'https://example.com/meeting.mp3' : address.trim(),
      ...(source === 'file' && { file: file?.name ?? 'meeting.mp3' }),
      options: {
        model,
        ...(/^\d+$/.test(speakers.trim()) && { numSpeakers: Number(speakers) }),
        turnLevelConfidence: true,
        ...(transcribe && { transcription: true }),
      },
    });
  }
}
