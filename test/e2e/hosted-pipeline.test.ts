import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Turn } from '../../client/sdk/types.ts';
import { type ContractService, startContractService } from '../contract/service.ts';
import { conversation, root } from '../helpers/local-process.ts';
import { pythonWith, runPython } from '../helpers/python.ts';
import { errorRate } from '../helpers/score.ts';
import { conversationTurns } from '../helpers/voices.ts';

/** Opt-in: the package imports torch, which makes it 6 GB, though its hosted pipeline does not use it. */
const isEnabled = process.env.ROLLCALL_E2E_PYANNOTE_AUDIO === '1';
if (!isEnabled)
  console.warn('Skipped: pyannote.audio is 6 GB with its dependencies; ROLLCALL_E2E_PYANNOTE_AUDIO=1 installs it.');
const packages = ['pyannote.audio==4.0.7', 'torch==2.11.0', 'torchaudio==2.11.0', 'torchcodec==0.11.0'];
const bin = isEnabled ? pythonWith(packages) : undefined;

/** The config of pyannote/speaker-diarization-precision-2 on the model hub: it names the class that calls the API. */
const CONFIG = `pipeline:
  name: pyannote.audio.pipelines.pyannoteai.sdk.SDK
  params:
    model: precision-2
`;

describe.skipIf(bin === undefined)(
  'the hosted pipeline of pyannote.audio 4, unchanged, with another base address',
  () => {
    let service: ContractService;
    let folder: string;
    beforeAll(async () => {
      service = await startContractService();
      folder = mkdtempSync(join(tmpdir(), 'rollcall-hosted-'));
      writeFileSync(join(folder, 'config.yaml'), CONFIG);
    });
    afterAll(async () => {
      await service?.stop();
      rmSync(folder, { recursive: true, force: true });
    });

    it('returns diarization and exclusive diarization', async () => {
      const env = { ROLLCALL_URL: service.url, ROLLCALL_KEY: service.main.token };
      const script = join(root, 'test/e2e/clients/hosted_pipeline.py');
      const { code, stdout, stderr } = await runPython(join(bin ?? '', 'python'), [script, folder, conversation], {
        env,
      });
      expect(code, stderr).toBe(0);
      const output = JSON.parse(stdout) as { diarization: Turn[]; exclusiveDiarization: Turn[] };
      expect(errorRate(conversationTurns(), output.diarization)).toBeLessThan(0.15);
      const exclusive = [...output.exclusiveDiarization].sort((a, b) => a.start - b.start);
      expect(exclusive.length).toBeGreaterThan(2);
      for (const [i, turn] of exclusive.slice(1).entries()) expect(turn.start).toBeGreaterThanOrEqual(exclusive[i].end);
    });
  },
);
