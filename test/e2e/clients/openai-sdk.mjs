// Calls one method after another of OpenAI's Node SDK, as shipped; only the base address is another. Arguments and
// output are those of openai_sdk.py; OPENAI_FOLDER says where the SDK is installed.
import { createReadStream, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const { OPENAI_FOLDER, ROLLCALL_URL, ROLLCALL_KEY } = process.env;
const { OpenAI } = createRequire(join(OPENAI_FOLDER, 'package.json'))('openai');

async function call(client, name, args) {
  if (name === 'models') return (await client.models.list()).data.map(({ id }) => id);
  const answer = await client.audio.transcriptions.create({ ...args, file: createReadStream(args.file) });
  return args.stream ? Array.fromAsync(answer) : answer;
}

const client = new OpenAI({ baseURL: `${ROLLCALL_URL}/v1`, apiKey: ROLLCALL_KEY });
const results = [];
let error;
try {
  for (const [name, args] of JSON.parse(readFileSync(process.argv[2], 'utf8')))
    results.push(await call(client, name, args));
} catch (thrown) {
  if (!(thrown instanceof OpenAI.APIError)) throw thrown;
  const { code, param, message } = thrown;
  error = { name: thrown.constructor.name, code, param, message };
}
console.log(JSON.stringify({ results, error }));
