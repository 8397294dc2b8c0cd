/** The directory behind `[auth.ldap]` against an Active Directory domain controller of Samba. */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CredentialRefused } from '../../../src/auth/guarded-attempts.ts';
import { Directory, type LdapSettings } from '../../../src/auth/ldap/directory.ts';
import { Secret } from '../../../src/config/secret.ts';
import { EstuaryError } from '../../../src/errors.ts';
import { encodePem } from '../../../src/pki/der/pem.ts';
import { dns, makeCa, makeClient, subjectAltName } from '../../support/certificates.ts';
import { pkcs8Pem } from '../../support/keys.ts';
import { temporaryFolder } from '../../support/openssl.ts';
import { accepts } from '../../support/ports.ts';
import { requires } from '../../support/requires.ts';
import { killed, untilReady } from '../../support/spawned.ts';

const PASSWORD = 'Passw0rd!12345';
const USERS = 'CN=Users,DC=corp,DC=example';
/** Samba listens at this port only. */
const LDAPS = 636;

describe.skipIf(!requires('samba', 'root'))('Active Directory', () => {
  const folder = temporaryFolder();
  let samba: ChildProcess;
  let ca: string;

  beforeAll(async () => {
    const tool = (...args: readonly string[]) => execFileSync('samba-tool', args, { stdio: 'pipe' });
    tool(
      ...['domain', 'provision', '--realm=CORP.EXAMPLE', '--domain=CORP', '--server-role=dc', '--dns-backend=NONE'],
      ...[`--adminpass=${PASSWORD}`, `--targetdir=${folder.path}`, '--host-name=dc1', '--host-ip=127.0.0.1'],
    );
    const config = ['-s', folder.file('etc/smb.conf')];
    for (const user of ['alice', 'Jörg Müller', 'disabled']) tool('user', 'create', user, PASSWORD, ...config);
    tool('user', 'create', 'new', PASSWORD, '--must-change-at-next-login', ...config);
    tool('user', 'disable', 'disabled', ...config);
    tool('group', 'add', 'enrollers', ...config);
    tool('group', 'addmembers', 'enrollers', 'alice', ...config);
    const issuer = await makeCa('CN=Directory CA');
    const server = await makeClient('CN=dc1', issuer, { extensions: [subjectAltName(dns('localhost'))] });
    ca = encodePem('CERTIFICATE', issuer.der);
    mkdirSync(folder.file('tls'));
    writeFileSync(folder.file('tls/ca.pem'), ca);
    writeFileSync(folder.file('tls/cert.pem'), encodePem('CERTIFICATE', server.der));
    writeFileSync(folder.file('tls/key.pem'), pkcs8Pem(server.keys), { mode: 0o600 });
    const options = [
      'server services=ldap',
      'interfaces=lo',
      ...['ca', 'cert', 'key'].map((name) => `tls ${name}file=${folder.file(`tls/${name}.pem`)}`),
    ];
    const args = ['-i', '-M', 'single', ...config, ...options.map((option) => `--option=${option}`)];
    samba = spawn('samba', args, { stdio: 'ignore' });
    await untilReady('samba', () => accepts(LDAPS));
  }, 120_000);
  afterAll(async () => {
    await killed(samba);
    folder.remove();
  });

  const bySearch: Partial<LdapSettings> = {
    search_base: 'DC=corp,DC=example',
    bind_dn: 'CORP\\Administrator',
    bind_password: new Secret(Buffer.from(PASSWORD)),
  };
  const byName = { user_dn: `CN={username},${USERS}` };

  /** The client_id, or the error. */
  async function outcome(changes: Partial<LdapSettings>, username: string, password = PASSWORD): Promise<string> {
    const settings: LdapSettings = {
      ...{ url: [`ldaps://localhost:${LDAPS}`], starttls: false, search_filter: '(sAMAccountName={username})' },
      ...{ client_id_attribute: 'sAMAccountName', attributes: [], bind: 'cn', timeout: 20 },
      ...changes,
    };
    const directory = new Directory({ settings, ca: () => ca, retryAfter: 30, now: Date.now });
    return directory.authenticate(username, password).then(
      ({ client_id }) => client_id,
      (error: unknown) => {
        if (error instanceof CredentialRefused) return `refused: ${error.message}`;
        return error instanceof EstuaryError ? `${error.status}: ${error.detail}` : String(error);
      },
    );
  }

  test.each([
    ['a search', bySearch],
    ['user_dn', byName],
    ['bind_dn = user@domain', { ...bySearch, bind_dn: 'Administrator@corp.example' }],
  ])('%s: the account is written as in the directory, and what Windows rejects is rejected', async (_, settings) => {
    for (const [typed, found] of Object.entries({ alice: 'alice', ALICE: 'alice', 'Jörg Müller': 'Jörg Müller' }))
      expect(await outcome(settings, typed)).toBe(found);
    expect(await outcome(settings, 'alice', 'wrong')).toMatch(/^refused: .*data 52e/);
    expect(await outcome(settings, 'new')).toMatch(/^refused: .*data 773/);
    expect(await outcome(settings, 'disabled')).toMatch(/^refused: .*data 533/);
    expect(await outcome(settings, 'nobody')).toMatch(/^refused/);
  });

  test('required_group counts members, and the primary group', async () => {
    for (const settings of [bySearch, byName]) {
      const members = { ...settings, required_group: `CN=enrollers,${USERS}` };
      expect(await outcome(members, 'alice')).toBe('alice');
      expect(await outcome(members, 'Jörg Müller')).toMatch(/^refused: the entry is not in the group/);
      expect(await outcome({ ...settings, required_group: `CN=Domain Users,${USERS}` }, 'alice')).toBe('alice');
    }
  });

  test('a base that does not exist, and a search without an account, are failures of the directory', async () => {
    expect(await outcome({ ...bySearch, search_base: 'OU=gone,DC=corp,DC=example' }, 'alice')).toMatch(/^503: .*0x20/);
    expect(await outcome({ search_base: 'DC=corp,DC=example' }, 'alice')).toMatch(/^503: .*without authentication/);
  });
});
