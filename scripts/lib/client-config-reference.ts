/** Renders docs/reference/client-configuration.md from the schema of client.toml. */
import { CLIENT_SCHEMA } from '../../src/client/config/schema.ts';
import type { Key } from '../../src/client/config/words.ts';

export function clientConfigReference(): string {
  const parts = [
    '# client.toml, key by key',
    'Made by `npm run docs:config` from `src/client/config/schema.ts`; [client.md](../guides/client.md) says how to use it. Paths are relative to the file. An unknown key is an error, which names the nearest known key.',
    ...section('', CLIENT_SCHEMA),
  ];
  return `${parts.join('\n\n')}\n`;
}

function section(name: string, { keys = {}, description, isList }: Key<unknown>): string[] {
  const own = Object.entries(keys).filter(([, key]) => key.keys === undefined);
  const tables = Object.entries(keys).filter(([, key]) => key.keys !== undefined);
  const title = name === '' ? 'At the top' : `\`${isList ? `[[${name}]]` : `[${name}]`}\``;
  return [
    `## ${title}`,
    description,
    ['| key | value | default | |', '| --- | --- | --- | --- |', ...own.map(([key, value]) => row(key, value))].join(
      '\n',
    ),
    ...tables.flatMap(([key, value]) => section(name === '' ? key : `${name}.${key}`, value)),
  ];
}

const cell = (text: string): string => text.replaceAll('|', '\\|');

function row(name: string, { allowed, defaultText, description }: Key<unknown>): string {
  return `| \`${name}\` | ${cell(allowed)} | ${cell(defaultText ?? 'required')} | ${cell(description)} |`;
}
