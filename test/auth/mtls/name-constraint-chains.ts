/**
 * Chains with name constraints (RFC 5280 §4.2.1.10).
 *
 * Longer than other files: the chains are one table.
 */
import {
  contextConstructed,
  explicit,
  ia5String,
  implicitPrimitive,
  integer,
  oid,
  sequence,
  tlv,
  utf8String,
} from '../../../src/pki/der/der.ts';
import type { Extension } from '../../../src/pki/x509/extensions.ts';
import type { GeneralName } from '../../../src/pki/x509/general-name.ts';
import { parseDistinguishedName } from '../../../src/pki/x509/name.ts';
import { OID } from '../../../src/pki/der/oids.ts';
import {
  dns,
  email,
  extension,
  ip,
  makeCa,
  makeClient,
  subjectAltName,
  uri,
  type Issuer,
} from '../../support/certificates.ts';
import { CLIENT_USAGES as usages, UNKNOWN, type Chain } from '../chain.ts';

const subtree = (base: Buffer): Buffer => sequence(base);
const dnsBase = (name: string): Buffer => subtree(implicitPrimitive(2, Buffer.from(name)));
const emailBase = (name: string): Buffer => subtree(implicitPrimitive(1, Buffer.from(name)));
const uriBase = (name: string): Buffer => subtree(implicitPrimitive(6, Buffer.from(name)));
const ipBase = (hex: string): Buffer => subtree(implicitPrimitive(7, Buffer.from(hex, 'hex')));
const dnBase = (name: string): Buffer => subtree(explicit(4, parseDistinguishedName(name).der));
const otherBase = (): Buffer => subtree(tlv(contextConstructed(0), oid('1.2.3.4'), explicit(0, ia5String('x'))));

function nameConstraints(permitted: readonly Buffer[], excluded: readonly Buffer[] = []): Extension {
  const part = (n: number, subtrees: readonly Buffer[]): Buffer[] =>
    subtrees.length === 0 ? [] : [tlv(contextConstructed(n), ...subtrees)];
  return extension(OID.nameConstraints, true, sequence(...part(0, permitted), ...part(1, excluded)));
}

/** UTF8String in an otherName of the type SmtpUTF8Mailbox (RFC 9598). */
const smtpUtf8Mailbox = (text: string): GeneralName => ({
  kind: 'other',
  tag: contextConstructed(0),
  der: tlv(contextConstructed(0), oid('1.3.6.1.5.5.7.8.9'), explicit(0, utf8String(text))),
});

const empty = (...parts: Buffer[]): Extension => extension(OID.nameConstraints, true, sequence(...parts));

const RFC = 'RFC 5280 §4.2.1.10 has no such name or constraint; OpenSSL compares the text';

/** Chains whose verdict hangs on a name's form; with OpenSSL's, where it is another. */
const formRows: readonly [string, Extension, Parameters<typeof subtreeLeaf>[0], boolean, string?][] = [
  [
    'a wildcard that stands for an excluded name',
    nameConstraints([], [dnsBase('bar.example.com')]),
    { sans: [dns('*.Example.com')] },
    false,
    'RFC 9525 §6.3: *.example.com stands for bar.example.com; OpenSSL compares the text',
  ],
  ['a wildcard next to it', nameConstraints([], [dnsBase('bar.example.com')]), { sans: [dns('*.example.net')] }, true],
  ['a wildcard of two levels above', nameConstraints([], [dnsBase('a.b.example')]), { sans: [dns('*.example')] }, true],
  ['a wildcard within', nameConstraints([dnsBase('example.com')]), { sans: [dns('*.example.com')] }, true],
  ['a wildcard above', nameConstraints([dnsBase('bar.example.com')]), { sans: [dns('*.example.com')] }, false],
  [
    'a DNS name with a trailing dot',
    nameConstraints([], [dnsBase('bad.example')]),
    { sans: [dns('x.bad.example.')] },
    false,
    RFC,
  ],
  [
    'a CN with a trailing dot',
    nameConstraints([], [dnsBase('bad.example')]),
    { subject: 'CN=x.bad.example.' },
    false,
    RFC,
  ],
  [
    'a CN with a wildcard',
    nameConstraints([], [dnsBase('bad.example')]),
    { subject: 'CN=*.bad.example' },
    false,
    'OpenSSL takes it for no host name',
  ],
  [
    'a mailbox with a trailing dot',
    nameConstraints([], [emailBase('bad.example')]),
    { sans: [email('a@bad.example.')] },
    false,
    RFC,
  ],
  [
    'a URI with a trailing dot',
    nameConstraints([], [uriBase('bad.example')]),
    { sans: [uri('https://bad.example./x')] },
    false,
    RFC,
  ],
  [
    'a URI with a percent-encoded host',
    nameConstraints([], [uriBase('bad.example')]),
    { sans: [uri('https://bad%2eexample/x')] },
    false,
    RFC,
  ],
  [
    'a URI with a backslash in its user',
    nameConstraints([uriBase('good.example')]),
    { sans: [uri('https://bad.example\\@good.example/')] },
    false,
  ],
  [
    'a DNS name with a leading dot',
    nameConstraints([dnsBase('example.com')]),
    { sans: [dns('.example.com')] },
    false,
    RFC,
  ],
  ['an empty label', nameConstraints([dnsBase('example.com')]), { sans: [dns('a..example.com')] }, false, RFC],
  [
    'a DNS name with a space',
    nameConstraints([dnsBase('example.com')]),
    { sans: [dns('a b.example.com')] },
    false,
    RFC,
  ],
  ['an empty DNS name', nameConstraints([], [dnsBase('example.com')]), { sans: [dns('')] }, false, RFC],
  ['an underscore', nameConstraints([dnsBase('example.com')]), { sans: [dns('_a.example.com')] }, true],
  [
    'a mailbox with two at signs',
    nameConstraints([emailBase('example.com')]),
    { sans: [email('a@b@example.com')] },
    false,
    RFC,
  ],
  [
    'a mailbox without a local part',
    nameConstraints([emailBase('example.com')]),
    { sans: [email('@example.com')] },
    false,
    RFC,
  ],
  ['an invalid mailbox', nameConstraints([], [emailBase('bad.example')]), { sans: [email('bad.example')] }, false],
  [
    'a mailbox beyond ASCII outside',
    nameConstraints([emailBase('example.com')]),
    { sans: [smtpUtf8Mailbox('ä@other.example')] },
    false,
  ],
  ['empty permitted subtrees', empty(tlv(contextConstructed(0))), {}, false, RFC],
  ['empty excluded subtrees', empty(tlv(contextConstructed(1))), {}, false, RFC],
  ['no subtrees', empty(), {}, false, RFC],
  ['a wildcard as a base', nameConstraints([dnsBase('*.example.com')]), { sans: [dns('a.example.com')] }, false],
  [
    'an invalid mailbox as a base',
    nameConstraints([emailBase('a@b@example.com')]),
    { sans: [email('a@example.com')] },
    false,
  ],
  ['an address without a mask as a base', nameConstraints([ipBase('0a000000')]), { sans: [ip('10.0.0.0')] }, false],
  ['a mask with holes', nameConstraints([ipBase('0a000001ff0000ff')]), { sans: [ip('10.2.3.1')] }, false, RFC],
];

