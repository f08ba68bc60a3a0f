import { COLOURS } from './canvas.ts';
import type { EditedSpeaker } from './edits.ts';
import { button, element, mark } from './page.ts';
import type { Sheet } from './sheet.ts';

/** Changes of a speaker that the dialog offers. */
export interface SpeakerActions {
  rename(name: string): void;
  recolour(colour: number): void;
  merge(into: EditedSpeaker): void;
  rememberVoice(): void;
}

/** Opens the dialog of a speaker. @param others speakers with which it can be merged */
export function askSpeaker(
  sheet: Sheet,
  anchor: HTMLElement,
  speaker: EditedSpeaker,
  others: readonly EditedSpeaker[],
  actions: SpeakerActions,
): void {
  sheet.open(anchor, speaker.name, (body, close) => {
    const form = element('form');
    const field = element('input');
    field.id = 'speaker-name';
    field.value = speaker.name;
    field.autocomplete = 'off';
    field.maxLength = 100;
    const caption = element('label', '', 'Name');
    caption.htmlFor = field.id;
    form.append(caption, field, element('button', 'main', 'Rename'));
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      close();
      actions.rename(field.value.trim());
    });
    const choice = (text: string, colour: number | undefined, choose: () => void): HTMLButtonElement => {
      const node = button(text, () => {
        close();
        choose();
      });
      if (colour !== undefined) node.prepend(mark(colour));
      return node;
    };
    const colours = element('div', 'swatches');
    colours.setAttribute('role', 'group');
    colours.setAttribute('aria-label', 'Colour');
    for (let colour = 0; colour < COLOURS; colour++) {
      const swatch = choice('', colour, () => actions.recolour(colour));
      swatch.setAttribute('aria-label', `Colour ${colour + 1}`);
      swatch.setAttribute('aria-pressed', String(speaker.colour === colour));
      colours.append(swatch);
    }
    body.append(form, element('h3', '', 'Colour'), colours);
    if (others.length > 0) {
      const merges = others.map((other) => choice(other.name, other.colour, () => actions.merge(other)));
      body.append(element('h3', '', 'Same person as'), ...merges);
    }
    const remember = choice('Remember this voice …', undefined, () => actions.rememberVoice());
    body.append(element('h3', '', 'Voice'), remember);
    field.select();
  });
}

/** Asks for the speaker of a turn. @param onChoice called with undefined for a speaker that the service did not find */
export function askTurn(
  sheet: Sheet,
  anchor: HTMLElement,
  turn: { readonly title: string; readonly speaker: string },
  speakers: readonly EditedSpeaker[],
  onChoice: (speaker: EditedSpeaker | undefined) => void,
): void {
  sheet.open(anchor, turn.title, (body, close) => {
    for (const speaker of [...speakers, undefined]) {
      const choose = button(speaker?.name ?? 'Another speaker', () => {
        close();
        onChoice(speaker);
      });
      if (speaker) {
        choose.prepend(mark(speaker.colour));
        choose.setAttribute('aria-pressed', String(speaker.label === turn.speaker));
      }
      body.append(choose);
    }
  });
}
