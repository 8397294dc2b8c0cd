/** One account of a directory is one requester, and nobody gets the name of another account (docs/guides/gssapi.md). */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { AccountLookup } from '../../../src/auth/gssapi/account-lookup.ts';
import { SpnegoPlugin } from '../../../src/auth/gssapi/gssapi.ts';
import type { TicketVerifier } from '../../../src/auth/gssapi/kerberos-verifier.ts';
import { makePrincipal, parsePrincipal, PrincipalMapping } from '../../../src/auth/gssapi/principal.ts';
import { CredentialRefused } from '../../../src/auth/guarded-attempts.ts';
import { unavailable } from '../../../src/errors.ts';
import { oid, tlv } from '../../../src/pki/der/der.ts';
import { formatName } from '../../../src/pki/x509/name.ts';
import { apReq } from '../../support/ap-req.ts';
import { presenting } from '../../support/spnego.ts';

const REALM = 'CORP.EXAMPLE';
const SETTINGS = {
  filter: '(|(sAMAccountName={primary})(userPrincipalName={principal}))',
  attribute: 'sAMAccountName',
};
const TOKEN = tlv(0x60, oid('1.2.840.113554.1.2.2'), Buffer.from([1, 0]), apReq()).toString('base64');

type Entry = Readonly<Record<string, string | undefined>>;

