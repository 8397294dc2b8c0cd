/** `[auth.ldap]` and `[gssapi.directory]` against an Active Directory domain controller of Samba. */
import { spawn, type ChildProcess } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { parse } from 'smol-toml';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createGssapi } from '../../../src/auth/gssapi/gssapi.ts';
import { CredentialRefused } from '../../../src/auth/guarded-attempts.ts';
import { Directory, type LdapSettings } from '../../../src/auth/ldap/directory.ts';
import { Secret } from '../../../src/config/secret.ts';
import { EstuaryError } from '../../../src/errors.ts';
import { parseCertsOnly } from '../../../src/pki/cms/cms.ts';
import { encodePem } from '../../../src/pki/der/pem.ts';
import { parseCertificate } from '../../../src/pki/x509/certificate.ts';
import { formatName } from '../../../src/pki/x509/name.ts';
import { dns, makeCa, makeClient, subjectAltName } from '../../support/certificates.ts';
import { run, runAny } from '../../support/command.ts';
import { makeKey, onTheWire, simpleCsr } from '../../support/csr.ts';
import { caSection, Estuary } from '../../support/estuary.ts';
import { KeptLog } from '../../support/kept-log.ts';
import { pkcs8Pem } from '../../support/keys.ts';
import { initialToken } from '../../support/negotiate.ts';
import { temporaryFolder } from '../../support/openssl.ts';
import { accepts } from '../../support/ports.ts';
import { findCommand, requires } from '../../support/requires.ts';
import { ROOT } from '../../support/root.ts';
import { NODE, SERVER } from '../../support/server-process.ts';
import { killed, untilReady } from '../../support/spawned.ts';
import { presenting } from '../../support/spnego.ts';

const PASSWORD = 'Passw0rd!12345';
const USERS = 'CN=Users,DC=corp,DC=example';
/** Samba listens at the ports of the protocols only. */
const [LDAPS, KERBEROS] = [636, 88];

const FILTER = '(|(sAMAccountName={primary})(userPrincipalName={principal}))';
/** Runs many commands in one process: each start takes more than a second. */
const SAMBA_TOOL = `import json, sys
from samba.netcmd.main import cmd_sambatool
sys.exit(any(cmd_sambatool()._run("samba-tool", *args) for args in json.load(sys.stdin)))`;
const OTHER_SERVICES = ['cifs/est.corp.example', 'MSSQLSvc/est.corp.example:1433'];
/** Further names of the service, without a key of their own in the keytab. */
const ALIASES = ['HTTP/est.corp.example:9443', 'HTTP/est'];

/** The blocks of docs/guides/gssapi.md for a domain controller of Samba, the server, and a computer. */
const [, account = '', configuration = '', label = '', computer = ''] = [
  ...(/\n## Active Directory\n([^]*?)\n## /
    .exec(readFileSync(join(ROOT, 'docs/guides/gssapi.md'), 'utf8'))?.[1]
    ?.matchAll(/^( *)```\w+\n([^]*?)^\1```$/gm) ?? []),
].map(({ 1: indentation = '', 2: body = '' }) => body.replaceAll(new RegExp(`^${indentation}`, 'gm'), ''));

