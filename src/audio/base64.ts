/** In every JavaScript runtime, though not in the language's own library. */
declare function btoa(binary: string): string;
declare function atob(text: string): string;

/** Base64 with padding and without line breaks (RFC 4648, section 4). */
export function toBase64(bytes: Uint8Array): string {
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''));
}

/** @returns undefined for text that is not base64. Line breaks are let pass: a voiceprint may have come through a mail. */
export function fromBase64(text: string): Uint8Array | undefined {
  if (!/^[A-Za-z0-9+/\s]+={0,2}\s*$/.test(text)) return undefined;
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}
