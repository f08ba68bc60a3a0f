import { Argument, Command } from 'commander';
import { COMMANDS } from './commands.ts';
import { print } from './print.ts';

const SHELLS = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof SHELLS)[number];

interface Word {
  readonly word: string;
  readonly description: string;
}

/** A command with the words that may follow it. */
interface Completion extends Word {
  readonly children: readonly Word[];
  readonly options: readonly Word[];
}

async function complete(shell: Shell): Promise<void> {
  const completions: Completion[] = [];
  for (const { name, description, load } of COMMANDS.filter(({ hidden }) => !hidden)) {
    const command = await load();
    const all = [command, ...command.commands];
    const options = new Map(all.flatMap(optionsOf).map((option) => [option.word, option]));
    const children = command.commands.map((child) => ({ word: child.name(), description: child.description() }));
    completions.push({ word: name, description, children, options: [...options.values()] });
  }
  await print({ bash: bashScript, zsh: zshScript, fish: fishScript }[shell](completions));
}

function optionsOf(command: Command): Word[] {
  const help = { word: '--help', description: 'show the help' };
  return [...command.options.map(({ long, description }) => ({ word: long ?? '', description })), help];
}

const namesOf = (words: readonly Word[]): string => words.map(({ word }) => word).join(' ');
const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** Completes file names if no word matches. */
function bashScript(completions: readonly Completion[]): string {
  const cases = completions.map(
    ({ word, children, options }) =>
      `    ${word}) [[ $COMP_CWORD -eq 2 ]] && names='${namesOf(children)}'; options='${namesOf(options)}' ;;`,
  );
  return `_rollcall() {
  local current=\${COMP_WORDS[COMP_CWORD]} names= options=
  case \${COMP_WORDS[1]} in
${cases.join('\n')}
  esac
  [[ $COMP_CWORD -eq 1 ]] && names='${namesOf(completions)}'
  [[ $current == -* ]] && names=$options
  COMPREPLY=($(compgen -W "$names" -- "$current"))
}
complete -o default -F _rollcall rollcall
`;
}

function zshScript(completions: readonly Completion[]): string {
  const list = (words: readonly Word[]): string =>
    words.map(({ word, description }) => quote(`${word}:${description.replaceAll(':', '\\:')}`)).join(' ');
  const cases = completions.map(
    ({ word, children, options }) => `    ${word}) names=(${list(children)}); options=(${list(options)}) ;;`,
  );
  return `#compdef rollcall
_rollcall() {
  local -a names options
  case $words[2] in
${cases.join('\n')}
  esac
  if (( CURRENT == 2 )); then names=(${list(completions)}); _describe command names; return; fi
  if [[ $words[CURRENT] == -* ]]; then _describe -o option options; return; fi
  if (( CURRENT == 3 && $#names )); then _describe command names; return; fi
  _files
}
compdef _rollcall rollcall
`;
}

function fishScript(completions: readonly Completion[]): string {
  const after = (command: string, words: string, { description }: Word): string =>
    `complete -c rollcall -n '__fish_seen_subcommand_from ${command}' ${words} -d ${quote(description)}`;
  const lines = completions.flatMap(({ word, description, children, options }) => [
    `complete -c rollcall -n __fish_use_subcommand -f -a ${word} -d ${quote(description)}`,
    ...children.map((child) => after(word, `-a ${child.word}`, child)),
    ...options.map((option) => after(word, `-l ${option.word.slice(2)}`, option)),
  ]);
  return `${lines.join('\n')}\n`;
}

export const command = new Command('completion')
  .description('Prints a completion script for a shell: source <(rollcall completion bash)')
  .addArgument(new Argument('<shell>').choices(SHELLS))
  .action(complete);
