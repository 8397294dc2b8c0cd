import { boolean, choice, integer, list, map, optional, type Static, table, text } from '../keys.ts';
import { KEY_TYPES } from './csrattrs.ts';
import { SAN_KINDS, type TextKind } from '../../pki/x509/general-name.ts';
import { PLACEHOLDERS_ALLOWED, SAN_TEMPLATE_ALLOWED } from '../../pki/x509/name-template.ts';
import {
  ATTRIBUTE_ALLOWED,
  checkAttributeName,
  checkCidr,
  checkPermitted,
  checkExtensionOid,
  checkExtensionValue,
  checkOid,
  checkPattern,
  checkSanKind,
  checkSanLiteral,
  checkSanTemplate,
  checkSubjectTemplate,
  urlCheck,
} from './formats.ts';

/** End-entity key usages, without keyCertSign and cRLSign. */
const KEY_USAGES = [
  'digitalSignature',
  'nonRepudiation',
  'keyEncipherment',
  'dataEncipherment',
  'keyAgreement',
  'encipherOnly',
  'decipherOnly',
] as const;

/** Names for extKeyUsage; other purposes are given as OIDs. */
const EXTENDED_KEY_USAGES = [
  'serverAuth',
  'clientAuth',
  'codeSigning',
  'emailProtection',
  'timeStamping',
  'OCSPSigning',
  'ipsecIKE',
  'smartcardLogon',
  'cmcCA',
  'cmcRA',
] as const;

const attribute = () =>
  text({ description: 'An attribute type.', allowed: ATTRIBUTE_ALLOWED, check: checkAttributeName });
const pattern = () =>
  text({
    description: 'A regular expression.',
    allowed: 'a regular expression that matches the whole value',
    check: checkPattern,
  });

const matching = (name: string) =>
  optional.list(pattern(), {
    description: `${name} has to match one of these regular expressions as a whole.`,
    defaultText: 'any',
  });

const sanKind = () =>
  text({
    description: 'A kind of name.',
    allowed: `${SAN_KINDS.join(', ')}, or other:OID for another otherName`,
    check: checkSanKind,
  });
const literal = (kind: TextKind, name: string) =>
  optional.list(
    text({
      description: 'A name.',
      allowed: 'a name without a prefix, with placeholders',
      check: checkSanLiteral(kind),
    }),
    { description: `${name} has to be one of these values, which may have placeholders.`, defaultText: 'any' },
  );

const subject = table("Policy on the CSR's subject. Empty, any well-formed subject is allowed.", {
  required: list(attribute(), { description: 'Attribute types that the subject of a CSR has to carry.', default: [] }),
  allowed: optional.list(attribute(), {
    description: 'The only attribute types that the subject may carry. Unset, any is allowed.',
    defaultText: 'any',
  }),
  patterns: map(pattern(), {
    description:
      'A regular expression for each named attribute type; every value of that type has to match it as a whole, e.g. `{ CN = "dev-[0-9]+" }`, or `{ CN = "{id}" }` with a placeholder (docs/guides/names.md).',
    default: {},
  }),
  template: optional.text({
    description: `The certificate's subject, whatever the CSR says: an RFC 4514 name with placeholders in its values, such as "CN={id},O=Example". Not for re-enrollments and registration authorities. Placeholders: ${PLACEHOLDERS_ALLOWED}.`,
    defaultText: "the CSR's subject",
    allowed: 'an RFC 4514 name such as "CN={id},O=Example"',
    check: checkSubjectTemplate,
  }),
});

