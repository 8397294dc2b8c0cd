/** What a person pastes on a device to enroll with a token. */

const KEPT = 'est-server';
/** The EST listener's port where nobody has chosen another. */
const EST_PORT = 9443;

/** Where devices find the server, as far as this browser knows. */
export function estAddress(): string {
  return localStorage.getItem(KEPT) ?? `https://${location.hostname}:${EST_PORT}`;
}

export function saveEstAddress(address: string): void {
  localStorage.setItem(KEPT, address);
}

interface Use {
  readonly address: string;
  /** A label; empty: none. */
  readonly ca: string;
  readonly token: string;
  readonly clientId: string;
}

/** Quoted for a POSIX shell. */
const quoted = (text: string): string => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);

/** A value of a distinguished name, as `openssl req -subj` reads it. */
const subjectValue = (text: string): string => text.replace(/[\\/+]/g, '\\$&');

/** A name for files: of what a client id may hold, the harmless part. */
const fileName = (clientId: string): string => clientId.replace(/[^\w.-]+/g, '_').replace(/^[.-]+/, '') || 'device';

export function readyLines({ address, ca, token, clientId }: Use) {
  const base = `${address.replace(/\/+$/, '')}/.well-known/est${ca === '' ? '' : `/${encodeURIComponent(ca)}`}`;
  const name = fileName(clientId);
  const file = quoted(name);
  return {
    link: `${base}/simpleenroll#${new URLSearchParams({ client_id: clientId, token }).toString()}`,
    client: [
      `EST_OTP=${quoted(token)} estuary client enroll --url ${quoted(address.replace(/\/+$/, ''))} --ca root.pem`,
      ...(ca === '' ? [] : [`--label ${quoted(ca)}`]),
      `--subject ${quoted(`CN=${clientId.replaceAll(/[\\,+"<>;=#]/g, '\\$&')}`)} --username ${quoted(name)} --otp-env EST_OTP --out ${quoted(`./${name}`)}`,
    ].join(' '),
    curl: [
      `openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ${file}.key -out ${file}.csr -subj ${quoted(`/CN=${subjectValue(clientId)}`)}`,
      `curl --fail-with-body --cacert root.pem -u ${quoted(`${name}:${token}`)} -H 'Content-Type: application/pkcs10' --data-binary @${file}.csr ${quoted(`${base}/simpleenroll`)} | base64 -d | openssl pkcs7 -inform DER -print_certs -out ${file}.pem`,
    ].join('\n'),
  };
}
