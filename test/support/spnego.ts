import { KerberosVerifier } from '../../src/auth/gssapi/kerberos-verifier.ts';
import { PrincipalMapping } from '../../src/auth/gssapi/principal.ts';
import { SpnegoPlugin } from '../../src/auth/gssapi/gssapi.ts';
import type { PresentedCredentials } from '../../src/auth/identity.ts';
import { EstuaryError } from '../../src/errors.ts';
import { formatName } from '../../src/pki/x509/name.ts';
import { explicit, octetString, oid, sequence, tlv } from '../../src/pki/der/der.ts';
import { KeptLog } from './kept-log.ts';
import { SERVICE } from './kdc.ts';

interface AcceptorOptions {
  readonly keytab?: string;
  readonly gssproxy?: boolean;
  readonly environment: Readonly<Record<string, string>>;
  readonly deadlineMs?: number;
  readonly service_principal?: string;
}

/** The server's side of Negotiate, without HTTP around it. */
export class Acceptor {
  readonly log = new KeptLog();
  readonly verifier: KerberosVerifier;
  readonly #plugin: SpnegoPlugin;

  private constructor(options: AcceptorOptions) {
    const { keytab, gssproxy = false, environment, deadlineMs = 60_000, service_principal = SERVICE } = options;
    this.verifier = new KerberosVerifier({
      config: { keytab, gssproxy, service_principal },
      environment,
      log: this.log,
      deadlineMs,
    });
    const mapping = new PrincipalMapping({ service_principal, default_template: 'CN={principal}' });
    this.#plugin = new SpnegoPlugin(this.verifier, mapping);
  }

  static async start(options: AcceptorOptions): Promise<Acceptor> {
    const acceptor = new Acceptor(options);
    await acceptor.verifier.start();
    return acceptor;
  }

  async stop(): Promise<void> {
    await this.verifier.stop();
  }

  /** `200 <subject>`, or the status, public sentence and private detail of the refusal. */
  async verdict(token: string): Promise<{ status: number; text: string; detail: string; replyToken: string }> {
    try {
      const identity = await this.#plugin.authenticate(presenting(`Negotiate ${token}`));
      if (identity === undefined) throw new Error('a Negotiate token was passed over');
      const text = formatName(identity.subject);
      return { status: 200, text, detail: '', replyToken: identity.replyToken ?? '' };
    } catch (error) {
      if (!(error instanceof EstuaryError)) throw error;
      return { status: error.status, text: error.message, detail: error.detail ?? '', replyToken: '' };
    }
  }
}

/** A request with this Authorization header and no client certificate. */
export function presenting(authorization: string | undefined): PresentedCredentials {
  return { authorization, peerCertificate: undefined, peerIntermediates: [], address: '127.0.0.1' };
}

/** A real client's SPNEGO token, grown to `bytes` or a little less by mechanisms that the client offers besides Kerberos. */
export function padToken(base64: string, bytes: number): string {
  const token = Buffer.from(base64, 'base64');
  const krb5 = Buffer.from('06092a864886f712010202', 'hex');
  const mechToken = token.subarray(token.indexOf(Buffer.from('60', 'hex'), 20));
  const other = oid('1.3.6.1.4.1.311.2.2.10');
  const others = Buffer.concat(
    Array.from({ length: Math.floor((bytes - token.length - 48) / other.length) }, () => other),
  );
  const init = sequence(explicit(0, sequence(krb5, others)), explicit(2, octetString(mechToken)));
  return tlv(0x60, oid('1.3.6.1.5.5.2'), explicit(0, init)).toString('base64');
}
