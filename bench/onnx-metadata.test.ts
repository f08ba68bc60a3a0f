import { expect, it } from 'vitest';
import { segmentationFile } from '../src/platform/onnx/manifest.ts';
import { readOnnxMetadata } from '../src/platform/onnx/metadata.ts';
import { withOnnxMetadata } from './onnx-metadata.ts';
import { packOfService, readModel } from './packs.ts';

it('adds entries that a reader of ONNX metadata finds beside the old ones', () => {
  const model = readModel(segmentationFile(packOfService().pack.segmentation));
  const before = readOnnxMetadata(model);
  const long = 'x'.repeat(300);
  const after = readOnnxMetadata(withOnnxMetadata(model, { window_size: '160000', long }));
  expect(before.size).toBeGreaterThan(0);
  expect(after.get('window_size')).toBe('160000');
  expect(after.get('long')).toBe(long);
  for (const [key, value] of before) expect(after.get(key)).toBe(value);
});
