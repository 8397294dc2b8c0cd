import { describe, expect, it } from 'vitest';
import {
  checkPrincipalMapping,
  makePrincipal,
  parsePrincipal,
  PrincipalMapping,
  type PrincipalMappingConfig,
} from '../../../src/auth/gssapi/principal.ts';
import { tlv } from '../../../src/pki/der/der.ts';
import { formatName, type Name, parseName } from '../../../src/pki/x509/name.ts';
import { opensslText } from '../../support/openssl.ts';

const SERVICE = 'HTTP/localhost@EXAMPLE.TEST';

function map(config: Omit<PrincipalMappingConfig, 'service_principal'>, principal: string): string {
  const mapped = new PrincipalMapping({ service_principal: SERVICE, ...config }).map(parsePrincipal(principal));
  return 'subject' in mapped ? formatName(mapped.subject) : `unmapped: ${mapped.unmapped}`;
}

/** OpenSSL's own reading of a name: one `type = value` a line, nothing escaped away. */
function opensslReading(name: Name): string[] {
  const text = opensslText(['asn1parse', '-inform', 'DER'], name.der);
  return text.split('\n').filter((line) => line.includes('OBJECT'));
}

describe('principal → subject', () => {
  const config = {
    principal_mapping: { 'alice@EXAMPLE.TEST': 'CN=Alice Adams,OU=People,O=Example' },
    default_template: 'CN={principal},O=Example',
  };

  it('an explicit entry of principal_mapping comes first', () => {
    expect(map(config, 'alice@EXAMPLE.TEST')).toBe('CN=Alice Adams,OU=People,O=Example');
  });

  it('otherwise gssapi.default_template is filled in', () => {
    expect(map(config, 'bob@EXAMPLE.TEST')).toBe('CN=bob@EXAMPLE.TEST,O=Example');
  });

  it('a realm may contain a slash', () => {
    expect(map(config, 'bob@EXAMPLE/TEST')).toBe('CN=bob@EXAMPLE/TEST,O=Example');
  });

  it.each([
    ['alice@EXAMPLE.TEST', 'alice'],
    ['alice/admin@EXAMPLE.TEST', 'alice/admin@EXAMPLE.TEST'],
    ['alice@PARTNER.TEST', 'alice@PARTNER.TEST'],
  ])('the short name of %s is %s', (principal, name) => {
    const mapping = new PrincipalMapping({ service_principal: SERVICE });
    expect(mapping.nameOf(parsePrincipal(principal))).toBe(name);
  });

  it('with neither the principal is not mapped', () => {
    expect(map({ principal_mapping: config.principal_mapping }, 'bob@EXAMPLE.TEST')).toMatch(/^unmapped: no entry/);
  });

  it('an entry matches the whole principal, with case and realm', () => {
    for (const other of ['Alice@EXAMPLE.TEST', 'alice@example.test', 'alice/admin@EXAMPLE.TEST', 'alice@OTHER.TEST'])
      expect(map({ principal_mapping: config.principal_mapping }, other)).toMatch(/^unmapped/);
  });

  it('{primary}, {instance} and {realm} are the parts of the principal', () => {
    const template = 'CN={instance},OU={primary},O={realm}';
    expect(map({ default_template: template }, 'host/a.example.test@EXAMPLE.TEST')).toBe(
      'CN=a.example.test,OU=host,O=EXAMPLE.TEST',
    );
  });

  it('a placeholder may stand inside a longer value, twice, and in a multi-valued RDN', () => {
    expect(map({ default_template: 'CN=user {primary}+UID={primary},DC=test' }, 'bob@EXAMPLE.TEST')).toBe(
      'CN=user bob+UID=bob,DC=test',
    );
  });

  it('a text that looks like a placeholder is not filled in twice', () => {
    expect(map({ default_template: 'CN={primary},O={realm}' }, '{realm}@EXAMPLE.TEST')).toBe(
      'CN={realm},O=EXAMPLE.TEST',
    );
  });

  it.each([
    ['a foreign realm without {realm}', 'CN={primary}', 'alice@PARTNER.TEST', /another realm/],
    ['an instance without {instance}', 'CN={primary}', 'alice/admin@EXAMPLE.TEST', /has an instance/],
    ['{instance} without an instance', 'CN={instance}', 'alice@EXAMPLE.TEST', /no instance/],
    ['three components without {principal}', 'CN={primary},OU={instance}', 'a/b/c@EXAMPLE.TEST', /more than two/],
    ['an anonymous ticket (RFC 8062)', 'CN={principal}', 'WELLKNOWN/ANONYMOUS@WELLKNOWN:ANONYMOUS', /anonymous/],
  ])('a template never confuses two principals: %s', (_, template, principal, reason) => {
    expect(map({ default_template: template }, principal)).toMatch(reason);
  });

  it('{principal} and {realm} keep principals of other realms apart', () => {
    expect(map({ default_template: 'CN={primary},O={realm}' }, 'alice@PARTNER.TEST')).toBe('CN=alice,O=PARTNER.TEST');
    expect(map({ default_template: 'CN={principal}' }, 'a/b/c@PARTNER.TEST')).toBe('CN=a/b/c@PARTNER.TEST');
  });
});

