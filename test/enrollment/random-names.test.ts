/** Random requests get only names that a short, independent oracle allows. */
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ProfileConfig } from '../../src/config/schema.ts';
import type { ClientIdBinding } from '../../src/auth/identity.ts';
import type { EstEnrollment } from '../../src/enrollment/request.ts';
import { ia5String, utf8String } from '../../src/pki/der/der.ts';
import type { Certificate } from '../../src/pki/x509/certificate.ts';
import { attribute, buildCsr, dns, email, extensionRequest, ip, makeKey, name, san } from '../support/csr.ts';
import { EveryRequester, hasClientId, isByCertificate, LABELS, OWN, PRINCIPAL, REQUESTERS } from './every-requester.ts';

const RUNS = 600;

/** What a CN is, as people and clients that compare host names read it. */
type Kind = 'dns' | 'ip' | 'email' | 'word';
/** CNs that are read as another text. */
const READ_AS: ReadonlyMap<string, string> = new Map([
  ['b.example.', 'b.example'],
  ['.b.example', 'b.example'],
  [' b.example ', 'b.example'],
  ['b．example', 'b.example'],
  ['b。example', 'b.example'],
  ['ｂ.example', 'b.example'],
  ['mu\u0308nchen.example', 'münchen.example'],
  ['10.0.0.1 ', '10.0.0.1'],
  ['１０.0.0.1', '10.0.0.1'],
]);
const KINDS: ReadonlyMap<string, Kind> = new Map([
  [OWN, 'dns'],
  ['A.EXAMPLE', 'dns'],
  ['b.example', 'dns'],
  ['x.a.example', 'dns'],
  ['*.a.example', 'dns'],
  ['*w.a.example', 'dns'],
  ['*', 'dns'],
  ['münchen.example', 'dns'],
  ['192.0.2.1', 'ip'],
  ['10.0.0.1', 'ip'],
  ['2001:db8::1', 'ip'],
  ['::ffff:192.0.2.1', 'ip'],
  ['b@b.example', 'email'],
  [PRINCIPAL, 'email'],
  ['a', 'word'],
  ['John Q. Public', 'word'],
]);
const texts = fc.oneof(
  { weight: 5, arbitrary: fc.constant(OWN) },
  { weight: 4, arbitrary: fc.constantFrom(...KINDS.keys()) },
  { weight: 2, arbitrary: fc.constantFrom(...READ_AS.keys()) },
  { weight: 1, arbitrary: fc.domain() },
);
const kindOf = (text: string): Kind => KINDS.get(text) ?? 'dns';
const dnsNames = texts.filter((text) => /^[\x20-\x7e]+$/.test(text));

const TYPES = {
  CN: '2.5.4.3',
  UID: '0.9.2342.19200300.100.1.1',
  O: '2.5.4.10',
  emailAddress: '1.2.840.113549.1.9.1',
} as const;
type Type = keyof typeof TYPES;
interface Attribute {
  readonly type: Type;
  readonly text: string;
}
const oneAttribute: fc.Arbitrary<Attribute> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ type: fc.constant<Type>('CN'), text: texts }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constantFrom<Type>('UID', 'O'), text: texts }) },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant<Type>('emailAddress'),
      text: fc.constantFrom('a@a.example', 'b@b.example', OWN),
    }),
  },
);

/** Patterns of `san.dns`, and what they stand for to whom has the names of a.example. */
const PATTERNS = {
  none: { dns: undefined, allows: () => true },
  fixed: { dns: ['.*\\.example'], allows: (text: string) => text.toLowerCase().endsWith('.example') },
  placeholder: { dns: ['x\\.{id}'], allows: (text: string, id: string) => text.toLowerCase() === `x.${id}` },
} as const;

const ALT_NAMES: ProfileConfig['san']['allowed'][number][] = ['dns', 'ip', 'email'];

