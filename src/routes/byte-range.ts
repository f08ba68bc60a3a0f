/** What a Range header asks of a file: all of it, a part, or nothing that it has. */
export type WantedRange =
  | { readonly kind: 'all' }
  | { readonly kind: 'part'; readonly offset: number; readonly length: number }
  | { readonly kind: 'unsatisfiable' };

const ALL: WantedRange = { kind: 'all' };

/** Reads a Range header by RFC 9110 §14. What is malformed, or asks for several parts, counts as not there. */
export function wantedRange(header: string | undefined, sizeBytes: number): WantedRange {
  const match = /^bytes=(\d*)-(\d*)$/i.exec(header?.trim() ?? '');
  if (!match || (match[1] === '' && match[2] === '')) return ALL;
  const [first, last] = [match[1], match[2]];
  if (first === '') {
    const length = Math.min(Number(last), sizeBytes);
    return length === 0 ? { kind: 'unsatisfiable' } : { kind: 'part', offset: sizeBytes - length, length };
  }
  const offset = Number(first);
  if (last !== '' && Number(last) < offset) return ALL;
  if (offset >= sizeBytes) return { kind: 'unsatisfiable' };
  const end = last === '' ? sizeBytes : Math.min(Number(last) + 1, sizeBytes);
  return { kind: 'part', offset, length: end - offset };
}
