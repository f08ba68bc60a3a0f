/** In every JavaScript runtime, though not in the language's own library. */
declare function btoa(binary: string): string;
declare function atob(text: string): string;

/** Base64 with padding and without line breaks (RFC 4648, section 4). */
export function toBase64(bytes: Uint8Array): string {
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''));
}

/** @returns undefined for text that is not base64. Line breaks are let pass: a voiceprint may have come through a mail. */
export function fromBase64(text: string): Uint8Array | undefined {
  // White space goes first: a pattern in which two parts in a row may match it takes time with the square of its length.
  const packed = text.replace(/\s+/g, '');
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(packed)) return undefined;
  try {
    return Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}
