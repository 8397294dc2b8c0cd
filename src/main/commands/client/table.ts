/** The `estuary client` commands. */
import { command, type Entry } from '../command.ts';
import { ENROLL, QUERY, REENROLL, RENEW, RUN, SERVERKEYGEN, STATUS } from './options.ts';

const ENROLLMENT_CODES =
  'Exit codes: 0 issued, 1 failed, 2 invalid configuration or options, 3 accepted and not issued yet.';

export const CLIENT_COMMANDS: readonly Entry[] = [
  command(
    'enroll',
    'Get a certificate, and write a configuration that renews it. Needs --config, or --url and --out.',
    { options: ENROLL, load: async () => (await import('./enroll.ts')).enroll, about: ENROLLMENT_CODES },
  ),
  command('renew', 'Renew once what is due, from a timer or cron.', {
    options: RENEW,
    load: async () => (await import('./enroll.ts')).renew,
    about: 'Exit codes: 0 no failure, 1 at least one failed, 2 invalid configuration or options.',
  }),
  command('status', 'Show the state of the certificates.', {
    options: STATUS,
    load: async () => (await import('./run.ts')).status,
    about: 'The exit code is 1 if a certificate is missing, late or expired, or if its hook has not run.',
  }),
  command('cacerts', "Print the server's trusted CA certificates.", {
    options: QUERY,
    load: async () => (await import('./operations.ts')).cacerts,
  }),
  command('csrattrs', 'Print what the server requires in requests.', {
    options: QUERY,
    load: async () => (await import('./operations.ts')).csrattrs,
  }),
  command('reenroll', 'Renew the certificate in --cert with --key once, and keep nothing.', {
    options: REENROLL,
    load: async () => (await import('./operations.ts')).reenroll,
    about: ENROLLMENT_CODES,
  }),
  command('serverkeygen', 'Get a certificate and a private key that the server generates.', {
    options: SERVERKEYGEN,
    load: async () => (await import('./operations.ts')).serverkeygen,
    about: ENROLLMENT_CODES,
  }),
  command('run', 'Keep the certificates renewed, until SIGTERM.', {
    options: RUN,
    load: async () => (await import('./run.ts')).keepRenewed,
    takesSignals: true,
  }),
];
