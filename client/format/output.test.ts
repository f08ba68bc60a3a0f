import { describe, expect, it } from 'vitest';
import type { DiarizeOutput } from '../sdk/types.ts';
import { formatOutput } from './output.ts';

const output: DiarizeOutput = {
  diarization: [
    { speaker: 'SPEAKER_00', start: 0.5, end: 3.38 },
    { speaker: 'SPEAKER_01', start: 3.1, end: 3725.9996 },
  ],
};

describe('formatOutput', () => {
  it('writes text with a line for each turn', () => {
    expect(formatOutput(output, 'text', 'x')).toBe('0.500  3.380  SPEAKER_00\n3.100  3726.000  SPEAKER_01\n');
  });

  it('writes RTTM with start and duration', () => {
    expect(formatOutput(output, 'rttm', 'talk')).toBe(
      'SPEAKER talk 1 0.500 2.880 <NA> <NA> SPEAKER_00 <NA> <NA>\n' +
        'SPEAKER talk 1 3.100 3722.900 <NA> <NA> SPEAKER_01 <NA> <NA>\n',
    );
  });

  it('rounds RTTM durations so that start and duration add up to the end', () => {
    // 0.57 - 0.29 is 0.27999999999999997 in doubles, 1.1 - 0.3 is 0.8000000000000002.
    const turns = [
      { speaker: 'A', start: 0.29, end: 0.57 },
      { speaker: 'A', start: 0.3, end: 1.1 },
    ];
    const columns = formatOutput({ diarization: turns }, 'rttm', 'x')
      .split('\n')
      .map((line) => line.split(' ')[4]);
    expect(columns.slice(0, 2)).toEqual(['0.280', '0.800']);
  });

  it('writes numbered SubRip cues with hours and milliseconds', () => {
    expect(formatOutput(output, 'srt', 'x')).toBe(
      '1\n00:00:00,500 --> 00:00:03,380\n[SPEAKER_00]\n\n2\n00:00:03,100 --> 01:02:06,000\n[SPEAKER_01]\n',
    );
  });

  it('writes WebVTT with voice spans and escaped markup', () => {
    const named = { diarization: [{ speaker: 'A<b>&', start: 0, end: 1 }] };
    expect(formatOutput(named, 'vtt', 'x')).toBe(
      'WEBVTT\n\n00:00:00.000 --> 00:00:01.000\n<v A&lt;b&gt;&amp;>A&lt;b&gt;&amp;</v>\n',
    );
  });

  it('writes CSV with a header and quotes names with commas', () => {
    const named = { diarization: [{ speaker: 'Smith, "Al"', start: 0, end: 1 }] };
    expect(formatOutput(named, 'csv', 'x')).toBe('start,end,speaker\n0.000,1.000,"Smith, ""Al"""\n');
  });

  it('writes exclusive turns with the names of identified people', () => {
    const identified = {
      ...output,
      exclusiveDiarization: [
        { speaker: 'SPEAKER_00', start: 0.5, end: 3.1 },
        { speaker: 'SPEAKER_01', start: 3.1, end: 4 },
      ],
      identification: [{ speaker: 'Ann', start: 0.5, end: 3.38 }],
      voiceprints: [
        { speaker: 'SPEAKER_00', match: 'Ann', confidence: { Ann: 90 } },
        { speaker: 'SPEAKER_01', match: null, confidence: { Ann: 2 } },
      ],
    };
    expect(formatOutput(identified, 'text', 'x')).toBe('0.500  3.100  Ann\n3.100  4.000  SPEAKER_01\n');
  });

  it('writes exclusive turns and the text of a transcription if the output has them', () => {
    const exclusive = { ...output, exclusiveDiarization: [{ speaker: 'SPEAKER_00', start: 0.5, end: 3.1 }] };
    expect(formatOutput(exclusive, 'text', 'x')).toBe('0.500  3.100  SPEAKER_00\n');
    const spoken = {
      ...exclusive,
      turnLevelTranscription: [{ speaker: 'SPEAKER_00', start: 1, end: 2, text: 'Well,\n\nyes.' }],
    };
    expect(formatOutput(spoken, 'text', 'x')).toBe('1.000  2.000  SPEAKER_00  Well, yes.\n');
    expect(formatOutput(spoken, 'srt', 'x')).toContain('\n[SPEAKER_00] Well, yes.\n');
    expect(formatOutput(spoken, 'csv', 'x')).toContain('start,end,speaker,text\n');
    expect(formatOutput(spoken, 'rttm', 'x')).toContain('SPEAKER x 1 0.500');
  });

  it('writes JSON that equals the output, with a line for each turn', () => {
    const full = {
      ...output,
      confidence: { score: [93, 94], resolution: 0.02 },
      exclusiveDiarization: [],
      warning: 'short',
    };
    const text = formatOutput(full, 'json', 'x');
    expect(JSON.parse(text)).toEqual(full);
    expect(text.split('\n').filter((line) => line.includes('"speaker"'))).toHaveLength(2);
    expect(text).toContain('"exclusiveDiarization": []');
  });
});
