/** The blocks of commands in the documents: ```sh is commands, ```console is commands after `$ ` with what they print. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './root.ts';

export interface DocumentedCommand {
  readonly text: string;
  /** What the page shows as printed; empty if it shows nothing. */
  readonly output: string;
}

export interface DocumentedBlock {
  /** Relative to the repository. */
  readonly page: string;
  /** The nearest heading of the second level before it. */
  readonly heading: string;
  readonly commands: readonly DocumentedCommand[];
}

const PAGES = globSync(['*.md', 'docs/**/*.md', 'examples/**/*.md'], { cwd: ROOT }).sort();

export const documentedBlocks = (): DocumentedBlock[] => PAGES.flatMap(blocksOf);

function blocksOf(page: string): DocumentedBlock[] {
  const text = readFileSync(join(ROOT, page), 'utf8');
  return [...text.matchAll(/^( *)```(sh|console)\n([^]*?)^\1```$/gm)].map(
    ({ 1: indentation = '', 2: language, 3: body = '', index }) => {
      const lines = body.replaceAll(new RegExp(`^${indentation}`, 'gm'), '');
      return {
        page,
        heading: /(?:^|\n)## ([^\n]*)(?![^]*\n## )/.exec(text.slice(0, index))?.[1] ?? '',
        commands: language === 'sh' ? [{ text: lines, output: '' }] : commandsOf(lines),
      };
    },
  );
}

/** A command continues on the next line after a backslash, a pipe, or in an open quotation. */
function commandsOf(lines: string): DocumentedCommand[] {
  const commands: { text: string; output: string }[] = [];
  let isOpen = false;
  for (const line of lines.split('\n')) {
    const command = commands.at(-1);
    if (line.startsWith('$ ')) commands.push({ text: `${line.slice(2)}\n`, output: '' });
    else if (command !== undefined && isOpen) command.text += `${line}\n`;
    else if (command !== undefined) command.output += `${line}\n`;
    isOpen = (line.startsWith('$ ') || isOpen) && /[\\|]\s*$/.test(line);
  }
  return commands.map(({ text, output }) => ({ text, output: output.trim() }));
}
