/** The commands below `estuary client`. */
import { command, flag, required, value, type Entry } from '../command.ts';
import { ENROLL, QUERY, REENROLL, SERVERKEYGEN } from './options.ts';

const ENROLLMENT_CODES = 'Exit codes: 0 issued, 1 failed, 2 configuration refused, 3 accepted and not issued yet.';
const config = required('FILE', 'client.toml');
const name = value('NAMES', 'these certificates alone, with commas between several (default: all)');

export const CLIENT_COMMANDS: readonly Entry[] = [
  command(
    'enroll',
    'Get a certificate, and write a configuration that renews it. Needs --config, or --url and --out.',
    ENROLL,
    () => import('./enroll.ts'),
    { about: ENROLLMENT_CODES },
  ),
  command(
    'renew',
    'Renew what is due, once: for a timer, or for cron.',
    { config, name, force: flag('renew now, due or not'), json: flag('the outcomes as JSON') },
    () => import('./renew.ts'),
    { about: 'Exit codes: 0 all are well, 1 one failed, 2 configuration refused.' },
  ),
  command(
    'status',
    'Tell how the certificates are.',
    { config, json: flag('for programs') },
    () => import('./status.ts'),
    { about: 'Exit code 1 where one is missing or at its end.' },
  ),
  command('cacerts', "Print the server's trusted CA certificates.", QUERY, () => import('./cacerts.ts')),
  command('csrattrs', 'Print what the server demands of requests.', QUERY, () => import('./csrattrs.ts')),
  command(
    'reenroll',
    'Renew the certificate in --cert with --key once, and keep nothing.',
    REENROLL,
    () => import('./reenroll.ts'),
    { about: ENROLLMENT_CODES },
  ),
  command(
    'serverkeygen',
    'Get a certificate and a private key that the server generates.',
    SERVERKEYGEN,
    () => import('./serverkeygen.ts'),
    { about: ENROLLMENT_CODES },
  ),
  command('run', 'Keep the certificates renewed, until SIGTERM.', { config }, () => import('./run.ts'), {
    takesSignals: true,
  }),
];
