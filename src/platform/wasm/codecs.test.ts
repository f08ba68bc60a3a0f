import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { CodecSpec, PacketDecoder } from '../../audio/audio-ports.ts';
import { createDecoders } from './codecs.ts';

interface Case {
  readonly file: string;
  readonly expected: string;
  readonly codec: CodecSpec['codec'];
  readonly sampleRateHz: number;
  readonly channels: number;
  readonly packets: readonly (readonly [offset: number, size: number])[];
  readonly extraDataHex?: string;
}

const fixture = (name: string) =>
  new Uint8Array(readFileSync(new URL(`../../../test/fixtures/audio/${name}`, import.meta.url)));
const cases: Case[] = JSON.parse(new TextDecoder().decode(fixture('codec_cases.json')));
const module = new WebAssembly.Module(readFileSync(new URL('../../../wasm/codecs/codecs.wasm', import.meta.url)));
const decoders = createDecoders(module);

const specOf = ({ codec, sampleRateHz, channels, extraDataHex }: Case): CodecSpec => ({
  codec,
  sampleRateHz,
  channels,
  extraData: extraDataHex === undefined ? undefined : new Uint8Array(Buffer.from(extraDataHex, 'hex')),
});
const packetsOf = ({ file, packets }: Case) => {
  const bytes = fixture(file);
  return packets.map(([offset, size]) => bytes.subarray(offset, offset + size));
};
const expectedOf = ({ expected }: Case) => new Float32Array(fixture(expected).buffer);

function decodeAll(decoder: PacketDecoder, packets: readonly Uint8Array[]): Float32Array {
  return Float32Array.from(packets.flatMap((packet) => Array.from(decoder.decode(packet))));
}

describe('decoders', () => {
  it.each(cases)('decodes $file as the native decoder does', (item) => {
    const decoder = decoders.open(specOf(item));
    const out = decodeAll(decoder, packetsOf(item));
    expect(decoder.sampleRateHz).toBe(item.sampleRateHz);
    decoder.close();
    const expected = expectedOf(item);
    expect(out.length).toBe(expected.length);
    let worst = 0;
    for (let i = 0; i < out.length; i++) worst = Math.max(worst, Math.abs(out[i] - expected[i]));
    // FLAC is lossless. For MP3 native code sums in another order: 2e-6 is -114 dB of full scale.
    expect(worst).toBeLessThan(item.codec === 'flac' ? 1e-7 : 2e-6);
  });

  it('returns 1152 samples per MP3 frame, or 576 below 32 kHz', () => {
    for (const item of cases.filter(({ codec }) => codec === 'mp3')) {
      const decoder = decoders.open(specOf(item));
      const lengths = packetsOf(item).map((packet) => decoder.decode(packet).length);
      expect(new Set(lengths)).toEqual(new Set([item.sampleRateHz < 32000 ? 576 : 1152]));
      decoder.close();
    }
  });

  it('keeps the states of concurrently open decoders separate', () => {
    const opened = cases.map((item) => ({ item, decoder: decoders.open(specOf(item)), packets: packetsOf(item) }));
    const out = opened.map((): number[] => []);
    for (let i = 0; i < 40; i++)
      opened.forEach(({ decoder, packets }, k) => {
        if (packets[i]) out[k].push(...decoder.decode(packets[i]));
      });
    opened.forEach(({ item, decoder }, k) => {
      const alone = decoders.open(specOf(item));
      expect(Float32Array.from(out[k])).toEqual(decodeAll(alone, packetsOf(item)));
      alone.close();
      decoder.close();
    });
  });

  it('returns samples or nothing for damaged packets, never throws, and recovers', () => {
    for (const item of cases) {
      const decoder = decoders.open(specOf(item));
      const packets = packetsOf(item);
      expect(decoder.decode(new Uint8Array(0)).length).toBe(0);
      expect(decoder.decode(new TextEncoder().encode('<html>not audio at all</html>')).length).toBe(0);
      let state = 99;
      for (let round = 0; round < 300; round++) {
        const damaged = packets[round % packets.length].slice();
        for (let hit = 0; hit < 8; hit++) {
          state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
          damaged[(state >> 8) % damaged.length] ^= 1 << (state & 7);
        }
        const out = decoder.decode(round % 3 === 0 ? damaged.subarray(0, damaged.length >> 1) : damaged);
        expect(out.length).toBeLessThan(70000);
        expect(out.every((sample) => Math.abs(sample) <= 1)).toBe(true);
      }
      // The damage affects at most ten frames.
      const out = decodeAll(decoder, packets);
      const expected = expectedOf(item);
      const settled = item.codec === 'mp3' ? 10 * (item.sampleRateHz < 32000 ? 576 : 1152) : 0;
      expect(out.length).toBe(expected.length);
      for (let i = settled; i < out.length; i += 17) expect(Math.abs(out[i] - expected[i])).toBeLessThan(2e-6);
      decoder.close();
    }
  });

  it('decodes FLAC with damaged or missing private data', () => {
    const item = cases.find(({ file }) => file === 'codec_flac_16_stereo.flac')!;
    for (const extraData of [undefined, new Uint8Array(5), new Uint8Array(34).fill(255)]) {
      const decoder = decoders.open({ ...specOf(item), extraData });
      expect(decodeAll(decoder, packetsOf(item))).toEqual(expectedOf(item));
      decoder.close();
    }
  });

  it('returns nothing after close or for an oversized packet', () => {
    const item = cases[0];
    const decoder = decoders.open(specOf(item));
    expect(decoder.decode(new Uint8Array(5 << 20)).length).toBe(0);
    decoder.close();
    expect(decoder.decode(packetsOf(item)[0]).length).toBe(0);
  });

  it('does not grow its memory over many recordings', () => {
    const open = () => {
      for (const item of cases) {
        const decoder = decoders.open(specOf(item));
        decodeAll(decoder, packetsOf(item));
        decoder.close();
      }
    };
    open();
    const before = decoders.memoryBytes();
    for (let i = 0; i < 30; i++) open();
    expect(decoders.memoryBytes()).toBe(before);
  });

  it('replaces an instance that trapped and continues in a new one', () => {
    const decoders = createDecoders(trappingModule());
    const spec: CodecSpec = { codec: 'mp3', sampleRateHz: 8000, channels: 1 };
    const first = decoders.open(spec);
    const second = decoders.open(spec);
    // Each decode returns the number of decodes of its instance; a packet that starts with 0 traps.
    expect([...first.decode(new Uint8Array([1]))]).toEqual([1]);
    expect([...second.decode(new Uint8Array([1]))]).toEqual([2]);
    expect([...first.decode(new Uint8Array([0]))]).toEqual([]);
    expect([...first.decode(new Uint8Array([1]))]).toEqual([1]);
    expect([...second.decode(new Uint8Array([1]))]).toEqual([2]);
  });

  it('replaces an instance that traps when a decoder is opened', () => {
    const decoders = createDecoders(trappingModule());
    const spec: CodecSpec = { codec: 'mp3', sampleRateHz: 8000, channels: 1 };
    const first = decoders.open(spec);
    const second = decoders.open(spec);
    expect([...first.decode(new Uint8Array([0]))]).toEqual([]);
    // After a packet that starts with 7 the next open traps: here that of the second decoder, in a new instance.
    expect([...first.decode(new Uint8Array([7]))]).toEqual([1]);
    expect([...second.decode(new Uint8Array([1]))]).toEqual([]);
    expect([...second.decode(new Uint8Array([7]))]).toEqual([1]);
    expect(() => decoders.open(spec)).toThrow(/not in this build/);
    expect([...first.decode(new Uint8Array([1]))]).toEqual([1]);
  });
});

