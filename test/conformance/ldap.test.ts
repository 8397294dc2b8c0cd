/** `[auth.ldap]` on the built server, with OpenLDAP's slapd behind a relay that can fall silent. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { parseCertificate } from '../../src/pki/x509/certificate.ts';
import { formatName } from '../../src/pki/x509/name.ts';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { caSection, certificatesOf, Estuary, itemsOf, section } from '../support/estuary.ts';
import type { Answer } from '../support/https.ts';
import { approve } from '../support/queued-requests.ts';
import { requires } from '../support/requires.ts';
import { GROUP, PASSWORD, Slapd, searchesAsReader } from '../support/slapd.ts';
import { TcpRelay } from '../support/tcp-relay.ts';

const INVALID = '401 invalid username or password';

describe.skipIf(!requires('slapd'))('LDAP', () => {
  let slapd: Slapd;
  let relay: TcpRelay;
  let estuary: Estuary;
  const key = makeKey();

  beforeAll(async () => {
    slapd = await Slapd.start();
    relay = await TcpRelay.start(slapd.ports.ldaps);
    estuary = await Estuary.start({
      configure: (config, dir) => {
        Object.assign(section(config, 'auth', 'ldap'), {
          ...searchesAsReader(dir, slapd, relay.port),
          required_group: GROUP,
          attributes: ['employeeNumber'],
          timeout: 6,
        });
        section(caSection(config), 'auth')['methods'] = ['mtls', 'ldap'];
        section(caSection(config), 'profile')['subject'] = { template: 'CN={id},serialNumber={ldap.employeeNumber}' };
        section(caSection(config, 1), 'auth')['methods'] = ['mtls', 'otp'];
        config['label'] = [
          { name: 'by-hand', ca: 'devices', approval: 'manual', auth: { methods: ['ldap'] }, profile: {} },
        ];
      },
    });
  });
  afterAll(async () => {
    await estuary.stop();
    await relay.die();
    await slapd.stop();
  });
  afterEach(async () => {
    await estuary.admin('DELETE', '/admin/lockouts/address:127.0.0.1');
  });

  const basic = (username: string, password: string): Record<string, string> => ({
    Authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`,
  });

  function enroll(username: string, password = PASSWORD, cn = 'device-1', path = 'simpleenroll'): Promise<Answer> {
    return estuary.enroll(onTheWire(simpleCsr(key, cn)), { headers: basic(username, password), path });
  }
  const inShort = ({ status, text }: Answer): string => `${status} ${text.trim()}`;

  test('an entry enrolls; its client_id is the name in the directory, and its attributes are placeholders', async () => {
    const answer = await enroll('DEVICE-1');
    expect(answer.status).toBe(200);
    const [der] = certificatesOf(answer);
    expect(der && formatName(parseCertificate(der).subject)).toBe('CN=device-1,serialNumber=4711');
    const { json } = await estuary.admin('GET', '/admin/audit?type=auth.ldap');
    expect(itemsOf(json)[0]).toMatchObject({ outcome: 'success', subject: 'device-1', method: 'ldap', ca: 'devices' });
    const issued = await estuary.admin('GET', '/admin/certificates?requester=device-1');
    expect(itemsOf(issued.json)[0]).toMatchObject({ method: 'ldap' });
  });

  test.each([
    ['a wrong password', 'device-1', 'wrong'],
    ['an unknown name', 'nobody', PASSWORD],
    ['an entry outside of the group', 'device-2', PASSWORD],
    ['an empty password', 'device-1', ''],
  ])('%s gets the same 401', async (_, username, password) => {
    const answer = await enroll(username, password);
    expect(inShort(answer)).toBe(INVALID);
    expect(answer.headers['www-authenticate']).toBe('Basic realm="est"');
  });

  test('the names are bound to the client_id where no template replaces them', async () => {
    const mine = await enroll('device-1', PASSWORD, 'device-1', 'by-hand/simpleenroll');
    expect(mine.status).toBe(202);
    const others = await enroll('device-1', PASSWORD, 'device-2', 'by-hand/simpleenroll');
    expect(inShort(others)).toBe('403 The CSR does not name the client that authenticates.');
    await approve(estuary, 'device-1');
    expect((await enroll('device-1', PASSWORD, 'device-1', 'by-hand/simpleenroll')).status).toBe(200);
  });

  test('the sixth failure starts a lockout, which a right password does not end', async () => {
    for (let i = 0; i < 6; i++) expect(inShort(await enroll('device-1', 'wrong'))).toBe(INVALID);
    const locked = await enroll('device-1');
    expect(inShort(locked)).toBe('401 too many failures, locked out');
    expect(Number(locked.headers['retry-after'])).toBeGreaterThan(0);
    const { json } = await estuary.admin('GET', '/admin/audit?type=auth.ldap');
    expect(itemsOf(json)).toContainEqual(
      expect.objectContaining({ outcome: 'failure', subject: 'device-1', detail: 'locked out' }),
    );
    expect(JSON.stringify(json)).not.toContain(PASSWORD);
  });

  test('a success clears no failures', async () => {
    for (let i = 0; i < 5; i++) await enroll('nobody', 'wrong');
    expect((await enroll('device-1')).status).toBe(200);
    expect(inShort(await enroll('nobody', 'wrong'))).toBe(INVALID);
    expect(inShort(await enroll('device-1'))).toBe('401 too many failures, locked out');
  });

  test('each label looks at its own method of Basic credentials only', async () => {
    const { token } = await estuary.otp({ client_id: 'device-1' });
    expect(inShort(await enroll('device-1', token))).toBe(INVALID);
    expect(inShort(await enroll('device-1', PASSWORD, 'device-1', 'lab/simpleenroll'))).toBe('401 invalid OTP token');
    expect((await enroll('device-1', token, 'device-1', 'lab/simpleenroll')).status).toBe(200);
  });

  test('a dry run judges a client_id as the directory gives it', async () => {
    const csr = simpleCsr(key, 'device-2').toString('base64');
    const pem = `-----BEGIN CERTIFICATE REQUEST-----\n${csr}\n-----END CERTIFICATE REQUEST-----\n`;
    const ask = (client_id: string) =>
      estuary.admin('POST', '/admin/check', { ca: 'by-hand', csr: pem, as: { client_id } });
    expect((await ask('device-2')).json).toMatchObject({ verdict: 'queue' });
    expect((await ask('device-1')).json).toMatchObject({ verdict: 'refuse', code: 'CLIENT_ID_MISMATCH' });
  });

  test('a directory that does not answer delays nobody else, and lets nobody in', async () => {
    relay.silence(true);
    const waiting = Array.from({ length: 40 }, (_, i) => enroll(`device-${i % 2}`));
    let settled = 0;
    for (const one of waiting) void one.finally(() => settled++);
    const { token } = await estuary.otp({ client_id: 'device-1' });
    expect((await enroll('device-1', token, 'device-1', 'lab/simpleenroll')).status).toBe(200);
    expect(settled).toBeLessThan(waiting.length);
    const answers = await Promise.all(waiting);
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([503]));
    expect(answers.every(({ headers }) => Number(headers['retry-after']) > 0)).toBe(true);
    relay.silence(false);
    // No failure was counted.
    expect((await enroll('device-1')).status).toBe(200);
  });

  test('a directory that is down is 503, and works again as soon as it is back', async () => {
    await relay.die();
    const answer = await enroll('device-1');
    expect(inShort(answer)).toBe('503 The directory is temporarily unavailable. Try again later.');
    await relay.revive();
    expect((await enroll('device-1')).status).toBe(200);
  });

  test('a search base that is gone is 503, counts no failure, and is good as soon as it is back', async () => {
    const withBase = async (search_base: string): Promise<void> => {
      estuary.reconfigure((config) => Object.assign(section(config, 'auth', 'ldap'), { search_base }));
      await estuary.server.stop();
      await estuary.restart();
    };
    await withBase('ou=Gone,dc=example');
    for (let i = 0; i < 7; i++)
      expect(inShort(await enroll('device-1'))).toBe('503 The directory is temporarily unavailable. Try again later.');
    expect(await estuary.outputSoFar()).toMatch(/ou=Gone,dc=example: .*0x20/);
    await withBase('ou=devices,dc=example');
    expect((await enroll('device-1')).status).toBe(200);
  });

  test('RFC 4513 §5.1.3: Latin-1 is 401, and the audit record says why', async () => {
    const headers = { Authorization: `Basic ${Buffer.from('device-1:gr\xfc\xdfe', 'latin1').toString('base64')}` };
    const answer = await estuary.enroll(onTheWire(simpleCsr(key, 'device-1')), { headers });
    expect(inShort(answer)).toBe(INVALID);
    const { json } = await estuary.admin('GET', '/admin/audit?type=auth.ldap');
    expect(itemsOf(json)).toContainEqual(
      expect.objectContaining({ subject: 'device-1', detail: expect.stringContaining('not UTF-8') as string }),
    );
  });

  test('a reload takes the new CA of the directory', async () => {
    const reloaded = async (pem: string): Promise<number> => {
      writeFileSync(join(estuary.dir, 'directory-ca.pem'), pem);
      return (await estuary.admin('POST', '/admin/reload')).status;
    };
    expect(await reloaded(estuary.root)).toBe(200);
    expect((await enroll('device-1')).status).toBe(503);
    expect(await reloaded(slapd.ca)).toBe(200);
    expect((await enroll('device-1')).status).toBe(200);
  });
});
