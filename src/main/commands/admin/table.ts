/** The commands below `estuary admin`. */
import { ADMIN_ROLES } from '../../../config/vocabulary.ts';
import { command, type Entry, required, value } from '../command.ts';
import { CERTIFICATE_COMMANDS } from './certificates.ts';
import { DEVICE_COMMANDS } from './devices.ts';
import { OTP_COMMANDS } from './otp.ts';
import { OVERVIEW_COMMANDS } from './overview.ts';
import { REQUEST_COMMANDS } from './requests.ts';
import { SERVICE_COMMANDS } from './service.ts';

export const ADMIN_COMMANDS: readonly Entry[] = [
  ...OTP_COMMANDS,
  ...REQUEST_COMMANDS,
  ...CERTIFICATE_COMMANDS,
  ...DEVICE_COMMANDS,
  ...OVERVIEW_COMMANDS,
  ...SERVICE_COMMANDS,
  command(
    'token new',
    'Make a bearer token, and print its line for the configuration.',
    {
      description: required('TEXT', 'who holds it; the audit log shows it'),
      roles: required('ROLES', `what its holder may do: ${ADMIN_ROLES.join(', ')}, with commas between several`),
      days: value('N', 'how long it is good for (default: for ever)'),
      out: value('FILE', 'write the token to FILE, which nobody else may read, instead of the terminal'),
    },
    async () => (await import('./token-new.ts')).run,
    {
      about:
        'Makes a bearer token of the admin API. The configuration has its SHA-256 alone, so nobody can tell it again.',
    },
  ),
];