const san = table("Policy on the CSR's subject alternative names.", {
  allowed: list(sanKind(), {
    description: 'The kinds of subject alternative name that a CSR may carry; an empty list allows none.',
    default: ['dns', 'ip', 'email', 'uri'],
  }),
  required: list(sanKind(), {
    description: 'Kinds of which a CSR has to carry at least one name.',
    default: [],
  }),
  dns: matching('A DNS name, in lower case,'),
  email: matching('An email address'),
  uri: matching('A URI'),
  upn: matching('A user principal name'),
  hardware_module: literal('hardware_module', 'A hardwareModuleName (RFC 4108), `OID:HEX`,'),
  permanent_identifier: literal('permanent_identifier', 'A permanentIdentifier (RFC 4043), `OID:VALUE`,'),
  srv: literal('srv', 'A SRVName (RFC 4985), `_service.example.com`,'),
  registered_id: literal('registered_id', 'A registered ID'),
  other: literal('other_name', 'Another otherName, `OID:HEX` with the DER of its value,'),
  ip: optional.list(
    text({
      description: 'An address block.',
      allowed: 'an address block such as "10.0.0.0/8" or "2001:db8::/32"',
      check: checkCidr,
    }),
    { description: 'An IP address has to lie in one of these blocks.', defaultText: 'any' },
  ),
  add: optional.list(text({ description: 'A name.', allowed: SAN_TEMPLATE_ALLOWED, check: checkSanTemplate }), {
    description:
      'Names that are added to those of the CSR, with placeholders, such as `dns:{id}.example.com`; the policy does not judge them. Not for re-enrollments and registration authorities.',
    defaultText: 'none',
  }),
  wildcards: boolean({ description: 'Lets DNS names start with `*.`.', default: false }),
  dns_underscore: optional.boolean({
    description:
      'Lets DNS names contain `_`, which RFC 5280 forbids: for renewals of old fleets, and for `_service` names.',
    defaultText: 'false',
  }),
  max: integer(0, 1000, {
    description: 'The largest number of subject alternative names in one certificate.',
    default: 32,
  }),
});

const policies = list(
  table(
    'One policy; a bare OID is one without a CPS.',
    {
      oid: text({ description: 'The policy.', allowed: 'a dotted OID', check: checkOid }),
      cps: optional.text({
        description: 'Where the certification practice statement is.',
        allowed: 'an http or https URL such as "https://pki.example.com/cps"',
        check: urlCheck('http', 'https'),
      }),
    },
    { shorthand: 'oid' },
  ),
  {
    description: 'The certificatePolicies of issued certificates (RFC 5280 §4.2.1.4); empty leaves it out.',
    default: [],
  },
);

const extensions = list(
  table('One extension, with `value` or with `from`.', {
    oid: text({
      description: 'The extension; none that makes a CA, nor one that Estuary sets itself.',
      allowed: 'the dotted OID of an extension that Estuary leaves to the profile',
      check: checkExtensionOid,
    }),
    critical: boolean({ description: 'Whether it is critical, whatever the CSR says.', default: false }),
    value: optional.text({
      description: 'Its value, the same in every certificate: DER in hex.',
      allowed: 'hex digits, two a byte: one DER value of at most 4096 bytes',
      check: checkExtensionValue,
    }),
    from: optional.choice(['csr'], {
      description: 'In place of `value`: the value that the CSR asks for, unread; without one it is left out.',
    }),
  }),
  {
    description:
      'Further extensions of issued certificates (docs/internals/issuance.md); other requested extensions are not copied.',
    default: [],
  },
);

const permitted = (kind: 'dns' | 'ip' | 'email' | 'uri', what: string, allowed: string) =>
  list(text({ description: 'A permitted name.', allowed, check: checkPermitted(kind) }), {
    description: `${what} Empty excludes this kind of name.`,
    default: [],
  });

const certificateAuthority = optional.table(
  'Issue CA certificates, for devices that run a CA (docs/guides/device-cas.md), instead of end-entity certificates. Needs `approval = "manual"`, at least one permitted name, and a CA with the path length 1 or more.',
  {
    path_length: integer(0, 16, {
      description: 'How many CAs may be below such a device CA; 0 allows end entities only.',
      default: 0,
    }),
    permitted_dns: permitted('dns', 'Hosts, with their subdomains, that device CAs may certify.', 'a host name'),
    permitted_ip: permitted('ip', 'Networks whose addresses device CAs may certify.', 'a network such as "10.0.0.0/8"'),
    permitted_email: permitted(
      'email',
      'Hosts whose mailboxes device CAs may certify; with a leading dot, the hosts of a domain.',
      'a host name, or a domain such as ".example.com"',
    ),
    permitted_uri: permitted(
      'uri',
      'Hosts whose URIs device CAs may certify; with a leading dot, the hosts of a domain.',
      'a host name, or a domain such as ".example.com"',
    ),
  },
);