/**
 * A module with the exports of codecs.wasm that traps on certain packets, assembled byte by byte, because no real
 * packets are known to trap.
 */
function trappingModule(): WebAssembly.Module {
  const I32 = 0x7f;
  const section = (id: number, body: number[]) => [id, body.length, ...body];
  const list = (items: number[][]) => [items.length, ...items.flat()];
  const constant = (value: number) => [0x41, (value & 0x7f) | 0x80, value >> 7];
  const bodies: readonly (readonly [name: string, parameters: number, results: number, code: number[]])[] = [
    ['_initialize', 0, 0, []],
    ['rc_alloc', 1, 1, constant(1024)],
    ['rc_free', 1, 0, []],
    // If the first byte of the previous packet is 7: unreachable.
    ['rc_open', 7, 1, [...constant(2048), 0x2d, 0, 0, ...constant(7), 0x46, 0x04, 0x40, 0x00, 0x0b, ...constant(1)]],
    ['rc_input', 2, 1, constant(2048)],
    [
      'rc_decode',
      2,
      1,
      [
        ...[...constant(2048), 0x2d, 0, 0, 0x45, 0x04, 0x40, 0x00, 0x0b], // if the packet's first byte is 0: unreachable
        ...[0x23, 0, ...constant(1), 0x6a, 0x24, 0], // decodes += 1
        ...[...constant(4096), 0x23, 0, 0xb2, 0x38, 2, 0], // store it as the one sample
        ...constant(1),
      ],
    ],
    ['rc_output', 1, 1, constant(4096)],
    ['rc_rate', 1, 1, constant(8000)],
    ['rc_close', 1, 0, []],
  ];
  const named = (name: string, kind: number, index: number) => [name.length, ...Buffer.from(name), kind, index];
  return new WebAssembly.Module(
    Uint8Array.from([
      ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
      ...section(
        1,
        list(
          bodies.map(([, parameters, results]) => [
            0x60,
            parameters,
            ...Array(parameters).fill(I32),
            results,
            ...Array(results).fill(I32),
          ]),
        ),
      ),
      ...section(3, list(bodies.map((_, i) => [i]))),
      ...section(5, list([[0, 1]])),
      ...section(6, list([[I32, 1, 0x41, 0, 0x0b]])),
      ...section(7, list([named('memory', 2, 0), ...bodies.map(([name], i) => named(name, 0, i))])),
      ...section(10, list(bodies.map(([, , , code]) => [code.length + 2, 0, ...code, 0x0b]))),
    ]),
  );
}