describe.skipIf(!requires('samba', 'kdc', 'root'))('Active Directory', () => {
  const folder = temporaryFolder();
  const env = {
    ...{
      KRB5_CONFIG: folder.file('krb5.conf'),
      KRB5RCACHEDIR: folder.path,
      KRB5_KTNAME: folder.file('computer.keytab'),
    },
    ...{ KRB5CCNAME: folder.file('tickets'), CURL_HOME: folder.path, no_proxy: '*', PASSWORD },
    PATH: [folder.path, process.env['PATH'] ?? ''].join(delimiter),
  };
  const shell = (lines: string) => run('bash', ['-euo', 'pipefail', '-c', lines], { cwd: folder.path, env });
  let samba: ChildProcess;
  let ca: string;
  let tls: { readonly cert: string; readonly key: string };

  beforeAll(async () => {
    await run(
      'samba-tool',
      [
        ...['domain', 'provision', '--realm=CORP.EXAMPLE', '--domain=CORP', '--server-role=dc', '--dns-backend=NONE'],
        ...[`--adminpass=${PASSWORD}`, `--targetdir=${folder.path}`, '--host-name=dc1', '--host-ip=127.0.0.1'],
      ],
      { timeout: 240_000 },
    );
    const config = ['-s', folder.file('etc/smb.conf')];
    const program = findCommand('samba-tool') ?? 'samba-tool';
    writeFileSync(folder.file('samba-tool'), `exec ${program} "$@" ${config.join(' ')}\n`, { mode: 0o755 });
    await shell(account);
    const commands = [
      ['computer', 'create', 'printer9'],
      ['user', 'setpassword', 'printer9$', `--newpassword=${PASSWORD}`],
      ...['alice', 'Jörg Müller', 'disabled'].map((user) => ['user', 'create', user, PASSWORD]),
      ['user', 'create', 'new', PASSWORD, '--must-change-at-next-login'],
      ['user', 'disable', 'disabled'],
      ['group', 'add', 'enrollers'],
      ['group', 'addmembers', 'enrollers', 'alice'],
      // One key opens the tickets of all services of an account.
      ...[...OTHER_SERVICES, ...ALIASES].map((name) => ['spn', 'add', name, 'svc-est']),
      ...[...OTHER_SERVICES.map((name) => [name, 'http']), ['printer9$', 'computer']].map(([principal, file]) => [
        ...['domain', 'exportkeytab', folder.file(`${file}.keytab`), `--principal=${principal}`],
      ]),
    ];
    const input = JSON.stringify(commands.map((command) => [...command, ...config]));
    await run('/usr/bin/python3', ['-c', SAMBA_TOOL], { input, timeout: 240_000 });
    writeFileSync(
      folder.file('krb5.conf'),
      '[libdefaults]\n default_realm = CORP.EXAMPLE\n qualify_shortname = ""\n[realms]\n CORP.EXAMPLE = {\n  kdc = 127.0.0.1\n }\n',
    );
    const issuer = await makeCa('CN=Directory CA');
    const names = subjectAltName(dns('localhost'), dns('est.corp.example'));
    const { der, keys } = await makeClient('CN=dc1', issuer, { extensions: [names] });
    tls = { cert: encodePem('CERTIFICATE', der), key: pkcs8Pem(keys) };
    ca = encodePem('CERTIFICATE', issuer.der);
    mkdirSync(folder.file('tls'));
    writeFileSync(folder.file('tls/ca.pem'), ca);
    writeFileSync(folder.file('tls/cert.pem'), tls.cert);
    writeFileSync(folder.file('tls/key.pem'), tls.key, { mode: 0o600 });
    const options = [
      'server services=ldap, kdc',
      'interfaces=lo',
      ...['ca', 'cert', 'key'].map((name) => `tls ${name}file=${folder.file(`tls/${name}.pem`)}`),
    ];
    const args = ['-i', '-M', 'single', ...config, ...options.map((option) => `--option=${option}`)];
    samba = spawn('samba', args, { stdio: 'ignore' });
    await untilReady('samba', async () => (await accepts(LDAPS)) && accepts(KERBEROS));
  });
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

  const inShort = (error: unknown): string => {
    if (error instanceof CredentialRefused) return `refused: ${error.message}`;
    return error instanceof EstuaryError ? `${error.status}: ${error.detail}` : String(error);
  };

  function directoryWith(changes: Partial<LdapSettings>): Directory {
    const settings: LdapSettings = {
      ...{ url: [`ldaps://localhost:${LDAPS}`], starttls: false, search_filter: '(sAMAccountName={username})' },
      ...{ client_id_attribute: 'sAMAccountName', attributes: [], bind: 'cn', timeout: 20 },
      ...changes,
    };
    return new Directory({ settings, ca: () => ca, retryAfter: 30, now: Date.now });
  }

  /** The client_id, or the error. */
  const outcome = (changes: Partial<LdapSettings>, username: string, password = PASSWORD): Promise<string> =>
    directoryWith(changes)
      .authenticate(username, password)
      .then(({ client_id }) => client_id, inShort);

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

  describe('[gssapi.directory]', () => {
    let gssapi: ReturnType<typeof createGssapi>;
    let caches = 0;
    const started = async (required_group?: string): Promise<typeof gssapi> => {
      const directory = {
        filter: FILTER,
        attribute: 'sAMAccountName',
        ...(required_group === undefined ? {} : { required_group }),
      };
      const principal_mapping = { 'ALICE@corp.example': 'CN=Alice Adams', 'printer9@CORP.EXAMPLE': 'CN=Printer' };
      const made = createGssapi({
        config: {
          ...{ enabled: true, gssproxy: false, fold_case: false, require_crypto_verification: true, directory },
          ...{ service_principal: 'HTTP/est.corp.example@CORP.EXAMPLE', keytab: folder.file('http.keytab') },
          ...{ principal_mapping, default_template: 'CN={primary}' },
        },
        environment: env,
        log: new KeptLog(),
        directory: directoryWith(bySearch),
      });
      await made.start();
      return made;
    };
    beforeAll(async () => {
      gssapi = await started();
    });
    afterAll(() => gssapi.stop());

    /** What a client gets that logs in with these arguments of kinit: requester and subject, or the error. */
    async function admitted(login: readonly string[], service = 'HTTP@est.corp.example', by = gssapi): Promise<string> {
      const cache = folder.file(`cache-${(caches += 1)}`);
      await run('kinit', login, { env: { ...env, KRB5CCNAME: `FILE:${cache}` }, input: `${PASSWORD}\n` });
      const token = await initialToken({ env, cache, service });
      return by.plugin.authenticate(presenting(`Negotiate ${token}`)).then((identity) => {
        return identity === undefined ? 'nobody' : `${identity.requester} ${formatName(identity.subject)}`;
      }, inShort);
    }

    test.each([
      'alice',
      'ALICE',
      '-C aLiCe',
      '-E alice@corp.example',
      '-E Alice@CORP.EXAMPLE',
      '-E -C ALICE@corp.example',
    ])('kinit %s is the account alice', async (login) => {
      expect(await admitted(login.split(' '))).toBe('gssapi:alice@CORP.EXAMPLE CN=Alice Adams');
    });

    test('a computer is its account with the $, and nobody with the name that it gets tickets for without it', async () => {
      const printer = 'gssapi:printer9$@CORP.EXAMPLE CN=printer9$';
      for (const name of ['printer9$', 'PRINTER9$']) expect(await admitted([name])).toBe(printer);
      for (const name of ['printer9', 'PRINTER9'])
        expect(await admitted([name])).toMatch(/^401: printer9@CORP\.EXAMPLE: no entry matches/i);
      // The library makes the canonical name of it.
      expect(await admitted(['-C', 'printer9'])).toBe(printer);
    });

    test.each(['cifs@est.corp.example', 'MSSQLSvc@est.corp.example:1433'])(
      'a ticket for another service of the same account is rejected: %s',
      async (service) => {
        expect(await admitted(['alice'], service)).toMatch(/^401: the ticket is for another service/);
      },
    );

    test.each(['http@EST.corp.example', 'HTTP@est.corp.example:9443', 'HTTP@est'])(
      'a ticket for another name of the service is good: %s',
      async (service) => {
        expect(await admitted(['alice'], service)).toMatch(/^gssapi:alice@/);
      },
    );

    test('required_group counts the primary group: Domain Computers', async () => {
      const computers = await started(`CN=Domain Computers,${USERS}`);
      try {
        expect(await admitted(['printer9$'], undefined, computers)).toMatch(/^gssapi:printer9\$@/);
        expect(await admitted(['alice'], undefined, computers)).toMatch(/^401: .*the entry is not in the group/);
      } finally {
        await computers.stop();
      }
    });
  });

  test('docs/guides/gssapi.md: from nothing to the first certificate of a computer', async () => {
    const server = await Estuary.start({
      built: true,
      env,
      configure: (config, dir) => {
        Object.assign(config, parse(configuration.replace('dc1.corp.example', 'localhost')));
        for (const index of [0, 1]) Object.assign(caSection(config, index), parse(label)['ca']);
        copyFileSync(folder.file('http.keytab'), join(dir, 'http.keytab'));
        writeFileSync(join(dir, 'domain-ca.pem'), ca);
        writeFileSync(join(dir, 'directory.password'), PASSWORD, { mode: 0o600 });
        writeFileSync(join(dir, 'tls/server.pem'), tls.cert);
        writeFileSync(join(dir, 'tls/server.key'), tls.key, { mode: 0o600 });
      },
    });
    try {
      const estuary = async (command: string): Promise<string> => {
        const { output } = await runAny(NODE, [SERVER, command, '--config', join(server.dir, 'est.toml')], { env });
        return output;
      };
      expect(await estuary('check')).toMatch(/^\S+: the configuration is valid\n$/);
      expect(await estuary('doctor')).toMatch(/^ok +directory: ldaps:\/\/localhost: usable$/m);
      writeFileSync(folder.file('ROOT.pem'), ca);
      writeFileSync(folder.file('device.csr'), onTheWire(simpleCsr(makeKey(), 'anything')));
      writeFileSync(folder.file('.curlrc'), `connect-to = "::localhost:${server.server.port('est')}"\nfail\n`);
      await shell(computer);
      const [certificate = Buffer.of()] = parseCertsOnly(
        Buffer.from(readFileSync(folder.file('device.p7'), 'latin1'), 'base64'),
      );
      expect(formatName(parseCertificate(certificate).subject)).toBe('CN=printer9$');
    } finally {
      await server.stop();
    }
  });
});