const constraintRows: readonly [string, Extension, Parameters<typeof subtreeLeaf>[0], boolean][] = [
  ['a DNS name within', nameConstraints([dnsBase('example.com')]), { sans: [dns('a.example.com')] }, true],
  ['the DNS name itself', nameConstraints([dnsBase('example.com')]), { sans: [dns('EXAMPLE.com')] }, true],
  [
    'a DNS name that only ends alike',
    nameConstraints([dnsBase('example.com')]),
    { sans: [dns('badexample.com')] },
    false,
  ],
  [
    'a DNS base with a dot, a name below',
    nameConstraints([dnsBase('.example.com')]),
    { sans: [dns('a.example.com')] },
    true,
  ],
  [
    'a DNS base with a dot, the domain itself',
    nameConstraints([dnsBase('.example.com')]),
    { sans: [dns('example.com')] },
    false,
  ],
  ['an excluded DNS name', nameConstraints([], [dnsBase('bad.example')]), { sans: [dns('x.bad.example')] }, false],
  [
    'one of two DNS names outside',
    nameConstraints([dnsBase('a.example')]),
    { sans: [dns('a.example'), dns('b.example')] },
    false,
  ],
  [
    'no DNS name, but a CN that looks like one',
    nameConstraints([dnsBase('a.example')]),
    { subject: 'CN=host.b.example' },
    false,
  ],
  ['no DNS name, and a CN that is not one', nameConstraints([dnsBase('a.example')]), { subject: 'CN=Device 17' }, true],
  ['an address within', nameConstraints([ipBase('0a000000ff000000')]), { sans: [ip('10.1.2.3')] }, true],
  ['an address outside', nameConstraints([ipBase('0a000000ff000000')]), { sans: [ip('11.1.2.3')] }, false],
  [
    'an IPv6 address where only IPv4 is permitted',
    nameConstraints([ipBase('0a000000ff000000')]),
    { sans: [ip('2001:db8::1')] },
    false,
  ],
  [
    'an excluded IPv6 address',
    nameConstraints([], [ipBase('20010db8000000000000000000000000ffffffff000000000000000000000000')]),
    { sans: [ip('2001:db8::1')] },
    false,
  ],
  ['a mailbox of the host', nameConstraints([emailBase('example.com')]), { sans: [email('a@Example.com')] }, true],
  [
    'a mailbox of a host below',
    nameConstraints([emailBase('example.com')]),
    { sans: [email('a@x.example.com')] },
    false,
  ],
  ['a mailbox of the domain', nameConstraints([emailBase('.example.com')]), { sans: [email('a@x.example.com')] }, true],
  ['exactly the mailbox', nameConstraints([emailBase('a@example.com')]), { sans: [email('a@example.com')] }, true],
  ['another mailbox', nameConstraints([emailBase('a@example.com')]), { sans: [email('A@example.com')] }, false],
  [
    'emailAddress in the subject',
    nameConstraints([emailBase('example.com')]),
    { subject: 'CN=x,emailAddress=a@other.example' },
    false,
  ],
  ['a URI of the host', nameConstraints([uriBase('example.com')]), { sans: [uri('https://example.com/x')] }, true],
  [
    'a URI of a host below',
    nameConstraints([uriBase('example.com')]),
    { sans: [uri('https://a.example.com/x')] },
    false,
  ],
  [
    'a URI of the domain with a port and a user',
    nameConstraints([uriBase('.example.com')]),
    { sans: [uri('https://u@a.example.com:8443')] },
    true,
  ],
  ['a URI without a host', nameConstraints([uriBase('example.com')]), { sans: [uri('urn:uuid:1')] }, false],
  ['a subject within', nameConstraints([dnBase('O=Example,C=DE')]), { subject: 'CN=x,O=EXAMPLE,C=DE' }, true],
  ['a subject outside', nameConstraints([dnBase('O=Example,C=DE')]), { subject: 'CN=x,O=Other,C=DE' }, false],
  ['an excluded subject', nameConstraints([], [dnBase('O=Example,C=DE')]), { subject: 'CN=x,O=Example,C=DE' }, false],
  ['an unsupported kind that is not used', nameConstraints([otherBase()]), { sans: [dns('a.example')] }, true],
  [
    'an unsupported kind that is used',
    nameConstraints([otherBase()]),
    {
      sans: [
        {
          kind: 'other',
          tag: contextConstructed(0),
          der: tlv(contextConstructed(0), oid('1.2.3.4'), explicit(0, ia5String('y'))),
        },
      ],
    },
    false,
  ],
];

