/**
 * Instructions for enrolling a device with a one-time password: shell lines to paste, and a QR code. Free of Node.js,
 * since the console shows them too.
 */

export interface Enrollment {
  /** URL of the EST listener: `https://est.example.com:9443/.well-known/est`. */
  readonly est: string;
  /** The token's label, if it is limited to one. */
  readonly label: string | undefined;
  readonly clientId: string;
  readonly token: string;
  /** PEM file of the server's trust anchors; undefined: the device's system store. */
  readonly anchors: string | undefined;
}

export const WELL_KNOWN = '/.well-known/est';
/** Default of `est.port`. */
export const EST_PORT = 9443;

/** @param address with or without the path; undefined if it is invalid */
export function estUrl(address: string): string | undefined {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url?.protocol !== 'https:' || url.search !== '' || url.hash !== '' || url.username !== '') return undefined;
  const path = url.pathname.replace(/\/+$/, '');
  return `${url.origin}${path === '' ? WELL_KNOWN : path}`;
}

export function readyLines({ est, label, clientId, token, anchors }: Enrollment): {
  readonly client: string;
  readonly curl: string;
} {
  const file = fileNameOf(clientId);
  // A colon would end the user name of HTTP Basic; the server uses only the password.
  const user = /[:\p{Cc}]/u.test(clientId) ? 'device' : clientId;
  const options = [
    `--url ${quoted(est.replace(/\/\.well-known\/est$/, ''))}`,
    ...(anchors === undefined ? [] : [`--ca ${quoted(anchors)}`]),
    ...(label === undefined ? [] : [`--label ${quoted(label)}`]),
    `--subject ${quoted(`CN=${nameValue(clientId)}`)}`,
    `--username ${quoted(user)}`,
    `--otp-env EST_OTP --out ${quoted(`./${file}`)}`,
  ];
  const trust = anchors === undefined ? '' : ` --cacert ${quoted(anchors)}`;
  const path = label === undefined ? est : `${est}/${encodeURIComponent(label)}`;
  // `openssl req -subj` uses the backslash as escape.
  const subject = `/CN=${clientId.replaceAll(/[\\/+=,]/g, '\\$&')}`;
  return {
    client: `EST_OTP=${quoted(token)} estuary client enroll ${options.join(' ')}`,
    curl: [
      `openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ${quoted(`${file}.key`)} -out ${quoted(`${file}.csr`)} -utf8 -subj ${quoted(subject)}`,
      // Other users of the machine see the arguments of curl. printf is part of the shell.
      `printf 'user = "%s"\\n' ${quoted(`${user}:${token}`.replaceAll(/["\\]/g, '\\$&'))} | curl -sSf -K -${trust} -H 'Content-Type: application/pkcs10' --data-binary ${quoted(`@${file}.csr`)} ${quoted(`${path}/simpleenroll`)} | base64 -d | openssl pkcs7 -inform DER -print_certs -out ${quoted(`${file}.pem`)}`,
    ].join('\n'),
  };
}

/** Content of the QR code, in JSON. */
export const qrText = ({ est, label, clientId, token }: Enrollment): string =>
  JSON.stringify({ est, label, client_id: clientId, token });

/** Quotes for a POSIX shell. */
const quoted = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;

/** A value of a distinguished name (RFC 4514 §2.4). */
const nameValue = (text: string): string => text.replaceAll(/[\\,+"<>;=#]/g, '\\$&').replaceAll(/^ | $/g, '\\ ');

/** A safe file name from a client's name. */
function fileNameOf(clientId: string): string {
  const name = clientId
    .replaceAll(/[^A-Za-z0-9._-]+/g, '_')
    .replace(/^[.-]+/, '')
    .slice(0, 64);
  return name === '' ? 'device' : name;
}
