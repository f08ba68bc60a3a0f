const BLOCK_BYTES = 512;

/**
 * Finds a file in a tar archive (ustar, without the long names of GNU and pax).
 *
 * @param archive the whole archive, uncompressed
 * @param member path in the archive; a leading `./` is ignored
 * @returns a view of the file's bytes; undefined if the archive does not contain it
 */
export function findInTar(archive: Uint8Array, member: string): Uint8Array | undefined {
  const target = member.replace(/^\.\//, '');
  for (let offset = 0; offset + BLOCK_BYTES <= archive.length; ) {
    const header = archive.subarray(offset, offset + BLOCK_BYTES);
    if (header[0] === 0) return undefined; // the archive ends with zero blocks
    const sizeBytes = Number.parseInt(text(header, 124, 12), 8);
    if (!Number.isFinite(sizeBytes)) return undefined;
    const prefix = text(header, 257, 5) === 'ustar' ? text(header, 345, 155) : '';
    const name = (prefix ? `${prefix}/` : '') + text(header, 0, 100);
    const start = offset + BLOCK_BYTES;
    const isFile = header[156] === 0 || header[156] === 0x30; // type flag: none or '0'
    if (isFile && name.replace(/^\.\//, '') === target) {
      return start + sizeBytes <= archive.length ? archive.subarray(start, start + sizeBytes) : undefined;
    }
    offset = start + Math.ceil(sizeBytes / BLOCK_BYTES) * BLOCK_BYTES;
  }
  return undefined;
}

/** Reads a header field: text up to the first zero byte, trimmed. */
function text(header: Uint8Array, at: number, length: number): string {
  const field = header.subarray(at, at + length);
  const end = field.indexOf(0);
  return new TextDecoder().decode(end < 0 ? field : field.subarray(0, end)).trim();
}
