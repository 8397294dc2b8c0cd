/** Every call of the admin API has a command, with an option for whatever the call takes. */
import { describe, expect, test } from 'vitest';
import type { Command } from '../../../../src/main/commands/command.ts';
import { ADMIN_COMMANDS } from '../../../../src/main/commands/admin/table.ts';
import { CONNECTION } from '../../../../src/main/commands/admin/connection.ts';
import { ADMIN_ROLES } from '../../../../src/config/vocabulary.ts';
import { adminFixture } from '../../../http/admin/support.ts';

interface Schema {
  readonly properties?: Readonly<Record<string, unknown>>;
}

interface Operation {
  readonly 'x-roles'?: readonly string[];
  readonly parameters?: readonly { readonly name: string; readonly in: string }[];
  readonly requestBody?: { readonly content?: Readonly<Record<string, { readonly schema?: Schema }>> };
}

/** For the console: signing in with a cookie instead of a token, and what its pages need to know of the server. */
const OF_BROWSERS = [
  'GET /admin/service',
  'POST /admin/session',
  'DELETE /admin/session',
  'GET /auth/oidc/login',
  'GET /auth/oidc/callback',
];

/** The options that have another name than what the call calls it. */
const NAMES: Readonly<Record<string, string>> = {
  ca: 'ca-label',
  pem: 'file',
  filter: 'subject',
  as: 'client-id',
  match: 'issuer-file',
  attributes: 'attribute',
  mode: 'upsert',
  interval: 'by',
};
/** `enable` and `disable` are commands of their own; `device_key` and `total` are for the console. */
const ELSEWHERE = ['enabled', 'device_key', 'total'];

const commands = ADMIN_COMMANDS.filter((entry): entry is Command => entry.kind === 'command');

async function operations(): Promise<[string, Operation][]> {
  const { call } = await adminFixture();
  const { paths } = (await call('GET', '/admin/openapi.json')).json() as {
    paths: Record<string, Record<string, Operation>>;
  };
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, one]): [string, Operation] => [`${method.toUpperCase()} ${path}`, one]),
  );
}

describe('the table of commands', () => {
  test('has a command for every call of the OpenAPI description, and none for a call that there is not', async () => {
    const calls = (await operations()).map(([call]) => call).filter((call) => !OF_BROWSERS.includes(call));
    const made = new Set(commands.flatMap((command) => command.calls));
    expect([...made].toSorted()).toEqual(calls.toSorted());
  });

  test('names the roles that the description names', async () => {
    const rolesOf = new Map(await operations());
    for (const { name, calls, roles } of commands) {
      const [first, ...others] = calls;
      if (first === undefined) continue;
      const needed = rolesOf.get(first)?.['x-roles'] ?? [];
      const said = roles.length === 0 && needed.length === ADMIN_ROLES.length ? needed : roles;
      expect(said, name).toEqual(needed);
      for (const other of others)
        expect(rolesOf.get(other)?.['x-roles'] ?? ADMIN_ROLES, name).toEqual(expect.arrayContaining([...roles]));
    }
  });

  test('has an option for every parameter and every field of a body', async () => {
    for (const [call, { parameters = [], requestBody }] of await operations()) {
      const options = new Set(
        commands.flatMap((command) => (command.calls[0] === call ? Object.keys(command.options) : [])),
      );
      if (options.size === 0) continue;
      const query = parameters.filter((parameter) => parameter.in === 'query').map(({ name }) => name);
      const fields = Object.keys(requestBody?.content?.['application/json']?.schema?.properties ?? {});
      for (const name of [...query, ...fields].filter((option) => !ELSEWHERE.includes(option))) {
        // A device is chosen with --at, and --ca-label changes its label.
        const other = name === 'ca' && call.includes('/devices/{id}') ? 'at' : NAMES[name];
        expect([...options], `${call}: ${name}`).toContain(other ?? name.replaceAll('_', '-'));
      }
    }
  });

  test('the help of a list says what its table begins with', () => {
    const orders = commands.flatMap(({ name, options }) => (options['order'] ? [[name, options['order'].about]] : []));
    expect(Object.fromEntries(orders)).toMatchObject({
      'fleet list': 'asc (next expiry first, the default of tables) or desc',
      'ca list': 'asc (the default of tables) or desc',
      'cert list': 'asc (oldest first) or desc (newest first, the default of tables)',
    });
  });

  test('no option hides one of the connection, and each takes a value everywhere or nowhere', () => {
    const kinds = new Map<string, string>();
    for (const { name, calls, options } of commands)
      for (const [option, { kind, about }] of Object.entries(options)) {
        const own = Object.entries(CONNECTION).find(([one]) => one === option)?.[1];
        if (own !== undefined && calls.length > 0) expect(about, `${name} ${option}`).toBe(own.about);
        if (kind === 'argument') continue;
        const takes = kind === 'flag' ? 'none' : 'a value';
        expect(kinds.get(option) ?? takes, `${name} ${option}`).toBe(takes);
        kinds.set(option, takes);
      }
  });
});
