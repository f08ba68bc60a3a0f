/** Comments, strings and quoted names, which are skipped; words that open or close a block; the end of a statement. */
const TOKEN = /--[^\n]*|\/\*[\s\S]*?\*\/|'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*\]|\b(?:BEGIN|CASE|END)\b|;/gi;

/**
 * Splits a migration into its statements; drops text that is only comments. wrangler's splitter does the same, but its
 * library takes two seconds to load on the first start with a state folder.
 */
export function splitSql(text: string): string[] {
  const statements: string[] = [];
  let from = 0;
  let depth = 0;
  const add = (to: number): void => {
    const statement = text.slice(from, to).trim();
    if (statement.replace(/--[^\n]*|\/\*[\s\S]*?\*\//g, '').trim() !== '') statements.push(statement);
    from = to + 1;
  };
  for (const { 0: token, index } of text.matchAll(TOKEN)) {
    const word = token.toUpperCase();
    if (word === 'BEGIN' || word === 'CASE') depth++;
    else if (word === 'END') depth--;
    else if (word === ';' && depth === 0) add(index);
  }
  add(text.length);
  return statements;
}
