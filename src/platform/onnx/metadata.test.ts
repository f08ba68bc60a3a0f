import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { readOnnxMetadata } from './metadata.ts';

const model = (name: string) => readFileSync(new URL(`../../../models/${name}`, import.meta.url));

describe('readOnnxMetadata', () => {
  it('reads what exporters wrote', () => {
    const segmentation = readOnnxMetadata(model('segmentation-v8.onnx'));
    expect(segmentation.get('receptive_field_shift')).toBe('320');
    expect(segmentation.get('classes')).toBe('none,1,2,3,1+2,1+3,2+3');
    expect(readOnnxMetadata(model('embedder-v5-trunk.int8.onnx')).get('output_dim')).toBe('192');
    expect(readOnnxMetadata(model('segmentation-v8.int8.onnx'))).toEqual(segmentation);
    const { window_size, ...shared } = Object.fromEntries(segmentation);
    expect(window_size).toBe('160000');
    expect(Object.fromEntries(readOnnxMetadata(model('segmentation-v8-network.int8.onnx')))).toEqual(shared);
    expect(readOnnxMetadata(model('embedder-v5-head.onnx')).size).toBe(0);
  });

  it('refuses what is no protobuf', () => {
    expect(() => readOnnxMetadata(new TextEncoder().encode('<!doctype html>'))).toThrow(/not an ONNX model/);
    const bytes = model('embedder-v5-head.onnx');
    expect(() => readOnnxMetadata(bytes.subarray(0, bytes.length - 100))).toThrow(/not an ONNX model/);
  });
});
