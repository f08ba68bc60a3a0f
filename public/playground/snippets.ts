/** The diarize request that the form describes. */
export interface ApiCall {
  readonly origin: string;
  readonly url: string;
  /** Name of a file that is uploaded first. */
  readonly file?: string;
  readonly options: Readonly<Record<string, unknown>>;
}

export const SNIPPET_LANGUAGES = { curl: 'curl', typescript: 'TypeScript', python: 'Python' } as const;
export type SnippetLanguage = keyof typeof SNIPPET_LANGUAGES;

/** Writes code for the call. The code reads the key from the environment, so that copied code does not contain it. */
export function snippet(language: SnippetLanguage, call: ApiCall): string {
  switch (language) {
    case 'curl':
      return curl(call);
    case 'typescript':
      return typescript(call);
    case 'python':
      return python(call);
  }
}

const MEDIA = 'media://recording';
const shell = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

function curl({ origin, url, file, options }: ApiCall): string {
  const head = '-H "Authorization: Bearer $ROLLCALL_KEY"';
  const upload =
    file === undefined
      ? []
      : [
          '# Upload the file',
          `UPLOAD=$(curl -s ${origin}/v1/media/input ${head} \\`,
          `  -H 'Content-Type: application/json' -d '{"url":"${MEDIA}"}' | sed 's/.*"url":"\\([^"]*\\)".*/\\1/')`,
          `curl -T ${shell(file)} "$UPLOAD"`,
          '',
        ];
  const body = JSON.stringify({ url: file === undefined ? url : MEDIA, ...options });
  return [
    ...upload,
    '# Start the job; the answer has its id',
    `curl ${origin}/v1/diarize ${head} \\`,
    `  -H 'Content-Type: application/json' \\`,
    `  -d ${shell(body)}`,
    '',
    '# Read its result',
    `curl ${origin}/v1/jobs/JOB_ID ${head}`,
  ].join('\n');
}

function typescript({ origin, url, file, options }: ApiCall): string {
  const upload =
    file === undefined
      ? []
      : [
          `const { url: upload } = await call('/v1/media/input', { url: '${MEDIA}' });`,
          `await fetch(upload, { method: 'PUT', body: await readFile(${JSON.stringify(file)}) });`,
        ];
  const body = JSON.stringify({ url: file === undefined ? url : MEDIA, ...options }, null, 2);
  return [
    ...(file === undefined ? [] : ["import { readFile } from 'node:fs/promises';", '']),
    'const headers = {',
    `  Authorization: \`Bearer \${process.env.ROLLCALL_KEY}\`,`,
    "  'Content-Type': 'application/json',",
    '};',
    'async function call(path: string, body?: object) {',
    "  const init = body && { method: 'POST', body: JSON.stringify(body) };",
    `  const response = await fetch(\`${origin}\${path}\`, { headers, ...init });`,
    '  if (!response.ok) throw new Error(await response.text());',
    '  return response.json();',
    '}',
    '',
    ...upload,
    `const { jobId } = await call('/v1/diarize', ${body});`,
    'let job: any;',
    'do {',
    '  await new Promise((done) => setTimeout(done, 1000));',
    `  job = await call(\`/v1/jobs/\${jobId}\`);`,
    "} while (!['succeeded', 'failed', 'canceled'].includes(job.status));",
    'console.log(job.output);',
  ].join('\n');
}

function python({ origin, url, file, options }: ApiCall): string {
  const names: Record<string, string> = {
    numSpeakers: 'num_speakers',
    turnLevelConfidence: 'turn_level_confidence',
  };
  const values = Object.entries(options).map(([name, value]) => `    ${names[name] ?? name}=${pythonValue(value)},`);
  const source = file === undefined ? JSON.stringify(url) : `client.upload(${JSON.stringify(file)})`;
  return [
    '# pip install pyannoteai-sdk',
    'import os',
    'from pyannoteai.sdk import Client',
    '',
    `Client.API_URL = "${origin}/v1"`,
    'client = Client(os.environ["ROLLCALL_KEY"])',
    `job_id = client.diarize(`,
    `    ${source},`,
    ...values,
    ')',
    'print(client.retrieve(job_id)["output"])',
  ].join('\n');
}

function pythonValue(value: unknown): string {
  if (value === true) return 'True';
  if (value === false) return 'False';
  return JSON.stringify(value);
}
