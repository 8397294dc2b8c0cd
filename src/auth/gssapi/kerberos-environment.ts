import { failed } from '../../errors.ts';

/** The keys of `[gssapi]` that say where the credentials come from. */
export interface CredentialConfig {
  readonly keytab?: string | undefined;
  readonly gssproxy: boolean;
}

/** Variables of the Kerberos and GSS-API libraries that an administrator may set for the server. */
const PASSED_ON = [
  'KRB5_CONFIG',
  'KRB5_TRACE',
  'KRB5RCACHEDIR',
  'GSS_MECH_CONFIG',
  'GSSPROXY_SOCKET',
  'LD_LIBRARY_PATH',
  'PATH',
  'TMPDIR',
  'TZ',
] as const;

/**
 * The whole environment of the GSSAPI child process. It fixes what must not depend on how the server was started: the
 * one source of credentials, and the replay cache, which KRB5RCACHETYPE or KRB5RCACHENAME could otherwise turn off.
 *
 * @param threads library calls at a time; each one takes a thread of libuv's pool
 */
export function kerberosEnvironment(
  config: CredentialConfig,
  server: Readonly<Record<string, string | undefined>>,
  threads: number,
): Record<string, string> {
  const env: Record<string, string> = { KRB5RCACHENAME: 'dfl:', UV_THREADPOOL_SIZE: String(threads) };
  for (const name of PASSED_ON) {
    const value = server[name];
    if (value !== undefined) env[name] = value;
  }
  if (config.gssproxy) {
    // REMOTE_ONLY: with gssproxy down the library must not fall back to some keytab it finds by itself.
    return { ...env, GSS_USE_PROXY: 'yes', GSSPROXY_BEHAVIOR: 'REMOTE_ONLY', KRB5_KTNAME: 'MEMORY:none' };
  }
  if (config.keytab === undefined) throw failed('GSSAPI_MISCONFIGURED', 'gssapi: neither keytab nor gssproxy');
  return { ...env, KRB5_KTNAME: `FILE:${config.keytab}` };
}