describe('fold_case', () => {
  const folding = { service_principal: SERVICE, fold_case: true, default_template: 'CN={primary},O=Example' };
  const mapping = new PrincipalMapping({
    ...folding,
    principal_mapping: { 'Bob@Example.Test': 'CN=Bob Brown', 'host/Web@EXAMPLE.TEST': 'CN=web' },
  });
  const subjectOf = (text: string): [written: string, name: string, subject: string] => {
    const principal = mapping.written(parsePrincipal(text));
    const mapped = mapping.map(principal);
    return [
      principal.text,
      mapping.nameOf(principal),
      'subject' in mapped ? formatName(mapped.subject) : mapped.unmapped,
    ];
  };

  it.each(['alice@EXAMPLE.TEST', 'ALICE@EXAMPLE.TEST', 'ALice@example.test'])('%s is one requester', (text) => {
    expect(subjectOf(text)).toEqual(['alice@EXAMPLE.TEST', 'alice', 'CN=alice,O=Example']);
  });

  it('an entry of principal_mapping matches in any case, and occurs once', () => {
    for (const text of ['bob@EXAMPLE.TEST', 'BOB@example.test']) expect(subjectOf(text)[2]).toBe('CN=Bob Brown');
    expect(subjectOf('HOST/WEB@EXAMPLE.TEST')[2]).toBe('CN=web');
    const principal_mapping = { 'bob@EXAMPLE.TEST': 'CN=Bob', 'BOB@EXAMPLE.TEST': 'CN=Another' };
    expect(checkPrincipalMapping({ ...folding, principal_mapping })).toEqual([
      { key: 'principal_mapping."BOB@EXAMPLE.TEST"', message: 'names the same principal as another entry' },
    ]);
    expect(checkPrincipalMapping({ ...folding, fold_case: false, principal_mapping })).toEqual([]);
  });

  it('merges no realms, computers, or instances with other principals', () => {
    expect(subjectOf('alice@PARTNER.TEST')[2]).toMatch(/another realm/);
    expect(subjectOf('ALICE/ADMIN@EXAMPLE.TEST')[2]).toMatch(/has an instance/);
    expect(subjectOf('PRINTER9$@EXAMPLE.TEST')[2]).toBe('CN=printer9$,O=Example');
  });

  it('merges no letters but the two cases of one: a KDC tells the Kelvin sign from a k', () => {
    const letters = new Map<string, string[]>();
    for (let code = 0x20; code < 0xd800; code++) {
      const letter = String.fromCharCode(code);
      const { components, realm } = mapping.written(makePrincipal([letter], letter));
      for (const key of [`name ${components.join()}`, `realm ${realm}`])
        letters.set(key, [...(letters.get(key) ?? []), letter]);
    }
    const merged = [...letters.values()].filter(({ length }) => length > 1);
    for (const [one = '', other = '', ...more] of merged) {
      expect(more).toEqual([]);
      expect([one.toLowerCase() === other, one.toUpperCase() === other]).toContain(true);
    }
    expect(letters.get('name k')).toEqual(['K', 'k']);
  });
});