async function subtreeLeaf(
  { subject, sans }: { subject?: string; sans?: Parameters<typeof subjectAltName> },
  issuer: Issuer,
): Promise<Issuer> {
  return makeClient(subject ?? 'CN=leaf', issuer, {
    slot: 'leaf',
    extensions: [...usages, ...(sans === undefined ? [] : [subjectAltName(...sans)])],
  });
}

/** @param root the anchor of all but one */
export async function makeNameConstraintChains(root: Issuer): Promise<Chain[]> {
  const chains: Chain[] = [];
  const add = (
    what: string,
    leaf: Issuer,
    intermediates: readonly Issuer[],
    refused?: string,
    more: Partial<Chain> = {},
  ): void => {
    chains.push({ what: `name constraints: ${what}`, anchors: [root], intermediates, leaf, refused, ...more });
  };
  for (const [what, constraint, leaf, accepted] of constraintRows) {
    const ca = await makeCa('CN=Constrained', { issuer: root, extensions: [constraint] });
    add(what, await subtreeLeaf(leaf, ca), [ca], accepted ? undefined : UNKNOWN);
  }
  for (const [what, constraint, leaf, accepted, deviation] of formRows) {
    const ca = await makeCa('CN=Constrained', { issuer: root, extensions: [constraint] });
    const more = deviation === undefined ? {} : { deviation };
    add(what, await subtreeLeaf(leaf, ca), [ca], accepted ? undefined : UNKNOWN, more);
  }
  const constrainedRoot = await makeCa('CN=Constrained Root', {
    extensions: [nameConstraints([dnsBase('a.example')])],
  });
  add('in the anchor', await subtreeLeaf({ sans: [dns('b.example')] }, constrainedRoot), [], UNKNOWN, {
    anchors: [constrainedRoot],
  });
  const hostUri = await makeCa('CN=Uri', { issuer: root, extensions: [nameConstraints([], [uriBase('example.com')])] });
  add(
    'a URI with an address for a host, under an exclusion',
    await subtreeLeaf({ sans: [uri('https://10.0.0.1/')] }, hostUri),
    [hostUri],
    UNKNOWN,
    {
      deviation: 'RFC 5280 §4.2.1.10: such a URI fails every constraint; OpenSSL compares the text',
    },
  );
  const minimum = await makeCa('CN=Minimum', {
    issuer: root,
    extensions: [
      extension(
        OID.nameConstraints,
        true,
        sequence(
          tlv(
            contextConstructed(0),
            sequence(implicitPrimitive(2, Buffer.from('a.example')), implicitPrimitive(0, integer(1).subarray(2))),
          ),
        ),
      ),
    ],
  });
  add('a minimum', await subtreeLeaf({ sans: [dns('a.example')] }, minimum), [minimum], UNKNOWN);
  const deepCa = await makeCa('CN=Deep', { issuer: root, extensions: [nameConstraints([dnBase('O=Example')])] });
  const outside = await makeCa('CN=Deeper,O=Other', { issuer: deepCa });
  add('an intermediate outside', await makeClient('CN=a,O=Example', outside), [deepCa, outside], UNKNOWN);
  add('a self-issued end entity outside', await makeClient('CN=Deep', deepCa), [deepCa], UNKNOWN);
  return chains;
}
