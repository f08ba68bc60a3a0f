import { createInterface } from 'node:readline/promises';

/** Asks the user. @returns the answer, trimmed */
export type Ask = (question: string) => Promise<string>;

/** @throws if stdin is no terminal */
export const askAtTerminal: Ask = async (question) => {
  if (!process.stdin.isTTY) throw new Error(`There is no terminal for the question: ${question.trim()}`);
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return (await terminal.question(question)).trim();
  } finally {
    terminal.close();
  }
};

/** @throws unless the answer is yes */
export async function mustAgree(ask: Ask, question: string): Promise<void> {
  const answer = await ask(`${question} [y/N] `);
  if (!/^y(es)?$/i.test(answer)) throw new Error('Canceled; nothing was changed.');
}