/** Name components and realm of principals that try to be more than one attribute value. */
const HOSTILE: readonly (readonly [components: readonly string[], realm: string])[] = [
  [['alice,O=Evil'], 'EXAMPLE.TEST'],
  [['alice+OU=Admins'], 'EXAMPLE.TEST'],
  [['alice\\,O=Evil'], 'EXAMPLE.TEST'],
  [['alice\\'], 'EXAMPLE.TEST'],
  [['alice\\\\,CN=root'], 'EXAMPLE.TEST'],
  [['"alice",O=Evil,CN="'], 'EXAMPLE.TEST'],
  [['alice;O=Evil'], 'EXAMPLE.TEST'],
  [['#0c0461646d69'], 'EXAMPLE.TEST'],
  [[' alice'], 'EXAMPLE.TEST'],
  [['alice '], 'EXAMPLE.TEST'],
  [['   '], 'EXAMPLE.TEST'],
  [['<alice>=CN=root'], 'EXAMPLE.TEST'],
  [['alice\0.evil.test'], 'EXAMPLE.TEST'],
  [['alice\nCN=root'], 'EXAMPLE.TEST'],
  [['alice\r\nO=Evil'], 'EXAMPLE.TEST'],
  [['\t\b'], 'EXAMPLE.TEST'],
  [['alice\x1b[2Jroot'], 'EXAMPLE.TEST'],
  [['alice\x7f\x80\x9f'], 'EXAMPLE.TEST'],
  [['alice@CORP.TEST'], 'EXAMPLE.TEST'],
  [['alice/admin'], 'EXAMPLE.TEST'],
  [['alice'], 'EXAMPLE.TEST,O=Evil'],
  [['alice'], 'EXAMPLE.TEST+CN=root'],
  [['host', 'a.test,OU=Admins'], 'EXAMPLE.TEST'],
  [['host', '/CN=root/O=Evil'], 'EXAMPLE.TEST'],
  [['{principal}{realm}'], 'EXAMPLE.TEST'],
  [['{', '}'], 'EXAMPLE.TEST'],
  [['$&$1$`'], 'EXAMPLE.TEST'],
  [['a'.repeat(65)], 'EXAMPLE.TEST'],
  [['a'.repeat(5000)], 'EXAMPLE.TEST'],
  [['\u202ealice\u2028,O=Evil'], 'EXAMPLE.TEST'],
  [['аlice,О=Evil'], 'EXAMPLE.TEST'],
  [['\ud800alone'], 'EXAMPLE.TEST'],
  [['\\2cO=Evil'], 'EXAMPLE.TEST'],
  [['0'], '0'],
];

const TEMPLATES = [
  'CN={principal},O=Example',
  'CN={primary},O={realm}',
  'CN={instance},OU={primary},O={realm}',
  'CN=x {primary} x+UID={primary},DC={realm}',
  'serialNumber={primary},O={realm}',
];

describe('no principal can inject an RDN', () => {
  it.each(HOSTILE.map(([components, realm]) => makePrincipal(components, realm)))('$text', (principal) => {
    expect(parsePrincipal(principal.text)).toEqual(principal);
    for (const template of TEMPLATES) {
      const mapping = new PrincipalMapping({ service_principal: SERVICE, default_template: template });
      const mapped = mapping.map(parsePrincipal(principal.text));
      if (!('subject' in mapped)) continue;
      const expected = new PrincipalMapping({ service_principal: SERVICE, default_template: template }).map(
        parsePrincipal(principal.components.length > 1 ? 'p/i@EXAMPLE.TEST' : 'p@EXAMPLE.TEST'),
      );
      if (!('subject' in expected)) throw new Error('the harmless principal must be mapped');
      const shape = (name: Name): string[][] => name.rdns.map((rdn) => rdn.map(({ type, tag }) => `${type} ${tag}`));
      // Read back from the DER by our reader and by OpenSSL's: the template's RDNs and types, no more, no fewer.
      const read = parseName(mapped.subject.der);
      expect(shape(read).map((rdn) => rdn.toSorted())).toEqual(shape(expected.subject).map((rdn) => rdn.toSorted()));
      expect(opensslReading(mapped.subject).length).toBe(opensslReading(expected.subject).length);
      for (const { text } of read.rdns.flat()) {
        expect(text).not.toBe('');
        expect(text).not.toMatch(/\p{Cc}/u);
      }
    }
  });

  it('the parts of a mapped principal stand in the values unchanged', () => {
    expect(map({ default_template: 'CN={primary},O={realm}' }, 'alice,O=Evil@EXAMPLE.TEST')).toBe(
      'CN=alice\\,O=Evil,O=EXAMPLE.TEST',
    );
  });

  it('a value too long for its attribute, or with a control character, is not mapped', () => {
    expect(map({ default_template: 'CN={primary}' }, `${'a'.repeat(65)}@EXAMPLE.TEST`)).toMatch(/more than 64/);
    expect(map({ default_template: 'CN={primary}' }, 'a\\n@EXAMPLE.TEST')).toMatch(/control character/);
    expect(map({ default_template: 'CN={primary}' }, 'a\u202eb@EXAMPLE.TEST')).toMatch(/bidirectional/);
    expect(map({ default_template: 'serialNumber={primary}' }, 'a*b@EXAMPLE.TEST')).toMatch(/invalid name/);
  });
});