const asked = fc
  .record({
    requester: fc.constantFrom(...REQUESTERS),
    label: fc.constantFrom(...LABELS),
    operation: fc.constantFrom<EstEnrollment[]>('simpleenroll', 'simpleenroll', 'simplereenroll'),
    binding: fc.constantFrom<ClientIdBinding>('off', 'cn', 'san'),
    mtlsSubject: fc.constantFrom<ProfileConfig['mtls_subject'][]>('any', 'same', 'auto'),
    template: fc.constantFrom(undefined, undefined, undefined, 'CN={id},O=Made'),
    added: fc.constantFrom(undefined, undefined, 'dns:{id}', 'email:device@{id}'),
    allowed: fc.oneof(fc.constant(ALT_NAMES), fc.subarray(ALT_NAMES)),
    pattern: fc.constantFrom<(keyof typeof PATTERNS)[]>('none', 'none', 'fixed', 'placeholder'),
    wildcards: fc.boolean(),
    subject: fc.oneof<fc.Arbitrary<readonly Attribute[]>[]>(
      fc.constant<readonly Attribute[]>([{ type: 'CN', text: OWN }]),
      fc.array<Attribute>(oneAttribute, { minLength: 1, maxLength: 3 }),
    ),
    dnsNames: fc.uniqueArray(dnsNames, { maxLength: 2 }),
    emails: fc.uniqueArray(fc.constantFrom('a@a.example', 'b@b.example'), { maxLength: 1 }),
    addresses: fc.uniqueArray(fc.constantFrom('192.0.2.1', '10.0.0.1'), { maxLength: 1 }),
  })
  // Who has no certificate has nothing to renew.
  .map((request) =>
    isByCertificate(request.requester) ? request : { ...request, operation: 'simpleenroll' as const },
  );
type Asked = typeof asked extends fc.Arbitrary<infer One> ? One : never;

interface Names {
  readonly subject: readonly { readonly type: string; readonly text: string }[];
  readonly sans: readonly { readonly kind: string; readonly text: string }[];
}

/** Whether a certificate may hold these names, whatever was asked (docs/guides/names.md). */
function mayHold(one: Asked, { subject, sans }: Names): boolean {
  const { requester, label, operation, binding, mtlsSubject, template, added, allowed, pattern, wildcards } = one;
  const byCertificate = isByCertificate(requester);
  if (byCertificate && ![`certificate of ${label}`, 'certificate of a maker'].includes(requester)) return false;
  const cns = subject.filter(({ type }) => type === 'CN').map(({ text }) => text);
  const isOwnSubject = subject.length === 1 && cns[0] === OWN;
  const isAllowedWildcard = (text: string): boolean =>
    !text.includes('*') || (wildcards && /^\*\.[^*.]+\.[^*]+$/.test(text));
  const allowedInSan = (kind: string, text: string): boolean =>
    allowed.some((known) => known === kind) &&
    (kind !== 'dns' || (isAllowedWildcard(text) && PATTERNS[pattern].allows(text, id))) &&
    (kind !== 'ip' || text.startsWith('192.0.2.'));
  const id = requester === 'gssapi' ? PRINCIPAL : OWN;
  const isAdded = (kind: string, text: string): boolean =>
    operation === 'simpleenroll' &&
    ((added === 'dns:{id}' && kind === 'dns' && text.toLowerCase() === id) ||
      (added === 'email:device@{id}' && kind === 'email' && text === `device@${id}`));

  // The policy, in the subjectAltName as in the subject.
  for (const { kind, text } of sans) if (!isAdded(kind, text) && !allowedInSan(kind, text)) return false;
  for (const { type, text } of subject) {
    const read = READ_AS.get(text) ?? text;
    const kind = type === 'emailAddress' ? 'email' : type === 'CN' ? kindOf(read) : 'word';
    if (kind === 'word' || (kind === 'email' && type === 'CN')) continue;
    if (!isAdded(kind, read) && !allowedInSan(kind, read)) return false;
  }
  for (const { kind, text } of sans) if (kind === 'dns' && kindOf(text) === 'ip') return false;

  const isOwnDns = (kind: string, text: string): boolean => kind === 'dns' && text.toLowerCase() === OWN;
  if (operation === 'simplereenroll')
    return (
      requester === `certificate of ${label}` &&
      isOwnSubject &&
      sans.length === 1 &&
      sans.every(({ kind, text }) => isOwnDns(kind, text))
    );

  // Templates; RFC 4514 writes the last attribute first.
  const isMade = template !== undefined;
  if (
    isMade &&
    JSON.stringify(subject) !==
      JSON.stringify([
        { type: 'O', text: 'Made' },
        { type: 'CN', text: id },
      ])
  )
    return false;
  if (added !== undefined && !sans.some(({ kind, text }) => isAdded(kind, text))) return false;

  // Bound names.
  const isSame = mtlsSubject === 'same' || (mtlsSubject === 'auto' && requester !== 'certificate of a maker');
  const isBound = requester === 'gssapi' || (hasClientId(requester) && binding !== 'off') || (byCertificate && isSame);
  if (!isBound) return true;
  const byPlaceholder = (kind: string, text: string): boolean =>
    pattern === 'placeholder' && kind === 'dns' && text.toLowerCase() === `x.${id}`;
  if (!sans.every(({ kind, text }) => isOwnDns(kind, text) || isAdded(kind, text) || byPlaceholder(kind, text)))
    return false;
  if (hasClientId(requester) && binding === 'san' && !sans.some(({ kind, text }) => isOwnDns(kind, text))) return false;
  if (isMade) return true;
  if (!hasClientId(requester)) return isOwnSubject;
  return (
    (binding !== 'cn' || (cns.length === 1 && cns[0] === OWN)) &&
    subject.every(({ type, text }) => type === 'O' || text === OWN)
  );
}

