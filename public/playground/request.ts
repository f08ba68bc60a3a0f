import { MAX_RECORDING_BYTES } from '../../client/sdk/limits.ts';

/** A recording that the user has chosen. */
export type Source =
  | { readonly kind: 'file'; readonly file: File }
  | { readonly kind: 'address'; readonly url: string }
  | { readonly kind: 'microphone' };

/** The request that the form describes. */
export interface FormRequest {
  readonly key: string;
  readonly source: Source;
  readonly model: 'precision-2' | 'community-1';
  readonly numSpeakers?: number;
  /** Whether the recording is also transcribed. */
  readonly transcription?: true;
}

/** Values of the form. */
export interface FormValues {
  readonly key: string;
  readonly source: string;
  readonly file: File | undefined;
  readonly address: string;
  readonly model: string;
  readonly speakers: string;
  readonly transcribe: boolean;
}

/** A fault of the form; `field` is the id of the faulty element. */
export interface Fault {
  readonly field: string;
  readonly message: string;
}

export type FormResult =
  | { readonly ok: true; readonly value: FormRequest }
  | { readonly ok: false; readonly faults: readonly Fault[] };

/** Returns the key without the word before it in a terminal and without the address of this page. */
export function plainKey(text: string): string {
  return text
    .trim()
    .replace(/^(?:playground:\s*)?https?:\/\/\S*#key=/i, '')
    .replace(/^(?:key:|bearer)\s*/i, '');
}

/** Returns the name of a recording, for example of its file. */
export function nameOf(source: Source): string {
  switch (source.kind) {
    case 'file':
      return source.file.name;
    case 'address':
      return /^data:/i.test(source.url)
        ? 'data'
        : decoded(/[^/?#]+(?=\/*(?:[?#]|$))/.exec(source.url)?.[0] ?? source.url);
    case 'microphone':
      return 'microphone';
  }
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** Reads the form; returns all faults at once. */
export function readForm(form: FormValues): FormResult {
  const faults: Fault[] = [];
  const key = plainKey(form.key);
  if (key === '') faults.push({ field: 'key', message: 'Enter an API key of this service.' });
  else if (/[^\x21-\x7e]/.test(key)) {
    faults.push({ field: 'key', message: 'The API key contains characters that keys cannot have.' });
  }
  const source = sourceOf(form, faults);
  // The microphone hides this field.
  const speakers = form.source === 'microphone' ? '' : form.speakers.trim();
  if (speakers !== '' && !/^[1-9]\d{0,3}$/.test(speakers)) {
    faults.push({
      field: 'speakers',
      message: 'The number of speakers must be a whole number of at least 1, or empty.',
    });
  }
  if (faults.length > 0 || !source) return { ok: false, faults };
  const model = form.model === 'community-1' ? form.model : 'precision-2';
  const transcription = form.transcribe && form.source !== 'microphone';
  if (transcription && model === 'community-1') {
    faults.push({ field: 'transcribe', message: 'Transcription needs the model precision-2.' });
    return { ok: false, faults };
  }
  const numSpeakers = speakers === '' ? {} : { numSpeakers: Number(speakers) };
  const request = { key, source, model, ...numSpeakers, ...(transcription && { transcription }) } as const;
  return { ok: true, value: request };
}

function sourceOf({ source, file, address }: FormValues, faults: Fault[]): Source | undefined {
  const fault = (field: string, message: string): undefined => {
    faults.push({ field, message });
  };
  switch (source) {
    case 'microphone':
      return { kind: 'microphone' };
    case 'address': {
      const url = address.trim();
      if (url === '') return fault('address', 'Enter the address of a recording.');
      const isKnown = /^(https?|media):\/\//i.test(url) || /^data:/i.test(url);
      return isKnown ? { kind: 'address', url } : fault('address', 'The address must begin with https:// or http://.');
    }
    default:
      if (!file) return fault('file', 'Choose a file.');
      if (file.size === 0) return fault('file', 'The file is empty.');
      if (file.size > MAX_RECORDING_BYTES) {
        const gibibytes = (file.size / MAX_RECORDING_BYTES).toFixed(2);
        return fault('file', `The file has ${gibibytes} GiB; a recording may have 1 GiB at most.`);
      }
      return { kind: 'file', file };
  }
}
