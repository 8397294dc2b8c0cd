/** The commands below `estuary admin`. */
import { ADMIN_ROLES } from '../../../config/admin-roles.ts';
import { command, required, value, type Entry } from '../command.ts';

export const ADMIN_COMMANDS: readonly Entry[] = [
  command(
    'token new',
    'Make a bearer token, and print its line for the configuration.',
    {
      description: required('TEXT', 'who holds it; the audit log shows it'),
      roles: required('ROLES', `what its holder may do: ${ADMIN_ROLES.join(', ')}, with commas between several`),
      days: value('N', 'how long it is good for (default: for ever)'),
      out: value('FILE', 'write the token to FILE, which nobody else may read, instead of the terminal'),
    },
    () => import('./token-new.ts'),
    {
      about:
        'Makes a bearer token of the admin API. The configuration has its SHA-256 alone, so nobody can tell it again.',
    },
  ),
];
