/** The commands below `estuary client`. */
import { MADE_KEY_TYPES } from '../../../pki/x509/key-types.ts';
import { command, flag, required, value, type Entry } from '../command.ts';

const config = required('FILE', 'client.toml');
const name = value('NAMES', 'these certificates alone, with commas between several (default: all)');

export const CLIENT_COMMANDS: readonly Entry[] = [
  command(
    'enroll',
    'Get a first certificate, with --config, or with --url and --out, which writes a configuration.',
    {
      config: value('FILE', 'client.toml; the options below, but --name, --force and --wait, then stand there'),
      name,
      force: flag('also replace a valid certificate, with the first credentials and the configured names'),
      wait: value(
        'SECONDS',
        'how long to wait for an approval (202) or after a temporary failure such as 429 or 503 (default 0)',
      ),
      url: value('URL', 'the EST server'),
      out: value('DIR', 'the folder for key and certificate'),
      label: value('LABEL', "the CA's label on the server"),
      'ca-fingerprint': value('HEX', 'SHA-256 or SHA-512 of a CA certificate that the server lists'),
      ca: value('FILE', 'PEM of the CAs that the server has to lead to, instead of a fingerprint'),
      'accept-cmc-ra': flag(
        'accept a server certificate for another host name if it has id-kp-cmcRA (RFC 7030 §3.6.1)',
      ),
      subject: value('DN', 'the name to ask for, such as CN=dev-1'),
      dns: value('NAMES', 'DNS names of the subjectAltName, with commas between several'),
      ip: value('ADDRESSES', 'IP addresses of the subjectAltName'),
      'key-type': value('TYPE', `${MADE_KEY_TYPES.join(', ')} (default what the CA asks for, else ec:P-256)`),
      username: value('NAME', 'sent with the password'),
      'otp-file': value('FILE', 'the one-time password'),
      'otp-env': value(
        'VARIABLE',
        'the variable of the environment that has it; asked for on a terminal where neither is given',
      ),
      cert: value('FILE', 'PEM of the certificate to begin with (an IDevID), with its intermediates'),
      key: value('FILE', 'PEM of its key, or the URI of one in the token'),
      'pkcs11-module': value('FILE', 'the PKCS#11 library of a token or TPM, in which the key is made and stays'),
      token: value('LABEL', 'the label of the token'),
      'pin-file': value('FILE', "the token's PIN"),
      'pin-env': value('VARIABLE', 'the variable of the environment that has it'),
      kerberos: flag('authenticate with a Kerberos ticket'),
      reload: value('COMMAND', 'what to run after each change, such as "systemctl reload nginx"'),
    },
    () => import('./enroll.ts'),
    { about: 'Exit codes: 0 issued, 1 failed, 2 configuration refused, 3 accepted and not issued yet.' },
  ),
  command(
    'renew',
    'Renew what is due, once: for a timer, or for cron.',
    { config, name, force: flag('renew now, due or not') },
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
  command('run', 'Keep the certificates renewed, until SIGTERM.', { config }, () => import('./run.ts'), {
    takesSignals: true,
  }),
];
