/** The first token of a GSS-API client, by the optional package `kerberos`, which is loaded where a server asks for it. */
import { ClientError } from '../client-error.ts';

/**
 * @returns base64
 * @throws ClientError `CREDENTIALS_MISSING`
 */
export async function initialToken(host: string): Promise<string> {
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
