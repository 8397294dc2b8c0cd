/** What a device enrolls with a one-time password by: lines to paste into a shell, and a code to scan. Without Node, as the console shows them, too. */

export interface Enrollment {
  /** Of the EST listener: `https://est.example.com:9443/.well-known/est`. */
  readonly est: string;
  /** The token's, where it is for one CA alone. */
  readonly label: string | undefined;
  readonly clientId: string;
  readonly token: string;
  /** PEM file of whom the server's certificate comes from; undefined: whom the device's machine trusts. */
  readonly anchors: string | undefined;
}

export const WELL_KNOWN = '/.well-known/est';
/** `est.port`, unless it is told. */
export const EST_PORT = 9443;

/** @param address with the path or without; undefined: it is none */
export function estUrl(address: string): string | undefined {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url?.protocol !== 'https:' || url.search !== '' || url.hash !== '' || url.username !== '') return undefined;
  const path = url.pathname.replace(/\/+$/, '');
  return `${url.origin}${path === '' ? WELL_KNOWN : path}`;
}

/** With the server's own client, and with openssl and curl. */
export function readyLines({ est, label, clientId, token, anchors }: Enrollment): {
  readonly client: string;
  readonly curl: string;
} {
  const file = fileNameOf(clientId);
  // A colon ends the user name of HTTP Basic; the server goes by the password alone.
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
  // As `openssl req -subj` reads it, a backslash takes away what a character means.
  const subject = `/CN=${clientId.replaceAll(/[\\/+=,]/g, '\\$&')}`;
  return {
    client: `EST_OTP=${quoted(token)} estuary client enroll ${options.join(' ')}`,
    curl: [
      `openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ${quoted(`${file}.key`)} -out ${quoted(`${file}.csr`)} -utf8 -subj ${quoted(subject)}`,
      `curl -sSf${trust} -u ${quoted(`${user}:${token}`)} -H 'Content-Type: application/pkcs10' --data-binary ${quoted(`@${file}.csr`)} ${quoted(`${path}/simpleenroll`)} | base64 -d | openssl pkcs7 -inform DER -print_certs -out ${quoted(`${file}.pem`)}`,
    ].join('\n'),
  };
}

/** What the code says: JSON, so that whatever reads it finds its parts apart. */
export const qrText = ({ est, label, clientId, token }: Enrollment): string =>
  JSON.stringify({ est, label, client_id: clientId, token });

/** For a POSIX shell. */
const quoted = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;

/** A value of a distinguished name (RFC 4514 §2.4). */
const nameValue = (text: string): string => text.replaceAll(/[\\,+"<>;=#]/g, '\\$&').replaceAll(/^ | $/g, '\\ ');

/** Of a client's name, what a file may be called on any system. */
function fileNameOf(clientId: string): string {
  const name = clientId
    .replaceAll(/[^A-Za-z0-9._-]+/g, '_')
    .replace(/^[.-]+/, '')
    .slice(0, 64);
  return name === '' ? 'device' : name;
}