/** @param usages the default of `key_usage` */
const profileOf = (usages: readonly (typeof KEY_USAGES)[number][]) =>
  table('What the CA signs.', {
    validity_days: integer(1, 36500, {
      description: 'Days that a certificate is valid; it never outlives the CA certificate.',
      default: 397,
      unit: 'days',
    }),
    validity_seconds: optional.seconds(120, 31_536_000, {
      description:
        'For short-lived certificates, in place of `validity_days`: the seconds that a certificate is valid, `backdate_seconds` included.',
      defaultText: '`validity_days`',
    }),
    validity_spread_seconds: optional.seconds(0, 31_536_000, {
      description:
        'A certificate is valid for up to so much less, by chance, so that a fleet does not renew in one hour; never for less than half of its validity.',
      defaultText: '0',
    }),
    backdate_seconds: optional.seconds(0, 43_200, {
      description:
        'A certificate is valid from so long before it is issued, because the clocks of devices lag; at most half of its validity.',
      defaultText: '60; with `profile = "niap"` 0',
    }),
    max_validity_days: integer(1, 36500, {
      description: 'The upper bound of a validity that comes from elsewhere; `validity_days` may not exceed it.',
      default: 825,
      unit: 'days',
    }),
    key_types: list(choice(KEY_TYPES, { description: 'A key type.' }), {
      description: 'The public keys that are certified.',
      default: ['ec:P-256', 'ec:P-384', 'rsa:2048', 'rsa:3072', 'rsa:4096', 'ed25519'],
      minItems: 1,
    }),
    key_usage: list(choice(KEY_USAGES, { description: 'A key usage.' }), {
      description:
        'The keyUsage of issued certificates; empty leaves the extension out. At a label with a remote driver: the usages that its CA may certify, and empty (the default there) allows every usage of an end entity.',
      default: usages,
    }),
    extended_key_usage: list(
      text({
        description: 'A purpose.',
        allowed: `one of ${EXTENDED_KEY_USAGES.join(', ')}, or a dotted OID`,
        check: (value) => (EXTENDED_KEY_USAGES.some((name) => name === value) ? undefined : checkOid(value)),
      }),
      {
        description:
          'The extKeyUsage of issued certificates; empty leaves the extension out. At a label with a remote driver: the purposes that its CA may certify.',
        default: ['clientAuth'],
      },
    ),
    policies,
    extensions,
    forward_extensions: list(
      text({ description: 'An extension or attribute.', allowed: 'a dotted OID', check: checkOid }),
      {
        description:
          'At a label with a remote driver: further extensions and attributes that a CSR may have (docs/guides/upstream.md). The CA there gets them unread.',
        default: [],
      },
    ),
    certificate_authority: certificateAuthority,
    subject,
    san,
    allow_subject_change: boolean({
      description:
        'Lets a client that a certificate authenticates change subject and subjectAltName, on re-enrollment and enrollment, with the ChangeSubjectName attribute (RFC 6402 §2.8).',
      default: false,
    }),
    renewal_grace_days: integer(0, 3650, {
      description: 'A certificate expired at most this long ago may still be renewed.',
      default: 0,
      unit: 'days',
    }),
    renewal_issuers: optional.path({
      description:
        'PEM file with further CA certificates whose certificates may be renewed here: after a rollover or a migration.',
    }),
    renewal_labels: optional.list(
      text({ description: 'A label.', allowed: 'a label of the same CA', pattern: /^.+$/su }),
      {
        description:
          'Further labels of the same CA (docs/guides/names.md) whose certificates count as those of this one: they may be renewed here, and are `own` in `client_issuers`.',
        defaultText: 'none',
      },
    ),
    key_escrow: optional.boolean({
      description:
        'Whether the private keys that /serverkeygen makes are archived in the key recovery authority before they are handed out: `true` refuses a configuration without one, `false` archives nothing.',
      defaultText: '`true` where `ca.dogtag.kra_urls` names one, else `false`',
    }),
    mtls_subject: choice(['any', 'same', 'auto'], {
      description:
        "Whether simpleenroll and serverkeygen over mTLS may ask for other names than the presented certificate's (`any`) or not (`same`: its subject, and its SANs or some of them). `auto` is `same` for a certificate under a CA of this server, whether or not the store knows it, and `any` for others. The profile restricts the names of others.",
      default: 'auto',
    }),
  });

export const profile = profileOf(['digitalSignature']);

/** Of a CA elsewhere, which chooses the usages. */
export const remoteProfile = profileOf([]);

export type ProfileConfig = Static<typeof profile>;
