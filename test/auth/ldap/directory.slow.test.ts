/** The directory behind `[auth.ldap]`, against OpenLDAP's slapd. */
import { createServer, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { CredentialRefused } from '../../../src/auth/guarded-attempts.ts';
import { Directory, type LdapSettings } from '../../../src/auth/ldap/directory.ts';
import { Secret } from '../../../src/config/secret.ts';
import { onDependencyCall } from '../../../src/dependency-calls.ts';
import { EstuaryError } from '../../../src/errors.ts';
import { encodePem } from '../../../src/pki/der/pem.ts';
import { makeCa } from '../../support/certificates.ts';
import { freePort } from '../../support/ports.ts';
import { requires } from '../../support/requires.ts';
import { GROUP, PASSWORD, POSIX_GROUP, PRIMARY_GROUP, READER, Slapd } from '../../support/slapd.ts';
import { TcpRelay } from '../../support/tcp-relay.ts';

describe.skipIf(!requires('slapd'))('the directory', () => {
  let slapd: Slapd;
  beforeAll(async () => {
    slapd = await Slapd.start();
  });
  afterAll(() => slapd.stop());

  const byName = { user_dn: 'uid={username},ou=devices,dc=example' };
  const bySearch = {
    search_base: 'ou=devices,dc=example',
    search_filter: '(&(objectClass=inetOrgPerson)(uid={username}))',
    bind_dn: READER.dn,
    bind_password: new Secret(Buffer.from(READER.password)),
  };
  const ldaps = (): string => `ldaps://localhost:${slapd.ports.ldaps}`;

  function directory(
    changes: Partial<LdapSettings> = byName,
    ca: string | undefined = slapd.ca,
    now = Date.now,
  ): Directory {
    const settings: LdapSettings = {
      url: [ldaps()],
      starttls: false,
      search_filter: '(uid={username})',
      client_id_attribute: 'uid',
      attributes: [],
      bind: 'cn',
      timeout: 60,
      ...changes,
    };
    return new Directory({ settings, ca: () => ca, retryAfter: 30, now });
  }

  /** The client_id, or the reason of the refusal. */
  async function outcome(asked: Directory, username: string, password = PASSWORD): Promise<string> {
    try {
      return (await asked.authenticate(username, password)).client_id;
    } catch (error) {
      if (error instanceof CredentialRefused) return `refused: ${error.message}`;
      if (error instanceof EstuaryError) return `${error.status} ${error.code}: ${error.detail}`;
      throw error;
    }
  }

  describe.each([
    ['user_dn', byName],
    ['search_base', bySearch],
  ])('with %s', (_, settings) => {
    test('required_group counts the primary group of Active Directory, of which nobody is a member', async () => {
      const grouped = directory({ ...settings, required_group: PRIMARY_GROUP });
      expect(await outcome(grouped, 'computer-1')).toBe('computer-1');
      expect(await outcome(grouped, 'device-1')).toMatch(/^refused: the entry is not in the group/);
      expect(await outcome(directory({ ...settings, required_group: GROUP }), 'computer-1')).toMatch(/^refused/);
    });

    test.each([
      ['the right password', 'device-1', PASSWORD, 'device-1'],
      ['another case of the name gives the name of the directory', 'DEVICE-1', PASSWORD, 'device-1'],
      ['a name that needs every kind of escaping', 'O\'Brien, "x" (*)\\#ü', PASSWORD, 'O\'Brien, "x" (*)\\#ü'],
      ['a wrong password', 'device-1', 'wrong', /^refused: .*0x31/],
      ['a password that must be changed', 'reset', PASSWORD, 'refused: the password must be changed first'],
      ['a wrong password where another must be changed', 'reset', 'wrong', /^refused: .*0x31/],
      ['a name that does not exist', 'nobody', PASSWORD, /^refused/],
      ['an asterisk', '*', PASSWORD, /^refused/],
      ['the start of a name and an asterisk', 'device-*', PASSWORD, /^refused/],
      ['a filter in the name', 'x)(uid=device-1', PASSWORD, /^refused/],
      ['a DN in the name', 'device-1,ou=devices,dc=example', PASSWORD, /^refused/],
      ['a replacement pattern', "$'", PASSWORD, /^refused/],
      ['an empty name', '', PASSWORD, /^refused: an empty/],
      ['an empty password', 'device-1', '', /^refused: an empty/],
    ])('%s', async (_what, username, password, expected) => {
      expect(await outcome(directory(settings), username, password)).toEqual(
        typeof expected === 'string' ? expected : expect.stringMatching(expected),
      );
    });

    test('a group is required', async () => {
      const members = directory({ ...settings, required_group: GROUP });
      expect(await outcome(members, 'device-1')).toBe('device-1');
      expect(await outcome(members, 'O\'Brien, "x" (*)\\#ü')).toBe('O\'Brien, "x" (*)\\#ü');
      expect(await outcome(members, 'device-2')).toMatch(/^refused: the entry is not in the group/);
      expect(await outcome(directory({ ...settings, required_group: 'cn=gone,dc=example' }), 'device-1')).toMatch(
        /^503 LDAP_UNAVAILABLE: .*cn=gone,dc=example: .*0x20/,
      );
    });

    test('attributes are read', async () => {
      const reading = directory({ ...settings, attributes: ['EmployeeNumber', 'l', 'mail', 'dn'] });
      const { attributes } = await reading.authenticate('device-1', PASSWORD);
      expect([...attributes]).toEqual([
        ['employeenumber', ['4711']],
        ['l', ['Hall 1', 'Hall 2']],
        ['mail', []],
        ['dn', []],
      ]);
    });

    test('a POSIX group has the uid, if that is the client_id', async () => {
      const members = { ...settings, required_group: POSIX_GROUP };
      expect(await outcome(directory(members), 'device-1')).toBe('device-1');
      expect(await outcome(directory(members), 'device-2')).toMatch(/^refused: the entry is not in the group/);
      const byNumber = { ...members, client_id_attribute: 'employeeNumber', attributes: ['uid'] };
      expect(await outcome(directory(byNumber), 'device-1')).toMatch(/^refused: the entry is not in the group/);
    });

    test('StartTLS protects the password', async () => {
      const relay = await TcpRelay.start(slapd.ports.ldap);
      onTestFinished(() => relay.die());
      const starting = directory({ ...settings, url: [`ldap://localhost:${relay.port}`], starttls: true });
      expect(await outcome(starting, 'device-1')).toBe('device-1');
      expect(await outcome(starting, 'device-1', 'wrong')).toMatch(/^refused/);
    });
  });

  test('two matching entries are refused, and so is an entry with two names', async () => {
    const byMail = directory({ ...bySearch, search_filter: '(mail={username})' });
    for (const name of ['twin', 'triplet'])
      expect(await outcome(byMail, `${name}@example.com`)).toBe('refused: more than one entry matches');
    expect(await outcome(directory(bySearch), 'two-names')).toMatch(/does not have exactly one usable uid/);
    expect(await outcome(directory(bySearch), 'nobody')).toBe('refused: no entry matches');
  });

  test('a name or an attribute has at most 256 characters, and no control character', async () => {
    const named = (client_id_attribute: string) => outcome(directory({ ...bySearch, client_id_attribute }), 'odd');
    expect(await named('title')).toBe('t'.repeat(256));
    for (const attribute of ['ou', 'o'])
      expect(await named(attribute)).toMatch(new RegExp(`does not have exactly one usable ${attribute}$`));
    const reading = directory({ ...bySearch, attributes: ['title', 'ou', 'o'] });
    expect([...(await reading.authenticate('odd', PASSWORD)).attributes.values()]).toEqual([['t'.repeat(256)], [], []]);
  });

  test('octets that are no UTF-8 are not a name: two accounts could have the same', async () => {
    const named = directory({ ...bySearch, client_id_attribute: 'audio', attributes: ['uid', 'audio'] });
    expect(await outcome(named, 'triplet-a')).toMatch(/does not have exactly one usable audio$/);
    const reading = await directory({ ...bySearch, attributes: ['audio'] }).authenticate('triplet-a', PASSWORD);
    expect([...reading.attributes]).toEqual([['audio', []]]);
  });

  test('the metrics know a rejected password from a directory that fails', async () => {
    const outcomes: string[] = [];
    onTestFinished(onDependencyCall(({ dependency, outcome: how }) => outcomes.push(`${dependency} ${how}`)));
    await outcome(directory(), 'device-1');
    await outcome(directory(), 'device-1', 'wrong');
    await outcome(directory({ ...byName, url: [`ldaps://localhost:${await freePort()}`] }), 'device-1');
    expect(outcomes).toEqual(['ldap ok', 'ldap refused', 'ldap failed']);
  });

  test('a server that failed is asked last for a minute', async () => {
    let asked = 0;
    const failing = createServer((socket) => {
      asked += 1;
      socket.destroy();
    });
    await new Promise<void>((resolve) => failing.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => new Promise<void>((resolve) => failing.close(() => resolve())));
    const address = failing.address();
    const port = typeof address === 'object' ? address?.port : undefined;
    let now = 1_000_000;
    const two = directory({ ...byName, url: [`ldaps://localhost:${port}`, ldaps()] }, slapd.ca, () => now);
    for (const [passed, expected] of [
      [0, 1],
      [59_999, 1],
      [1, 2],
    ] as const) {
      now += passed;
      expect(await outcome(two, 'device-1')).toBe('device-1');
      expect(asked).toBe(expected);
    }
  });

  test('a referral is not followed', async () => {
    const elsewhere = directory({ ...bySearch, search_base: 'ou=elsewhere,dc=example' });
    expect(await outcome(elsewhere, 'device-1')).toMatch(
      /^503 LDAP_UNAVAILABLE: .*the directory refers to another server, which is not followed$/,
    );
    expect(await outcome(directory({ user_dn: 'uid={username},ou=elsewhere,dc=example' }), 'device-1')).toMatch(
      /^refused/,
    );
  });

  test('a search base that does not exist is a failure of the directory, also where only the account may see it', async () => {
    for (const search_base of ['ou=gone,dc=example', 'dc=elsewhere'])
      expect(await outcome(directory({ ...bySearch, search_base }), 'device-1')).toMatch(
        /^503 LDAP_UNAVAILABLE: .*0x20/,
      );
  });

  test('RFC 4518: the entry that was found counts, however its name was typed', async () => {
    const accounts: string[] = [];
    const as = async <T>(account: string, prove: () => Promise<T>): Promise<T> => {
      accounts.push(account);
      return prove();
    };
    for (const name of ['device-1', 'DEVICE-1', ' device-1  '])
      expect((await directory(bySearch).authenticate(name, PASSWORD, as)).client_id).toBe('device-1');
    expect(new Set(accounts).size).toBe(1);
    expect(accounts[0]).toMatch(/^uid=device-1,ou=devices,dc=example$/i);
  });

  test('an account is looked up, with its group', async () => {
    const lookUp = async (filter: string, required_group?: string): Promise<unknown> =>
      directory(bySearch)
        .lookUp({ filter, attributes: ['cn', 'l'], required_group })
        .then(
          (valuesOf) => [valuesOf('cn'), valuesOf('L'), valuesOf('sn')],
          (error: unknown) => (error instanceof CredentialRefused ? error.message : String(error)),
        );
    expect(await lookUp('(uid=device-1)', GROUP)).toEqual([['Device'], ['Hall 1', 'Hall 2'], []]);
    expect(await lookUp('(uid=device-2)', GROUP)).toBe(`the entry is not in the group ${GROUP}`);
    expect(await lookUp('(uid=nobody)')).toBe('no entry matches');
    expect(await lookUp('(mail=twin@example.com)')).toBe('more than one entry matches');
  });

  test('an account that cannot search is a failure of the directory', async () => {
    const wrong = directory({ ...bySearch, bind_password: new Secret(Buffer.from('wrong')) });
    expect(await outcome(wrong, 'device-1')).toMatch(/^503 LDAP_UNAVAILABLE: .*auth.ldap.bind_dn/);
  });

  test.each(['ldaps', 'starttls'] as const)(
    '%s: a certificate of another CA, or for another name, is refused',
    async (way) => {
      const starttls = way === 'starttls';
      const url = (host: string): string =>
        starttls ? `ldap://${host}:${slapd.ports.ldap}` : `ldaps://${host}:${slapd.ports.ldaps}`;
      const other = encodePem('CERTIFICATE', (await makeCa('CN=Other CA')).der);
      const stranger = directory({ ...byName, url: [url('localhost')], starttls }, other);
      expect(await outcome(stranger, 'device-1')).toMatch(/^503 LDAP_UNAVAILABLE/);
      const misnamed = directory({ ...byName, url: [url('127.0.0.1')], starttls });
      expect(await outcome(misnamed, 'device-1')).toMatch(/^503 LDAP_UNAVAILABLE: .*altnames/);
    },
  );

  test('several servers: one that is down, and one that does not answer, are passed over', async () => {
    const silent = await TcpRelay.start(slapd.ports.ldaps);
    silent.silence(true);
    onTestFinished(() => silent.die());
    const down = `ldaps://localhost:${await freePort()}`;
    const several = directory({ ...byName, url: [down, `ldaps://localhost:${silent.port}`, ldaps()], timeout: 10 });
    expect(await outcome(several, 'device-1')).toBe('device-1');
    // Those that failed are the last to be asked again.
    await silent.die();
    expect(await outcome(several, 'device-1')).toBe('device-1');
    const none = directory({ ...byName, url: [down] });
    expect(await outcome(none, 'device-1')).toMatch(/^503 LDAP_UNAVAILABLE: .*ECONNREFUSED/);
  });

  test('estuary doctor: each server is contacted, and the account looks at what it must read', async () => {
    const down = `ldaps://localhost:${await freePort()}`;
    const starttls = { url: [`ldap://localhost:${slapd.ports.ldap}`], starttls: true };
    const problems = async (changes: Partial<LdapSettings>) =>
      (await directory(changes).probe()).map(([, problem]) => problem);
    expect(await problems({ ...byName, url: [ldaps(), down] })).toEqual([
      undefined,
      expect.stringContaining('ECONNREFUSED'),
    ]);
    expect(await problems({ ...bySearch, ...starttls, required_group: GROUP })).toEqual([undefined]);
    for (const [changes, problem] of [
      [{ bind_password: new Secret(Buffer.from('wrong')) }, /^auth\.ldap\.bind_dn: .*0x31/],
      [{ search_base: 'ou=nothing,dc=example' }, /0x20/],
      [{ required_group: 'cn=nobody,dc=example' }, /^cn=nobody,dc=example: .*0x20/],
    ] as const)
      expect(await problems({ ...bySearch, ...changes })).toEqual([expect.stringMatching(problem)]);
    // The server shows nothing to anonymous searches.
    const { search_base, search_filter } = bySearch;
    expect(await problems({ search_base, search_filter })).toEqual([
      expect.stringMatching(/^ou=devices,dc=example(: .*0x20| does not exist)/),
    ]);
    expect(await directory(bySearch).probe(['cn=nobody,dc=example'])).toEqual([
      [ldaps(), expect.stringMatching(/^cn=nobody,dc=example: /)],
    ]);
  });

  test('a wrong password is not tried at the next server', async () => {
    const relay = await TcpRelay.start(slapd.ports.ldaps);
    onTestFinished(() => relay.die());
    const two = directory({ ...byName, url: [ldaps(), `ldaps://localhost:${relay.port}`] });
    expect(await outcome(two, 'device-1', 'wrong')).toMatch(/^refused/);
    expect(relay.traffic.sent).toBe(0);
  });

  test('no password goes over a connection whose StartTLS failed, and none is sent again in the clear', async () => {
    const heard: Buffer[] = [];
    const connections: Socket[] = [];
    // Answers StartTLS with success, and closes: the library then opens a connection anew.
    const impostor = createServer((socket) => {
      connections.push(socket);
      socket.on('error', () => undefined);
      socket.on('data', (chunk: Buffer) => {
        heard.push(chunk);
        if (heard.length === 1) socket.end(Buffer.from('300c02010278070a010004000400', 'hex'));
      });
    });
    await new Promise<void>((resolve) => impostor.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => new Promise<void>((resolve) => impostor.close(() => resolve())));
    const address = impostor.address();
    const port = typeof address === 'object' ? address?.port : undefined;
    const fooled = directory({ ...byName, url: [`ldap://127.0.0.1:${port}`], starttls: true });
    expect(await outcome(fooled, 'device-1')).toMatch(/^503 LDAP_UNAVAILABLE/);
    expect(connections).toHaveLength(1);
    expect(Buffer.concat(heard).includes(PASSWORD)).toBe(false);
  });
});
