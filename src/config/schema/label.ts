/** Keys that every label and every CA has, whatever its driver. */
import { boolean, choice, integer, list, number, optional, path, seconds, type Static, table, text } from '../keys.ts';
import { keyId, parsePkcs11Uri } from '../../pki/pkcs11-uri.ts';
import { csrattrs } from './csrattrs.ts';
import { urlCheck, trustAnchors } from './formats.ts';
import { profile, remoteProfile } from './profile.ts';

const ocsp = optional.table("A delegated OCSP responder (RFC 6960 §2.6), which answers in place of the CA's own key.", {
  certificate: path({
    description: 'PEM file with the certificate of the responder, issued by this CA with extKeyUsage OCSPSigning.',
  }),
  private_key: path({ description: "PEM file with the responder's private key, readable by the server alone." }),
});

/** Keywords of `client_issuers`, in addition to files. */
const CLIENT_ISSUERS = ['own', 'anchors', 'any'] as const;

/** The files in a CA's `client_issuers`, absolute. */
export function clientIssuerFiles({ client_issuers }: { readonly client_issuers: readonly string[] }): string[] {
  return client_issuers.filter((issuer) => !CLIENT_ISSUERS.some((word) => word === issuer));
}

/** The files with a CA's certificates: its own, those above it, and renewal_issuers. */
export function caCertificateFiles(table: {
  readonly certificate?: string | undefined;
  readonly upstream_trust_anchors?: string | undefined;
  readonly chain?: string | undefined;
  readonly profile: { readonly renewal_issuers?: string | undefined };
}): readonly (string | undefined)[] {
  return [table.certificate, table.upstream_trust_anchors, table.chain, table.profile.renewal_issuers];
}

const authorization = optional.table(
  'An external service that decides on every request, after every check of our own.',
  {
    url: text({
      description: 'Where each request is POSTed before anything is reserved (docs/reference/authorization.md).',
      allowed: 'an https URL such as "https://inventory.example.com/authorize"',
      check: urlCheck('https'),
    }),
    trust_anchors: trustAnchors("PEM file with the CA certificates behind the service's TLS certificate."),
    client_certificate: optional.path({ description: 'PEM file with the certificate that the service is shown.' }),
    client_key: optional.path({ description: 'PEM file with the private key of `client_certificate`.' }),
    bearer_token: optional.secret({ description: 'Sent as `Authorization: Bearer …`.' }),
    timeout: seconds(1, 60, {
      description: 'How long a decision may take, waiting for its turn included.',
      default: 5,
    }),
    max_calls: integer(1, 256, {
      description: 'Concurrent calls, three quarters of them for one requester; sixteen times as many may wait.',
      default: 16,
    }),
  },
);

const renewalTime = (description: string, value: number) =>
  number({
    description: `${description} Below 1: the fraction of the lifetime that has elapsed; a whole number: seconds before the expiry.`,
    default: value,
    minimum: 0,
    maximum: 315360000,
    allowed: 'a number below 1, or a whole number of seconds',
  });

/** Also for the certificates of a label that is no longer configured. */
export const RENEWAL_DEFAULTS = { start: 0.67, end: 0.9, retry_after: 21_600, expected: true } as const;

const renewal = table('Renewal information (draft-ietf-lamps-est-renewal-info): when clients should renew.', {
  start: renewalTime('When the suggested window begins.', RENEWAL_DEFAULTS.start),
  end: renewalTime('When the suggested window ends.', RENEWAL_DEFAULTS.end),
  retry_after: seconds(1, 31536000, {
    description: 'After how long clients ask again.',
    default: RENEWAL_DEFAULTS.retry_after,
  }),
  expected: boolean({
    description:
      'Whether holders renew their certificates: those of one-time certificates do not, and are in no list of the fleet (docs/guides/fleet.md).',
    default: RENEWAL_DEFAULTS.expected,
  }),
});

export const labelText = (description: string) =>
  text({
    description,
    allowed: '1 to 64 letters, digits, "-", "." or "_", beginning with a letter or digit',
    pattern: /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/,
  });

