/** What is asked of an external service, and what it may answer (docs/reference/authorization.md shows both schemas). */
import { Type, type Static } from 'typebox';
import { Compile } from 'typebox/compile';
import { InputError } from '../../pki/input-error.ts';
import { parseGeneralNameText, type GeneralName } from '../../pki/x509/general-name.ts';
import { issuedName, parseDistinguishedName, type Name } from '../../pki/x509/name.ts';
import type { RequestOverride } from '../../store/request-store.ts';

const text = (description: string) => Type.String({ description });
const nullable = (description: string) => Type.Union([Type.String(), Type.Null()], { description });
const names = (description: string) => Type.Array(Type.String(), { description });

export const AuthorizationRequest = Type.Object(
  {
    request_id: text('Of the request, as in its log lines, its audit records and its certificate.'),
    ca: text("The CA's label."),
    operation: text('`simpleenroll`, `simplereenroll`, `serverkeygen` or `fullcmc`.'),
    requester: Type.Object(
      {
        method: text('`mtls`, `otp`, `gssapi`, `ldap`, `jwt` or `cmc`.'),
        id: text('Who asks: the subject of a certificate, the client_id of a password, a principal.'),
        issuer: nullable("RFC 4514, of the requester's certificate; null where it has none."),
        subject: nullable("RFC 4514, of the requester's certificate; null where it has none."),
        sans: names("Of the requester's certificate."),
        address: text("The client's network address."),
      },
      { additionalProperties: false },
    ),
    subject: text('RFC 4514: the subject that the certificate gets.'),
    sans: names(
      'The names that the certificate gets: `DNS:a`, `IP:192.0.2.1`, `email:…`, `URI:…`, `upn:…` (docs/guides/names.md).',
    ),
    key_type: text('Of the key to certify: `ec:P-256`, `rsa:2048`, `ed25519` …'),
    csr: text('What was sent, PEM: `CERTIFICATE REQUEST`, or `CRMF REQUEST` where it came so in CMC.'),
    device: Type.Optional(text('The id of the registered device that asks; absent where the CA asks for none.')),
    dry_run: Type.Optional(
      Type.Boolean({ description: 'true: nothing will be issued, an administrator asks what would be.' }),
    ),
  },
  { additionalProperties: false },
);
export type AuthorizationRequest = Static<typeof AuthorizationRequest>;

export const AuthorizationAnswer = Type.Union([
  Type.Object(
    {
      allow: Type.Literal(true),
      subject: Type.Optional(text('RFC 4514: the certificate gets this subject.')),
      sans: Type.Optional(names('The certificate gets these names, and no other.')),
      validity_days: Type.Optional(
        Type.Integer({
          minimum: 1,
          description: 'In place of the validity of the profile, and not above its max_validity_days.',
        }),
      ),
    },
    { additionalProperties: false },
  ),
  Type.Object(
    {
      allow: Type.Literal(false),
      reason: Type.String({
        minLength: 1,
        maxLength: 500,
        description: 'What the client is told; no control characters.',
      }),
    },
    { additionalProperties: false },
  ),
]);

const answerSchema = Compile(AuthorizationAnswer);

/** {@link RequestOverride}, parsed. */
export interface Overridden {
  readonly subject?: Name;
  readonly subjectAltNames?: readonly GeneralName[];
  readonly validityDays?: number | undefined;
}

export function readOverride({ subject, sans, validity_days }: RequestOverride): Overridden {
  return {
    ...(subject === undefined ? {} : { subject: issuedName(parseDistinguishedName(subject)) }),
    ...(sans === undefined ? {} : { subjectAltNames: sans.map(readName) }),
    validityDays: validity_days,
  };
}

export type Decision =
  { readonly allow: true; readonly override: RequestOverride } | { readonly allow: false; readonly reason: string };

/** @throws InputError that says why it is invalid */
export function readAnswer(body: Buffer): Decision {
  const value = parseJson(body);
  if (!answerSchema.Check(value))
    throw new InputError('the response does not match the schema of docs/reference/authorization.md');
  if (!value.allow) {
    if (/\p{Cc}/u.test(value.reason) || value.reason.trim() === '' || !value.reason.isWellFormed())
      throw new InputError('the reason is not plain text');
    return { allow: false, reason: value.reason };
  }
  const { allow, ...override } = value;
  readOverride(override);
  return { allow, override };
}

function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    throw new InputError('the response is not JSON in UTF-8');
  }
}

/** Parses a name as records write it. @throws InputError */
function readName(written: string): GeneralName {
  try {
    return parseGeneralNameText(written);
  } catch (error) {
    if (error instanceof InputError) throw new InputError(`${JSON.stringify(written.slice(0, 64))} ${error.message}`);
    throw error;
  }
}