const unescaped = (text: string): string =>
  text.replace(/\\([0-9a-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
const equal = (one: string | undefined, other: string): boolean => one?.toLowerCase() === other.toLowerCase();

/** A directory that knows only filters of the lookup with the default form, without regard to case, as Active Directory does. */
const directoryOf = (entries: readonly Entry[], asked: string[] = []) => ({
  lookUp: ({ filter }: { readonly filter: string }) => {
    asked.push(filter);
    const [, account = '', ...names] =
      /^\(\|\(\|\(sAMAccountName=(.*?)\)\(userPrincipalName=(.*?)\)\)(?:\(userPrincipalName=(.*?)\))?\)$/s.exec(
        filter,
      ) ?? [];
    const found = entries.filter(
      (entry) =>
        equal(entry['sAMAccountName'], unescaped(account)) ||
        names.some((upn: string | undefined) => upn !== undefined && equal(entry['userPrincipalName'], unescaped(upn))),
    );
    const [only, ...others] = found;
    if (only === undefined || others.length > 0) return Promise.reject(new CredentialRefused('not exactly one'));
    return Promise.resolve((name: string) => [only[name]].flatMap((value) => value ?? []));
  },
});

function requesterOf(entries: readonly Entry[], settings = SETTINGS, asked: string[] = []) {
  const accounts = new AccountLookup(directoryOf(entries, asked), settings, REALM);
  return (principal: string): Promise<string> =>
    accounts.accountOf(parsePrincipal(principal)).then(
      ({ text }) => text,
      (error: unknown) => (error instanceof CredentialRefused ? 'rejected' : String(error)),
    );
}

const ENTRIES: readonly Entry[] = [
  { sAMAccountName: 'Alice', userPrincipalName: 'alice.adams@corp.example', mail: 'a@corp.example' },
  { sAMAccountName: 'printer9$' },
  { sAMAccountName: 'svc', userPrincipalName: 'HTTP/est@CORP.EXAMPLE' },
  { sAMAccountName: 'twin', userPrincipalName: 'twin@CORP.EXAMPLE' },
  { sAMAccountName: 'other', userPrincipalName: 'TWIN@corp.example' },
  { sAMAccountName: 'hurt$&', userPrincipalName: '{primary}@corp.example' },
  { sAMAccountName: 'victim' },
  { sAMAccountName: 'mallory', userPrincipalName: 'Victim' },
];

test.each([
  ['alice@CORP.EXAMPLE', 'Alice@CORP.EXAMPLE'],
  ['ALICE@CORP.EXAMPLE', 'Alice@CORP.EXAMPLE'],
  ['alice@corp.example', 'Alice@CORP.EXAMPLE'],
  ['alice.adams\\@corp.example@CORP.EXAMPLE', 'Alice@CORP.EXAMPLE'],
  ['Alice.Adams@CORP.EXAMPLE', 'Alice@CORP.EXAMPLE'],
  ['HTTP/est@CORP.EXAMPLE', 'svc@CORP.EXAMPLE'],
  ['printer9$@CORP.EXAMPLE', 'printer9$@CORP.EXAMPLE'],
  ['hurt$&@CORP.EXAMPLE', 'hurt$&@CORP.EXAMPLE'],
  // Active Directory gives the computer printer9$ also tickets as printer9.
  ['printer9@CORP.EXAMPLE', 'rejected'],
  // Nor is a ticket that an account without a realm in its userPrincipalName gets as another one.
  ['victim@CORP.EXAMPLE', 'rejected'],
  ['alice@PARTNER.EXAMPLE', 'rejected'],
  ['alice/admin@CORP.EXAMPLE', 'rejected'],
  ['nobody@CORP.EXAMPLE', 'rejected'],
  ['twin@CORP.EXAMPLE', 'rejected'],
  ['*@CORP.EXAMPLE', 'rejected'],
  ['WELLKNOWN/ANONYMOUS@CORP.EXAMPLE', 'rejected'],
])('the principal %s is the account %s', async (principal, account) => {
  expect(await requesterOf(ENTRIES)(principal)).toBe(account);
});

test('values are escaped in the filter, and a placeholder in a value stays as it is', async () => {
  const asked: string[] = [];
  const ask = requesterOf([], SETTINGS, asked);
  await ask('a*)(b\\\\@CORP.EXAMPLE');
  await ask('{principal}@CORP.EXAMPLE');
  await ask("$'$&@CORP.EXAMPLE");
  expect(asked).toEqual([
    String.raw`(|(|(sAMAccountName=a\2a\29\28b\5c)(userPrincipalName=a\2a\29\28b\5c@CORP.EXAMPLE))(userPrincipalName=a\2a\29\28b\5c))`,
    '(|(|(sAMAccountName={principal})(userPrincipalName={principal}@CORP.EXAMPLE))(userPrincipalName={principal}))',
    "(|(|(sAMAccountName=$'$&)(userPrincipalName=$'$&@CORP.EXAMPLE))(userPrincipalName=$'$&))",
  ]);
});

test('another attribute gives the name, if the entry has exactly one value of it', async () => {
  const byMail = requesterOf(ENTRIES, { ...SETTINGS, attribute: 'mail' });
  expect(await byMail('alice@CORP.EXAMPLE')).toBe('a\\@corp.example@CORP.EXAMPLE');
  expect(await byMail('svc@CORP.EXAMPLE')).toBe('rejected');
});

/** What a ticket of a principal gets. */
async function outcome(principal: string, lookUp: ReturnType<typeof directoryOf>['lookUp']): Promise<string> {
  const verified = { principal: parsePrincipal(principal), replyToken: undefined };
  const verifier: TicketVerifier = { verify: () => Promise.resolve(verified) };
  const config = {
    service_principal: `HTTP/est@${REALM}`,
    principal_mapping: { 'ALICE@corp.example': 'CN=Alice Adams', 'printer9@CORP.EXAMPLE': 'CN=Printer' },
    default_template: 'CN={primary}',
    directory: SETTINGS,
  };
  const plugin = new SpnegoPlugin(
    verifier,
    new PrincipalMapping(config),
    new AccountLookup({ lookUp }, SETTINGS, REALM),
  );
  return plugin.authenticate(presenting(`Negotiate ${TOKEN}`)).then(
    (identity) => (identity === undefined ? 'nobody' : `${identity.requester} ${formatName(identity.subject)}`),
    (error: unknown) => `${String(Reflect.get(Object(error), 'status'))} ${String(Reflect.get(Object(error), 'code'))}`,
  );
}

test('the name of the directory is the requester, and the key of the mapping without regard to case', async () => {
  const { lookUp } = directoryOf(ENTRIES);
  expect(await outcome('aLiCe@CORP.EXAMPLE', lookUp)).toBe('gssapi:Alice@CORP.EXAMPLE CN=Alice Adams');
  expect(await outcome('printer9$@CORP.EXAMPLE', lookUp)).toBe('gssapi:printer9$@CORP.EXAMPLE CN=printer9$');
  expect(await outcome('printer9@CORP.EXAMPLE', lookUp)).toBe('401 GSSAPI_FAILED');
  const down = () => Promise.reject(unavailable('LDAP_UNAVAILABLE', 'down'));
  expect(await outcome('alice@CORP.EXAMPLE', down)).toBe('503 LDAP_UNAVAILABLE');
});

test('property: one account is one requester, and nobody is another account', async () => {
  const word = fc.string({
    unit: fc.constantFrom('a', 'b', 'B', 'ä', '$', '.', '-', '*', '(', '\\', '{'),
    minLength: 1,
    maxLength: 3,
  });
  const account = fc.record({
    name: word,
    isComputer: fc.boolean(),
    alias: fc.option(word, { nil: undefined }),
    suffix: fc.constantFrom('', `@${REALM.toLowerCase()}`),
  });
  const unlike = (one: { readonly name: string; readonly isComputer: boolean }): string =>
    `${one.name}${one.isComputer ? '$' : ''}`.toLowerCase();
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(account, { selector: unlike, maxLength: 5 }),
      fc.infiniteStream(fc.boolean()),
      async (list, flips) => {
        const spelled = (text: string): string =>
          Array.from(text, (character) => (flips.next().value === true ? character.toUpperCase() : character)).join('');
        const entries = list.map(({ name, isComputer, alias, suffix }) => ({
          sAMAccountName: `${name}${isComputer ? '$' : ''}`,
          ...(alias === undefined ? {} : { userPrincipalName: `${alias}${suffix}` }),
        }));
        const ask = requesterOf(entries);
        for (const [n, { sAMAccountName: name, userPrincipalName: upn }] of entries.entries()) {
          const own = makePrincipal([name], REALM).text;
          const isFree = (text: string): boolean =>
            entries.every(
              (other, at) =>
                at === n ||
                ![other.sAMAccountName, other.userPrincipalName].some(
                  (taken) => equal(taken, text) || equal(taken, `${text}@${REALM}`),
                ),
            );
          // What the KDC gives to the account: its name, its alias in both forms, and a computer's name without the $.
          const got = [
            makePrincipal([spelled(name)], REALM),
            ...(upn === undefined
              ? []
              : [makePrincipal([spelled(upn)], REALM), makePrincipal([spelled(upn).split('@')[0] ?? ''], REALM)]),
          ];
          for (const [way, { text }] of got.entries()) {
            const requester = await ask(text);
            expect([own, 'rejected']).toContain(requester);
            if (way === 0 && isFree(name)) expect(requester).toBe(own);
          }
          const bare = name.replace(/\$$/, '');
          if (bare !== name && bare !== '' && isFree(bare) && !equal(upn, `${bare}@${REALM}`))
            expect(await ask(makePrincipal([bare], REALM).text)).toBe('rejected');
        }
      },
    ),
  );
});