/** Settings of every label, whether a CA's own or a further one. */
export const labelKeys = {
  default: boolean({ description: 'Serves requests without a label; exactly one CA does.', default: false }),
  approval: choice(['auto', 'manual'], {
    description: 'Whether a request is issued at once or queued until an administrator approves it.',
    default: 'auto',
  }),
  approvals: integer(1, 10, {
    description:
      'How many different administrators have to approve a request where `approval` is `manual`; any one of them can reject it.',
    default: 1,
  }),
  devices: choice(['off', 'required'], {
    description: 'Whether only registered devices get certificates here (docs/guides/devices.md).',
    default: 'off',
  }),
  client_issuers: list(path({ description: 'Whose certificates.', words: CLIENT_ISSUERS }), {
    description:
      "Whose certificates authenticate at this label for simpleenroll, serverkeygen and fullcmc: `own` (certificates directly from this CA or one of its `renewal_issuers`, if they are this label's; of a CA elsewhere, only those that the store has recorded for this label), `anchors` (everything under a trust anchor that is neither a CA of this server nor above one), `any`, or paths of PEM files with CA certificates, direct or indirect issuers. It filters and never adds trust; the RA certificates of `[cmc]` are not filtered. A certificate that is not accepted counts as none (docs/guides/names.md).",
    default: ['own', 'anchors'],
  }),
  auth: table('How requesters authenticate at this label.', {
    methods: optional.list(choice(['mtls', 'otp', 'gssapi', 'ldap', 'jwt', 'cmc'], { description: 'A method.' }), {
      description:
        'The methods that count at this label for simpleenroll, serverkeygen and fullcmc. In fullcmc, a shared secret is the method `cmc` and a signing certificate the method `mtls`. The server ignores credentials of other methods. simplereenroll always uses a client certificate. A label can have `otp` or `ldap`, not both, because both use Basic credentials.',
      defaultText: 'every method that is switched on',
    }),
  }),
  profile,
  renewal,
  csrattrs: optional(csrattrs),
  authorization,
};

/** Keys of every `[[ca]]` table. */
export const caKeys = {
  label: labelText('The EST label: the path segment that routes a request to this CA.'),
  ...labelKeys,
  chain: optional.path({
    description:
      'PEM file with the certificates above the CA certificate, root last, and those of rollovers (docs/guides/rollover.md). A self-signed CA needs none.',
  }),
  ocsp,
};

/** The same for a CA elsewhere. */
export const remoteCaKeys = { ...caKeys, profile: remoteProfile };

/** A `[[ca]]` table, whatever its driver adds. */
export type CaTable = Static<ReturnType<typeof table<typeof caKeys>>> & {
  readonly driver: string;
  readonly certificate?: string | undefined;
  readonly upstream_trust_anchors?: string | undefined;
};

export const caCertificate = (): ReturnType<typeof path> =>
  path({ description: "PEM file with the CA's own certificate; for Dogtag it pins what the server says." });

/** The key in `uri` that contains a value of another key. */
const inUri = (attribute: 'module-path' | 'pin-source') => ({
  name: `${attribute} in uri`,
  key: 'uri',
  value: ({ uri }: Readonly<Record<string, unknown>>) => {
    const parts = typeof uri === 'string' ? parsePkcs11Uri(uri) : '';
    return typeof parts === 'string' ? undefined : parts[attribute];
  },
});

/** A private key in a PKCS #11 token: in `[ca.pkcs11]`, and in tables of remote drivers. */
export const privateKeyInToken = {
  module: path({ description: "The token's PKCS#11 library.", elsewhere: inUri('module-path') }),
  uri: optional.text({
    description:
      'A `pkcs11:` URI (RFC 7512) that names token and key in place of `token_label`, `slot`, `key_label` and `key_id`. It may contain token, manufacturer, model, serial, slot-id, object, id, type=private, module-path and pin-source.',
    allowed: 'a pkcs11: URI of supported attributes',
    check: (value) => {
      const parts = parsePkcs11Uri(value);
      return typeof parts === 'string' ? parts : undefined;
    },
  }),
  pin: optional.secret({
    description:
      "The user's PIN. An empty file means no login. A token with a PIN pad, or without a login, needs none.",
    pin: true,
    elsewhere: inUri('pin-source'),
  }),
  key_label: optional.text({
    description: 'The label of the private key; or use `key_id`.',
    allowed: 'text',
    pattern: /^.+$/su,
  }),
  key_id: optional.text({
    description: 'The CKA_ID of the private key, in hex; or use `key_label`.',
    allowed: 'hex digits, two a byte, also as 0x0102, %01%02 or 01:02',
    check: (value) => (keyId(value) === undefined ? `"${value}" has the wrong form` : undefined),
  }),
};