function csrOf({ subject, dnsNames: names, emails, addresses }: Asked): Buffer {
  const octets = (address: string): Buffer => ip(...address.split('.').map(Number));
  const sans = [...names.map(dns), ...emails.map(email), ...addresses.map(octets)];
  return buildCsr(key, {
    subject: name(
      ...subject.map(({ type, text }) =>
        attribute(TYPES[type], type === 'emailAddress' ? ia5String(text) : utf8String(text)),
      ),
    ),
    attributes: sans.length === 0 ? [] : [extensionRequest(san(...sans))],
  });
}

function namesOf({ subject, subjectAltNames }: Certificate): Names {
  const types = new Map<string, string>(Object.entries(TYPES).map(([type, oid]) => [oid, type]));
  return {
    subject: subject.rdns.flat().map(({ type, text }) => ({ type: types.get(type) ?? type, text })),
    sans: subjectAltNames.map((san) => ({ kind: san.kind, text: san.kind === 'other' ? '' : san.value })),
  };
}

const key = makeKey();
let requesters: EveryRequester;
beforeAll(async () => {
  requesters = await EveryRequester.make();
});
afterAll(() => requesters.end());

test(
  `of ${RUNS} requests at random none is issued names that the rules do not allow`,
  { timeout: 300_000 },
  async () => {
    let issuedToAll = 0;
    await fc.assert(
      fc.asyncProperty(asked, async (one) => {
        const { requester, label, operation, binding, mtlsSubject, template, added, allowed, pattern, wildcards } = one;
        const { dns: dnsPatterns } = PATTERNS[pattern];
        const issued = await requesters.send({
          requester,
          label,
          binding,
          operation,
          names: {
            mtls_subject: mtlsSubject,
            subject: template === undefined ? {} : { template },
            san: {
              allowed,
              wildcards,
              ip: ['192.0.2.0/24'],
              ...(dnsPatterns && { dns: dnsPatterns }),
              ...(added === undefined ? {} : { add: [added] }),
            },
          },
          csr: csrOf(one),
        });
        if (typeof issued === 'number') return;
        issuedToAll += 1;
        const names = namesOf(issued);
        expect(mayHold(one, names), JSON.stringify(names)).toBe(true);
      }),
      { numRuns: RUNS, seed: 13 },
    );
    // Something is issued: a server that refuses everything proves nothing.
    expect(issuedToAll).toBeGreaterThan(RUNS / 20);
  },
);
