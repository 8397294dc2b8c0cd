import { GENERATED_KEY_TYPES } from '../../pki/x509/key-pair.ts';
import { boolean, list, map, optional, table, text } from '../keys.ts';
import { checkOid } from './formats.ts';

/** Known public key types. */
export const KEY_TYPES = [...GENERATED_KEY_TYPES, 'rsa-pss:2048', 'rsa-pss:3072', 'rsa-pss:4096'] as const;

/** Extensions with a name; others are given as OIDs. */
const EXTENSION_NAMES = [
  'subjectAltName',
  'keyUsage',
  'extKeyUsage',
  'basicConstraints',
  'subjectKeyIdentifier',
  'certificatePolicies',
] as const;

export const csrattrs = table(
  'What GET /csrattrs asks for, and the policy then demands. Left out, /csrattrs is answered 204.',
  {
    challenge_password: boolean({
      description: 'Asks for a challengePassword (RFC 7030 §3.5), or estIdentityLinking (RFC 7894) in its place.',
      default: false,
    }),
    key_type: optional.choice(GENERATED_KEY_TYPES, { description: 'The key that the client should generate.' }),
    signature: optional.choice(
      [
        'ecdsaWithSHA256',
        'ecdsaWithSHA384',
        'ecdsaWithSHA512',
        'sha256WithRSAEncryption',
        'sha384WithRSAEncryption',
        'sha512WithRSAEncryption',
        'ed25519',
        'ed448',
        'id-ml-dsa-44',
        'id-ml-dsa-65',
        'id-ml-dsa-87',
      ],
      { description: 'The signature algorithm of the CSR.' },
    ),
    extensions: list(
      table(
        'One extension; a bare name is one whose value the client fills in.',
        {
          name: text({
            description: 'The extension.',
            allowed: `one of ${EXTENSION_NAMES.join(', ')}, or a dotted OID`,
            check: (value) => (EXTENSION_NAMES.some((name) => name === value) ? undefined : checkOid(value)),
          }),
          value: optional.list(text({ description: 'A part of the value.', allowed: 'text' }), {
            description:
              'The value that the client should take over: names for keyUsage and extKeyUsage, else the DER in hex.',
            defaultText: 'the client fills it in',
          }),
        },
        { shorthand: 'name' },
      ),
      { description: 'Extensions that the CSR should carry.', default: [] },
    ),
    oids: list(text({ description: 'An OID.', allowed: 'a dotted OID', check: checkOid }), {
      description: 'Further bare OIDs.',
      default: [],
    }),
    template: boolean({ description: "Adds RFC 9908's CertificationRequestInfoTemplate.", default: false }),
    subject: list(
      map(text({ description: 'A value, or "" for the client to fill in.', allowed: 'text' }), {
        description: 'One RDN.',
      }),
      { description: 'The subject of the template, e.g. `[{ O = "Example" }, { CN = "" }]`.', default: [] },
    ),
  },
);
