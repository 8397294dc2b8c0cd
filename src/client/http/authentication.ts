/** The client's credentials, and what they say to a challenge. */
import { authorization as answerTo, parseChallenges, type ReadPassword } from '../../est-protocol/authentication.ts';
import { ClientError } from '../client-error.ts';

export type { ReadPassword } from '../../est-protocol/authentication.ts';

/** Credentials in addition to the certificate. */
export interface Credentials {
  readonly username: string;
  readonly password: ReadPassword | undefined;
  readonly kerberos: boolean;
  /** Reads a bearer token (RFC 6750). */
  readonly bearer: (() => Promise<string>) | undefined;
}

type Answer = typeof answerTo;

/** @throws ClientError `CREDENTIALS_MISSING` if Kerberos is required and there is no ticket */
export const authorization = (
  header: Parameters<Answer>[0],
  { username, password, kerberos }: Credentials,
  request: Parameters<Answer>[2],
  random: Parameters<Answer>[3],
): ReturnType<Answer> =>
  answerTo(header, { username, password, ticket: kerberos ? initialToken : undefined }, request, random);

/** By the optional package `kerberos`, loaded on demand. */
async function initialToken(host: string): Promise<string> {
  try {
    const { default: kerberos } = await import('kerberos');
    const client = await kerberos.initializeClient(`HTTP@${host}`, { mechOID: kerberos.GSS_MECH_OID_SPNEGO });
    return await client.step('');
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new ClientError('unauthenticated', 'CREDENTIALS_MISSING', `no Kerberos ticket for HTTP@${host}: ${reason}`, {
      cause: error,
    });
  }
}

/** @param offered the WWW-Authenticate without a usable challenge */
export const noCredentials = (offered: string): ClientError =>
  new ClientError(
    'unauthenticated',
    'CREDENTIALS_MISSING',
    `the server requires ${parseChallenges(offered)
      .map(({ scheme }) => scheme)
      .join(' or ')}, and no password (otp_file, otp_env) or Kerberos ticket is available`,
    { status: 401 },
  );