describe('the mapping is checked at start-up', () => {
  it.each([
    '{principal}',
    '{primary}=alice,O=Example',
    'CN={principal',
    'CN=principal}',
    'CN={princpal}',
    'CN={client_id}',
    'CN={principal},OU={cert.CN}',
    'CN={}',
    'CN={Principal}',
    'CN={principal},{realm}',
    'CN={principal},',
    ',CN={principal}',
    'CN={principal},O=',
    'CN={principal}+',
    'CN={principal};O=Example',
    'CN="{principal}"',
    'CN={principal}\\',
    'CN={principal}\\zz',
    'XY={principal}',
    'CN=#0c{principal}',
    'CN=everybody',
    'O={realm}',
    'CN={{principal}}',
    'C=D{principal}E',
    'CN={principal},O=a\\00b',
    'CN={principal},O=#3000',
    '',
    '   ',
  ])('an invalid template is refused: %s', (template) => {
    expect(checkPrincipalMapping({ service_principal: SERVICE, default_template: template })).toEqual([
      { key: 'default_template', message: expect.stringMatching(/./) as string },
    ]);
    expect(() => new PrincipalMapping({ default_template: template })).toThrow(
      expect.objectContaining({ code: 'GSSAPI_MISCONFIGURED' }),
    );
  });

  it.each([
    ['alice', 'CN=Alice', /name@REALM/],
    ['alice@', 'CN=Alice', /no realm/],
    ['@EXAMPLE.TEST', 'CN=Alice', /empty name component/],
    ['a@b@c', 'CN=Alice', /more than one realm/],
    ['alice@EXAMPLE.TEST\\', 'CN=Alice', /escape/],
    ['alice@EXAMPLE.TEST', 'Alice', /type=value/],
    ['alice@EXAMPLE.TEST', '', /empty subject/],
    ['alice@EXAMPLE.TEST', 'CN=Alice,O=', /empty value/],
    ['alice@EXAMPLE.TEST', 'CN=Alice,C=Germany', /more than 2/],
    ['alice@EXAMPLE.TEST', 'CN=Alice\\0aO=Evil', /control character/],
    ['alice@EXAMPLE.TEST', 'CN=Ali\u200bce', /zero-width/],
    ['alice@EXAMPLE.TEST', 'CN=Alice+CN=Root', /more than once in one RDN/],
    ['alice@EXAMPLE.TEST', Array.from({ length: 65 }, (_, i) => `OU=${i}`).join(), /more than 64 attributes/],
  ])('an entry %s = %s is refused', (principal, subject, problem) => {
    expect(checkPrincipalMapping({ principal_mapping: { [principal]: subject } })).toEqual([
      {
        key: `principal_mapping.${JSON.stringify(principal)}`,
        message: expect.stringMatching(problem) as string,
      },
    ]);
  });

  it('two entries for one principal are refused', () => {
    const principal_mapping = { 'a/b@EXAMPLE.TEST': 'CN=One', '\\a/b@EXAMPLE.TEST': 'CN=Two' };
    expect(checkPrincipalMapping({ principal_mapping })).toEqual([
      { key: 'principal_mapping."\\\\a/b@EXAMPLE.TEST"', message: 'names the same principal as another entry' },
    ]);
  });

  it('every problem is reported at once', () => {
    const config = { principal_mapping: { x: 'CN=X', y: 'CN=Y' }, default_template: 'CN' };
    expect(checkPrincipalMapping(config).map(({ key }) => key)).toEqual([
      'principal_mapping."x"',
      'principal_mapping."y"',
      'default_template',
    ]);
  });

  it('a hex value of a string type is a constant like another', () => {
    const cn = tlv(0x13, Buffer.from('Example')).toString('hex');
    expect(map({ default_template: `CN={primary},O=#${cn}` }, 'bob@EXAMPLE.TEST')).toBe('CN=bob,O=Example');
  });
});
