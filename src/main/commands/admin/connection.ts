/** Server and credentials of a command, from options, environment or profile. */
import { readFile, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { nearest } from '../../../config/nearest.ts';
import { codeOf, describe } from '../../../errors.ts';
import { pemText } from '../../../pki/der/pem.ts';
import { type CommandContext, UsageError, value, type Values, withOption } from '../command.ts';

/**
 * Options of every command. There is no option for a token, which the process list would disclose, and none that
 * disables verification.
 */
export const CONNECTION = {
  url: value('URL', 'the admin listener, such as https://est.example.com:9444 (or ESTUARY_ADMIN_URL)'),
  'token-file': value(
    'FILE',
    'the bearer token (or ESTUARY_ADMIN_TOKEN_FILE, or the token itself in ESTUARY_ADMIN_TOKEN)',
  ),
  cert: value('FILE', 'PEM: a client certificate and its intermediates (or ESTUARY_ADMIN_CERT)'),
  key: value('FILE', 'PEM: its private key (or ESTUARY_ADMIN_KEY)'),
  ca: value(
    'FILE',
    "PEM: CAs that the server's certificate must chain to (or ESTUARY_ADMIN_CA; default: the system trust store)",
  ),
  profile: value('NAME', 'profile in ~/.config/estuary/admin.toml (or ESTUARY_ADMIN_PROFILE)'),
};

export interface Connection {
  readonly origin: string;
  readonly token: string | undefined;
  /** Describes the credential; undefined without one. */
  readonly credential: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
  readonly ca: string | undefined;
  /** File names of `cert`, `key` and `ca`, for messages. */
  readonly files: Pick<Profile, 'cert' | 'key' | 'ca'>;
  readonly estUrl: string | undefined;
}

/** @throws UsageError for a missing or unreadable setting */
export async function readConnection(
  options: Values<typeof CONNECTION>,
  context: Pick<CommandContext, 'env' | 'err'>,
): Promise<Connection> {
  const { env } = context;
  const chosen = await choose(options, env);
  if (chosen.url === undefined)
    throw new UsageError('--url URL is missing. Pass it, or set ESTUARY_ADMIN_URL or a profile');
  const token = await tokenOf(chosen, context);
  if ((chosen.cert === undefined) !== (chosen.key === undefined))
    throw new UsageError(
      `--${chosen.cert === undefined ? 'cert' : 'key'} FILE is missing: --cert and --key go together`,
    );
  const [cert, key, ca] = await Promise.all([
    pem('--cert', chosen.cert, 'CERTIFICATE'),
    pem('--key', chosen.key, 'PRIVATE KEY'),
    pem('--ca', chosen.ca, 'CERTIFICATE'),
  ]);
  return {
    origin: originOf(chosen.url),
    token: token?.text,
    credential:
      [
        ...(token === undefined ? [] : [token.from]),
        ...(chosen.cert === undefined ? [] : [`the certificate in ${chosen.cert}`]),
      ].join(' and ') || undefined,
    cert,
    key,
    ca,
    files: chosen,
    estUrl: chosen.est_url,
  };
}

type Chosen = Profile & { readonly token?: string };

/**
 * Options take precedence over the environment, and that over a profile. A profile's credentials are sent only to its
 * own server: with a URL from elsewhere, only an explicitly named profile applies.
 */
async function choose(options: Values<typeof CONNECTION>, env: CommandContext['env']): Promise<Chosen> {
  const fromOptions = given({
    url: options.url,
    token_file: options['token-file'],
    cert: options.cert,
    key: options.key,
    ca: options.ca,
  });
  if (options.profile !== undefined) return { ...(await readProfile(options.profile, env)), ...fromOptions };
  const fromEnvironment = given({
    url: env['ESTUARY_ADMIN_URL'],
    token_file: env['ESTUARY_ADMIN_TOKEN_FILE'],
    token: env['ESTUARY_ADMIN_TOKEN'],
    cert: env['ESTUARY_ADMIN_CERT'],
    key: env['ESTUARY_ADMIN_KEY'],
    ca: env['ESTUARY_ADMIN_CA'],
    est_url: env['ESTUARY_EST_URL'],
  });
  const named = env['ESTUARY_ADMIN_PROFILE'];
  const isElsewhere = fromOptions.url !== undefined || fromEnvironment.url !== undefined;
  const isNamed = named !== undefined && named !== '';
  const profile = isElsewhere && !isNamed ? {} : await readProfile(isNamed ? named : undefined, env);
  const { token_file, ...others } = profile;
  const base = fromEnvironment.token === undefined && token_file !== undefined ? { ...others, token_file } : others;
  return { ...base, ...fromEnvironment, ...fromOptions };
}

const given = (texts: Readonly<Record<string, string | undefined>>): Chosen =>
  Object.fromEntries(Object.entries(texts).filter(([, text]) => text !== undefined && text !== ''));

function originOf(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== 'https:')
    throw new UsageError(`--url: "${text}" must be an https:// URL such as https://est.example.com:9444`);
  if (
    url.username !== '' ||
    url.password !== '' ||
    url.search !== '' ||
    url.hash !== '' ||
    !/^\/(?:admin\/?)?$/.test(url.pathname)
  )
    throw new UsageError('--url must have only a host and a port, such as https://est.example.com:9444');
  return url.origin;
}

