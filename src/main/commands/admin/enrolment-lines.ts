/** The lines with which a device enrols with a one-time password: ready to paste into a shell. */
import { resolve } from 'node:path';
import { UsageError } from '../command.ts';
import type { Connection } from './connection.ts';

export interface Enrolment {
  /** Of the EST listener: `https://est.example.com:9443/.well-known/est`. */
  readonly est: string;
  /** The token's, where it is for one CA alone. */
  readonly label: string | undefined;
  readonly clientId: string;
  readonly token: string;
  /** PEM file of whom the server's certificate comes from; undefined: whom the device's machine trusts. */
  readonly anchors: string | undefined;
}

const WELL_KNOWN = '/.well-known/est';
/** `est.port`, unless it is told. */
const EST_PORT = 9443;

/**
 * Where devices enrol: the admin API does not tell, so that it is a guess where nobody says it.
 *
 * @throws UsageError
 */
export function estUrlOf(
  option: string | undefined,
  { origin, estUrl }: Pick<Connection, 'origin' | 'estUrl'>,
): { readonly url: string; readonly isGuessed: boolean } {
  const text = option ?? estUrl;
  if (text === undefined)
    return { url: `https://${new URL(origin).hostname}:${EST_PORT}${WELL_KNOWN}`, isGuessed: true };
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== 'https:' || url.search !== '' || url.hash !== '' || url.username !== '')
    throw new UsageError(`--est-url: "${text}" is no address of the kind https://est.example.com:9443/.well-known/est`);
  const path = url.pathname.replace(/\/+$/, '');
  return { url: `${url.origin}${path === '' ? WELL_KNOWN : path}`, isGuessed: false };
}

/** What each is, and the text to paste. */
export function enrolmentLines({
  est,
  label,
  clientId,
  token,
  anchors,
}: Enrolment): readonly (readonly [string, string])[] {
  const file = fileNameOf(clientId);
  // A colon ends the user name of HTTP Basic; the server goes by the password alone.
  const user = /[:\p{Cc}]/u.test(clientId) ? 'device' : clientId;
  const ca = anchors === undefined ? '' : ` --cacert ${quoted(resolve(anchors))}`;
  const subject = `/CN=${clientId.replaceAll(/[\\/+=,]/g, '\\$&')}`;
  const path = label === undefined ? est : `${est}/${encodeURIComponent(label)}`;
  const options = [
    `--url ${quoted(est.replace(/\/\.well-known\/est$/, ''))}`,
    ...(anchors === undefined ? [] : [`--ca ${quoted(resolve(anchors))}`]),
    ...(label === undefined ? [] : [`--label ${quoted(label)}`]),
    `--subject ${quoted(`CN=${clientId.replaceAll(/[\\,+"<>;=#]/g, '\\$&')}`)}`,
    `--username ${quoted(user)}`,
    `--otp-env EST_OTP --out ${quoted(`./${file}`)}`,
  ];
  return [
    ['with Estuary', `EST_OTP=${quoted(token)} estuary client enroll ${options.join(' ')}`],
    [
      'with curl and openssl',
      [
        `openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ${quoted(`${file}.key`)} -out ${quoted(`${file}.csr`)} -utf8 -subj ${quoted(subject)}`,
        `curl -sSf${ca} -u ${quoted(`${user}:${token}`)} -H 'Content-Type: application/pkcs10' --data-binary ${quoted(`@${file}.csr`)} ${quoted(`${path}/simpleenroll`)} | base64 -d | openssl pkcs7 -inform DER -print_certs -out ${quoted(`${file}.pem`)}`,
      ].join('\n'),
    ],
  ];
}

/** For a shell. */
export const quoted = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;

/** Of a client's name, what a file may be called on any system. */
function fileNameOf(clientId: string): string {
  const name = clientId
    .replaceAll(/[^A-Za-z0-9._-]+/g, '_')
    .replace(/^[.-]+/, '')
    .slice(0, 64);
  return name === '' ? 'device' : name;
}
