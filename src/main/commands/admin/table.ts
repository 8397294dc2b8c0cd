/** The `estuary admin` commands. */
import { createHash, randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { ADMIN_ROLES, type AdminRole } from '../../../config/vocabulary.ts';
import {
  command,
  type CommandContext,
  type Entry,
  EXIT,
  required,
  UsageError,
  value,
  type Values,
} from '../command.ts';
import { CERTIFICATE_COMMANDS } from './certificates.ts';
import { DEVICE_COMMANDS } from './devices.ts';
import { FLEET_COMMANDS } from './fleet.ts';
import { OTP_COMMANDS } from './otp.ts';
import { OVERVIEW_COMMANDS } from './overview.ts';
import { RENEWAL_COMMANDS } from './renewals.ts';
import { REQUEST_COMMANDS } from './requests.ts';
import { SERVICE_COMMANDS } from './service.ts';

const TOKEN_BYTES = 32;
const DAY = 86_400_000;
const MAX_DAYS = 3650;

const TOKEN_NEW = {
  description: required('TEXT', 'the holder, as shown in the audit log'),
  roles: required('ROLES', `roles, separated by commas: ${ADMIN_ROLES.join(', ')}`),
  days: value('N', 'validity (default: no expiry)'),
  out: value('FILE', 'write the token to FILE, readable only by you, instead of the terminal'),
};

/** @throws UsageError; Error if the file exists or cannot be written */
export async function newToken(options: Values<typeof TOKEN_NEW>, context: CommandContext): Promise<number> {
  const { description, out } = options;
  if (!/^[^\p{Cc}]{1,200}$/u.test(description)) throw new UsageError('--description must have 1 to 200 characters');
  const roles = readRoles(options.roles);
  const notAfter = readEnd(options.days, context.now());
  const token = randomBytes(TOKEN_BYTES).toString('base64url');
  if (out === undefined) context.out(`The token (it is shown only once):\n\n${token}\n\n`);
  else {
    await writeFile(out, token, { flag: 'wx', mode: 0o600 });
    context.out(`Wrote the token to ${out}\n\n`);
  }
  const hash = createHash('sha256').update(token).digest('hex');
  const entry = [
    `token_hash = "sha256:${hash}"`,
    `description = ${JSON.stringify(description)}`,
    `roles = [${roles.map((role) => `"${role}"`).join(', ')}]`,
    ...(notAfter === undefined ? [] : [`not_after = "${notAfter}"`]),
  ];
  context.out(`Add this to the list \`tokens\` of [admin.bearer_token], with enabled = true, and send SIGHUP:\n\n`);
  context.out(`  { ${entry.join(', ')} },\n`);
  return EXIT.ok;
}

function readRoles(text: string): AdminRole[] {
  const words = [...new Set(text.split(',').map((word) => word.trim()))];
  const known = ADMIN_ROLES.filter((role) => words.includes(role));
  const unknown = words.find((word) => !ADMIN_ROLES.some((role) => role === word));
  if (unknown !== undefined)
    throw new UsageError(`--roles: "${unknown}" is unknown. Allowed: ${ADMIN_ROLES.join(', ')}`);
  return known;
}

function readEnd(days: string | undefined, now: number): string | undefined {
  if (days === undefined) return undefined;
  const count = Number(days);
  if (!Number.isInteger(count) || count < 1 || count > MAX_DAYS)
    throw new UsageError(`--days must be a whole number from 1 to ${MAX_DAYS}`);
  return `${new Date(now + count * DAY).toISOString().slice(0, 19)}Z`;
}

export const ADMIN_COMMANDS: readonly Entry[] = [
  ...OTP_COMMANDS,
  ...REQUEST_COMMANDS,
  ...FLEET_COMMANDS,
  ...RENEWAL_COMMANDS,
  ...CERTIFICATE_COMMANDS,
  ...DEVICE_COMMANDS,
  ...OVERVIEW_COMMANDS,
  ...SERVICE_COMMANDS,
  command('token new', 'Create a bearer token, and print its entry for the configuration.', {
    options: TOKEN_NEW,
    load: () => Promise.resolve(newToken),
    about:
      'Creates a bearer token for the admin API. The configuration contains only its SHA-256, so the token cannot be recovered.',
  }),
];