async function tokenOf({ token_file: file, token }: Chosen, context: Pick<CommandContext, 'err'>) {
  if (file === undefined)
    return token === undefined
      ? undefined
      : { text: readToken('ESTUARY_ADMIN_TOKEN', token), from: 'the token in ESTUARY_ADMIN_TOKEN' };
  const text = await readInput('--token-file', file);
  const { mode } = await stat(file);
  if ((mode & 0o077) !== 0) context.err(`warning: other users can read or change ${file}. Run chmod 600.\n`);
  return { text: readToken(`--token-file: ${file}`, text), from: `the token in ${file}` };
}

function readToken(from: string, text: string): string {
  const token = text.trim();
  if (!/^[\x21-\x7e]+$/.test(token)) throw new UsageError(`${from} is not a token: a token is one line without spaces`);
  return token;
}

async function pem(option: string, file: string | undefined, label: string): Promise<string | undefined> {
  if (file === undefined) return undefined;
  const text = await readInput(option, file, 'CERTIFICATE');
  if (!text.includes('-----BEGIN ')) throw new UsageError(`${option}: ${file} is not PEM`);
  if (!text.includes(`${label}-----`)) throw new UsageError(`${option}: ${file} contains no ${label}`);
  return text;
}

/** Reads the file of an option. @param label of PEM that may also be DER. @throws UsageError */
export async function readInput(option: string, file: string, label?: string): Promise<string> {
  const content = await withOption(option, readFile(file));
  return label === undefined ? content.toString() : pemText(content, label);
}

const KEYS = ['url', 'token_file', 'cert', 'key', 'ca', 'est_url'] as const;
const FILES: readonly string[] = ['token_file', 'cert', 'key', 'ca'];

/** File names are absolute. */
type Profile = { readonly [K in (typeof KEYS)[number]]?: string };

/**
 * @param name undefined: the file's `default`, or the profile of that name, if any
 * @throws UsageError if the named profile does not exist or the file is invalid
 */
async function readProfile(name: string | undefined, env: CommandContext['env']): Promise<Profile> {
  const home = env['HOME'] ?? homedir();
  const file = join(env['XDG_CONFIG_HOME'] || join(home, '.config'), 'estuary', 'admin.toml');
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    if (!['ENOENT', 'ENOTDIR'].includes(codeOf(error)))
      throw new UsageError(`${file} cannot be read: ${describe(error)}`);
    if (name === undefined) return {};
    throw new UsageError(`there is no profile "${name}": ${file} does not exist`);
  }
  const { profiles, standard } = read(file, await parse(file, text));
  const wanted = name ?? standard;
  const found = profiles.get(wanted ?? 'default');
  if (found === undefined && wanted !== undefined)
    throw new UsageError(`${file} has no profile "${wanted}" (it has ${[...profiles.keys()].join(', ') || 'none'})`);
  return Object.fromEntries(
    Object.entries(found ?? {}).map(([key, setting]) => [
      key,
      FILES.includes(key) ? resolve(dirname(file), setting.replace(/^~(?=\/)/, home)) : setting,
    ]),
  );
}

async function parse(file: string, text: string): Promise<Readonly<Record<string, unknown>>> {
  const [{ parseToml }, { formatProblem }] = await Promise.all([
    import('../../../config/toml.ts'),
    import('../../../config/problem.ts'),
  ]);
  const parsed = parseToml(text);
  if ('problem' in parsed) throw new UsageError(formatProblem(file, parsed.problem));
  return parsed.document;
}

function read(file: string, table: Readonly<Record<string, unknown>>) {
  const { default: standard, profiles = {}, ...others } = table;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined)
    throw new UsageError(`${file}: ${unknown}: unknown key (allowed: "default" and tables [profiles.NAME])`);
  if (standard !== undefined && typeof standard !== 'string')
    throw new UsageError(`${file}: default: must be the name of a profile`);
  if (!isTable(profiles)) throw new UsageError(`${file}: profiles: must be tables [profiles.NAME]`);
  const read = Object.entries(profiles).map(([name, profile]) => [name, readOne(file, name, profile)] as const);
  return { standard, profiles: new Map(read) };
}

function readOne(file: string, name: string, table: unknown): Profile {
  if (!isTable(table)) throw new UsageError(`${file}: profiles.${name}: must be a table`);
  for (const [key, value] of Object.entries(table)) {
    if (key === 'token')
      throw new UsageError(`${file}: profiles.${name}.token: put the token into a separate file (token_file)`);
    if (!KEYS.some((known) => known === key))
      throw new UsageError(
        `${file}: profiles.${name}.${key}: unknown key (the nearest known one is "${nearest(key, KEYS) ?? ''}")`,
      );
    if (typeof value !== 'string' || value === '')
      throw new UsageError(`${file}: profiles.${name}.${key}: must be a string`);
  }
  return table;
}

const isTable = (value: unknown): value is Readonly<Record<string, string>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
