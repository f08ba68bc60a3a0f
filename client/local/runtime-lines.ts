/**
 * Lines that are not worth a line in the log: a connection that its other end closed while the runtime served it, and the addresses in the
 * runtime's own code that follow any complaint. A lost connection anywhere else, as in the broker of a queue, and an end that could not be reached
 * are faults.
 */
const NO_NEWS = [
  /^workerd\/server\/server\.c\+\+:\d+: error: Uncaught exception: .*\bdisconnected: (?!connect\(\))/,
  /^stack: /,
];

/**
 * Makes whole lines of what the runtime writes, each a JSON object: the Worker's own as they are, the runtime's as a message. Connections that their other end
 * has closed are no news to anybody.
 *
 * @param write takes one line with its end
 * @returns takes what one of the runtime's outputs has written, in pieces
 */
export function runtimeLines(write: (line: string) => void): (text: string) => void {
  let rest = '';
  return (text) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      if (line.trim() === '' || NO_NEWS.some((pattern) => pattern.test(line))) continue;
      write(`${isObject(line) ? line : JSON.stringify({ level: 'warn', event: 'runtime', message: line })}\n`);
    }
  };
}

function isObject(line: string): boolean {
  if (!line.startsWith('{')) return false;
  try {
    JSON.parse(line);
    return true;
  } catch {
    return false;
  }
}
