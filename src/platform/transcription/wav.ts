const SAMPLE_RATE_HZ = 16_000;
const HEADER_BYTES = 44;

/** A WAV file of 16-bit samples, little-endian, mono, 16 kHz. */
export function wavOf(samples: Uint8Array): Uint8Array<ArrayBuffer> {
  const file = new Uint8Array(HEADER_BYTES + samples.length);
  const view = new DataView(file.buffer);
  const put = (offset: number, text: string) => file.set(new TextEncoder().encode(text), offset);
  put(0, 'RIFF');
  view.setUint32(4, file.length - 8, true);
  put(8, 'WAVEfmt ');
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true); // PCM
  view.setUint16(22, 1, true);
  view.setUint32(24, SAMPLE_RATE_HZ, true);
  view.setUint32(28, SAMPLE_RATE_HZ * 2, true);
  view.setUint16(32, 2, true);
  view.setUint16(34, 16, true);
  put(36, 'data');
  view.setUint32(40, samples.length, true);
  file.set(samples, HEADER_BYTES);
  return file;
}
