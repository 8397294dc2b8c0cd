/** `driver = "command"`: the built server in front of `openssl ca`, with the example's programs, and with programs that misbehave. */
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeKey } from '../support/csr.ts';
import { Estuary } from '../support/estuary.ts';
import { certifyNewKey, openssl, opensslText } from '../support/openssl.ts';
import { ROOT } from '../support/root.ts';
import { latestAudit, enrollAt, startFront, x509 } from '../support/upstream.ts';
import { removeFolder } from '../support/folders.ts';

const EXAMPLE = join(ROOT, 'examples/upstream-openssl');
let home: string;
let front: Estuary;
const key = makeKey();

/** What the programs do next; the test writes it, the programs read it. */
const order = (text: string): void => writeFileSync(join(home, 'order'), text);

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'estuary-command-'));
  const folder = join(home, 'ca');
  mkdirSync(folder);
  certifyNewKey(join(folder, 'ca.key'), join(folder, 'ca.pem'), [
    ...['-days', '365', '-subj', '/CN=OpenSSL CA'],
    ...['-addext', 'basicConstraints=critical,CA:TRUE', '-addext', 'keyUsage=critical,keyCertSign,cRLSign'],
  ]);
  // The example's program behind one that a test can make misbehave.
  const program = (name: string, example: string): string => {
    const file = join(home, name);
    writeFileSync(
      file,
      `#!/bin/sh
export OPENSSL_CA_DIR=${folder}
env | sort > ${home}/environment
order=$(cat ${home}/order 2>/dev/null)
case "${name} $order" in
  "issue pending") cat > ${home}/csr; echo "ticket $ESTUARY_REQUEST_ID"; exit 10 ;;
  "poll pending") cat > ${home}/reference; exit 10 ;;
  "poll hang") cat > ${home}/reference; exit 1 ;;
  "poll issue") cat > ${home}/reference; [ -s ${home}/csr ] || exit 1; exec ${EXAMPLE}/${example} < ${home}/csr ;;
  "issue rejected"|"poll rejected") printf 'not today\\033[31m, sorry\\nmore\\n' >&2; exit 65 ;;
  "issue later") exit 75 ;;
  "issue hang") sleep 600 & wait ;;
esac
exec ${EXAMPLE}/${example}
`,
    );
    chmodSync(file, 0o755);
    return file;
  };
  const command = {
    issue: [program('issue', 'issue')],
    poll: [program('poll', 'issue')],
    revoke: [program('revoke', 'revoke')],
    timeout: 15,
  };
  front = await startFront({
    anchors: join(folder, 'ca.pem'),
    ca: () => ({ driver: 'command', command }),
    configure: (config) => {
      config['est'] = { ...(config['est'] as object), retry_after: 1 };
    },
  });
});
afterAll(async () => {
  await front.stop();
  removeFolder(home);
});

const polled = async (cn: string, password: string): Promise<number> =>
  (await enrollAt(front, key, cn, { password })).status;

describe('openssl ca behind the server', () => {
  test('full CMC without [cmc] is 501: no key here can sign responses', async () => {
    const answer = await front.est('edge/fullcmc', { body: '-' });
    expect([answer.status, answer.text]).toEqual([501, expect.stringContaining('This CA cannot sign CMC responses')]);
  });

  test('certifies the CSR; the certificate renews, and is revoked there too', async () => {
    order('');
    const answer = await enrollAt(front, key, 'device-1');
    expect(answer.text.length > 0 && answer.status).toBe(200);
    const certificate = x509(answer);
    expect(certificate.subject).toContain('CN=device-1');
    expect(certificate.issuer).toContain('CN=OpenSSL CA');
    const client = { cert: certificate.toString(), key: key.pem };
    const renewed = await enrollAt(front, key, 'device-1', { client, path: 'edge/simplereenroll' });
    expect(renewed.status).toBe(200);
    const serial = certificate.serialNumber.toLowerCase();
    const revoked = await front.admin('POST', `/admin/certificates/${serial}/revoke`, { reason: 'keyCompromise' });
    expect(revoked.status).toBe(200);
    expect(readFileSync(join(home, 'ca/index.txt'), 'utf8')).toMatch(
      new RegExp(`^R\\t.*keyCompromise\\t${serial}`, 'mi'),
    );
    expect((await enrollAt(front, key, 'device-1', { client, path: 'edge/simplereenroll' })).status).toBe(401);
  });

  test('cacerts answers the chain, issuing CA first', async () => {
    const answer = await front.est('edge/cacerts');
    expect(answer.status).toBe(200);
    expect(opensslText(['pkcs7', '-inform', 'DER', '-print_certs'], Buffer.from(answer.text, 'base64'))).toContain(
      'CN = OpenSSL CA',
    );
  });

  test('programs get no environment of the server, and what the request is', async () => {
    order('');
    expect((await enrollAt(front, key, 'device-env')).status).toBe(200);
    const environment = readFileSync(join(home, 'environment'), 'utf8');
    for (const line of ['ESTUARY_LABEL=edge', 'ESTUARY_OPERATION=simpleenroll', 'ESTUARY_REQUESTER=device-env'])
      expect(environment).toContain(`${line}\n`);
    expect(environment).toMatch(/^ESTUARY_REQUEST_ID=[0-9a-f-]{36}$/m);
    expect(environment).toMatch(/^ESTUARY_NOT_AFTER=\d{4}-.*Z$/m);
    expect(environment).not.toMatch(/^(HOME|NODE|npm|VITEST)/m);
  });

  test('serverkeygen submits a CSR of the generated key', async () => {
    order('');
    const { token } = await front.otp({ client_id: 'device-key' });
    const body = openssl([
      'req',
      '-new',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:P-256',
      '-nodes',
      '-keyout',
      '/dev/null',
      '-subj',
      '/CN=device-key',
      '-outform',
      'DER',
    ]).toString('base64');
    const answer = await front.enroll(body, { path: 'edge/serverkeygen', password: token });
    expect(answer.text).toContain('smime-type=certs-only');
    expect(answer.status).toBe(200);
  });
});

describe('exit codes', () => {
  test('10: the request waits, and poll gets the ID', async () => {
    order('pending');
    const { token } = await front.otp({ client_id: 'device-waits' });
    expect(await polled('device-waits', token)).toBe(202);
    order('issue');
    await expect.poll(() => polled('device-waits', token), { interval: 500 }).toBe(200);
    expect(readFileSync(join(home, 'reference'), 'utf8')).toMatch(/^ticket [0-9a-f-]{36}$/);
  });

  test('65: 403 with the first line of the errors, without control characters', async () => {
    order('rejected');
    const answer = await enrollAt(front, key, 'device-rejected');
    expect([answer.status, answer.text.trim()]).toEqual([403, 'not today [31m, sorry']);
  });

  test('75: 503 with Retry-After', async () => {
    order('later');
    const answer = await enrollAt(front, key, 'device-later');
    expect([answer.status, answer.headers['retry-after']]).toEqual([503, '1']);
  });

  test('a program that hangs: poll is asked once, and what it does not know is 500 and possibly issued', async () => {
    writeFileSync(join(home, 'csr'), '');
    order('hang');
    const answer = await enrollAt(front, key, 'device-hang');
    expect([answer.status, answer.text.trim()]).toEqual([500, 'The upstream CA could not process the request.']);
    const failure = await latestAudit(front, 'certificate.failed');
    expect(String(failure?.['detail'])).toContain('possibly issued');
    expect(readFileSync(join(home, 'reference'), 'utf8')).toBe('');
  });
});
