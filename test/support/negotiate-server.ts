import { X509Certificate } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { formatName } from '../../src/pki/x509/name.ts';
import { parseCertificate, type Certificate } from '../../src/pki/x509/certificate.ts';
import { parseCertsOnly } from '../../src/pki/cms/cms.ts';
import { runText } from './command.ts';
import { buildCsr, commonName, dns, extensionRequest, makeKey, onTheWire, san, type TestKey } from './csr.ts';
import { startQuickstart, type Quickstart } from './quickstart.ts';
import { call, type Answer, type ClientTls } from './https.ts';
import { SERVICE, type Kdc } from './kdc.ts';

/** What an EST answer says, with the certificate if it brought one. */
export interface Enrollment {
  readonly status: number;
  readonly text: string;
  /** `WWW-Authenticate`, in the order sent. */
  readonly challenges: readonly string[];
  readonly certificate: Certificate | undefined;
  /** RFC 4514 subject of the certificate, or empty. */
  readonly subject: string;
}

interface ServerOptions {
  readonly kdc: Kdc;
  /** Lines of `[gssapi]` in addition to `enabled` and `service_principal`. */
  readonly gssapi: string;
  readonly service_principal?: string | undefined;
  /** Keys that stand before every section. */
  readonly topLevel?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** The built server as the quickstart configures it, with Negotiate on. */
export class NegotiateServer {
  readonly quickstart: Quickstart;
  readonly kdc: Kdc;
  /** PEM of the root that the server's certificate chains to. */
  readonly ca: Buffer;

  private constructor(quickstart: Quickstart, kdc: Kdc, ca: Buffer) {
    this.quickstart = quickstart;
    this.kdc = kdc;
    this.ca = ca;
  }

  static async start(options: ServerOptions): Promise<NegotiateServer> {
    const { kdc, gssapi, service_principal = SERVICE, topLevel = '', env = {} } = options;
    const sections = `${topLevel}\n[gssapi]\nenabled = true\nservice_principal = "${service_principal}"\n${gssapi}`;
    const quickstart = await startQuickstart({ sections, env: { ...kdc.env, ...env } });
    return new NegotiateServer(quickstart, kdc, await readFile(quickstart.file('ca/root.pem')));
  }

  get tls(): ClientTls {
    return { ca: this.ca };
  }

  async stop(): Promise<void> {
    await this.quickstart.stop();
  }

  /** A CSR that asks for `CN=whatever` and these DNS names. */
  csr(key: TestKey = makeKey(), dnsNames: readonly string[] = []): Buffer {
    const attributes = dnsNames.length === 0 ? [] : [extensionRequest(san(...dnsNames.map((name) => dns(name))))];
    return buildCsr(key, { subject: commonName('whatever'), attributes });
  }

  /** Sends a request with this token, or another Authorization header. */
  async post(
    options: {
      token?: string;
      authorization?: string;
      operation?: string;
      csr?: Buffer;
      tls?: Partial<ClientTls>;
    } = {},
  ): Promise<Enrollment> {
    const { token, operation = 'simpleenroll', csr = this.csr(), tls = {} } = options;
    const authorization = token === undefined ? options.authorization : `Negotiate ${token}`;
    const answer = await call({
      method: 'POST',
      path: `/.well-known/est/${operation}`,
      port: this.quickstart.server.port('est'),
      headers: {
        'Content-Type': 'application/pkcs10',
        ...(authorization === undefined ? {} : { Authorization: authorization }),
      },
      body: onTheWire(csr),
      tls: { ...this.tls, ...tls },
    });
    return enrollment(answer);
  }

  /** `curl --negotiate -u :` with a credential cache, as a user would type it. */
  async curl(cache: string, csr: Buffer = this.csr()): Promise<{ status: number; subject: string; output: string }> {
    const file = this.quickstart.file(`curl-${String(Math.random()).slice(2)}.p10`);
    await writeFile(file, onTheWire(csr));
    const output = await runText(
      'curl',
      [
        ...['-sS', '--noproxy', '*', '--negotiate', '-u', ':', '--cacert', this.quickstart.file('ca/root.pem')],
        ...['-H', 'Content-Type: application/pkcs10', '--data-binary', `@${file}`],
        ...['-w', '\n%{http_code}', `${this.quickstart.est}/simpleenroll`],
      ],
      { env: { ...this.kdc.env, KRB5CCNAME: `FILE:${cache}` } },
    );
    const lines = output.trimEnd().split('\n');
    const status = Number(lines.pop());
    const body = lines.join('\n');
    return { status, subject: status === 200 ? subjectOf(body) : '', output: body };
  }

  /** Process ids of the server's GSSAPI children. */
  async children(): Promise<number[]> {
    const output = await runText('ps', ['-eo', 'pid=,ppid=,args=']);
    const rows = output.split('\n').map((line) => line.trim().split(/\s+/));
    return rows
      .filter(
        ([, ppid, ...args]) => Number(ppid) === this.quickstart.server.pid && args.join(' ').includes('spnego-child'),
      )
      .map(([pid]) => Number(pid));
  }

  /** Audit records of one type, oldest first. */
  async audit(type: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
    const page = await this.quickstart.admin(`/admin/audit?type=${type}&limit=500`);
    if (!isRecord(page) || !Array.isArray(page['items'])) throw new Error('no audit records');
    return page['items'].filter(isRecord);
  }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

function enrollment({ status, text, rawHeaders }: Answer): Enrollment {
  const challenges = rawHeaders.filter((_, i) => i % 2 === 1 && rawHeaders[i - 1] === 'WWW-Authenticate');
  const certificate = status === 200 ? certificateOf(text) : undefined;
  return {
    status,
    text,
    challenges,
    certificate,
    subject: certificate === undefined ? '' : formatName(certificate.subject),
  };
}

function certificateOf(base64: string): Certificate {
  const [der] = parseCertsOnly(Buffer.from(base64, 'base64'));
  if (der === undefined) throw new Error('no certificate in the answer');
  return parseCertificate(der);
}

const subjectOf = (base64: string): string => formatName(certificateOf(base64).subject);

/** A TLS client's key pair and certificate from an enrollment. */
export function clientTls(key: TestKey, certificate: Certificate): { key: string; cert: string } {
  return { key: key.pem, cert: new X509Certificate(certificate.der).toString() };
}
