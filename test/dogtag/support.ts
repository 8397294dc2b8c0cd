/** curl and openssl as a client of an Estuary in front of the real Dogtag. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { run, runText } from '../support/command.ts';
import type { Estuary } from '../support/estuary.ts';

export const KEYS = {
  'P-256': ['-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-256'],
  'P-384': ['-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-384'],
  'RSA 2048': ['-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:2048'],
} as const;

export interface CurlAnswer {
  readonly status: number;
  readonly retryAfter: string;
  readonly body: string;
}

/** A key and a request for `CN=name`, as files. */
export interface DeviceRequest {
  readonly name: string;
  readonly key: string;
  /** base64 of the PKCS#10. */
  readonly csr: string;
}

export class Device {
  readonly #estuary: Estuary;
  readonly #folder: string;
  #made = 0;

  constructor(estuary: Estuary) {
    this.#estuary = estuary;
    this.#folder = join(estuary.dir, 'client');
    mkdirSync(this.#folder, { recursive: true });
  }

  file(name: string): string {
    return join(this.#folder, name);
  }

  /** A new key and a request with the DNS name `name`.example.com. */
  async request(name: string, kind: keyof typeof KEYS = 'P-256', subject = `/CN=${name}`): Promise<DeviceRequest> {
    const base = this.file(`${name}-${++this.#made}`);
    const [key, csr] = [`${base}.key`, `${base}.b64`];
    await run('openssl', ['genpkey', ...KEYS[kind], '-out', key]);
    const names = ['-subj', subject, '-addext', `subjectAltName=DNS:${name}.example.com`];
    const der = await run('openssl', ['req', '-new', '-key', key, ...names, '-outform', 'DER']);
    writeFileSync(csr, der.toString('base64'));
    return { name, key, csr };
  }

  /** One POST with curl, bounded in time. */
  async post(operation: string, csr: string, ...more: readonly string[]): Promise<CurlAnswer> {
    const port = this.#estuary.server.port('est');
    const output = await runText('curl', [
      ...['-sS', '--noproxy', '*', '--max-time', '55', '--cacert', join(this.#estuary.dir, 'ca/root.pem')],
      ...['-H', 'Content-Type: application/pkcs10', '--data-binary', `@${csr}`, ...more],
      ...['-w', '\n%{http_code} %header{retry-after}'],
      `https://localhost:${port}/.well-known/est/${operation}`,
    ]);
    const end = output.lastIndexOf('\n');
    const [status = '', retryAfter = ''] = output.slice(end + 1).split(' ');
    return { status: Number(status), retryAfter, body: output.slice(0, end) };
  }

  /** simpleenroll with a one-time password. */
  enroll({ name, csr }: DeviceRequest, token: string): Promise<CurlAnswer> {
    return this.post('simpleenroll', csr, '-u', `${name}:${token}`);
  }

  /** The one certificate of an answer as a PEM file, verified by openssl against Dogtag's CA, and for this key. */
  async verified({ body }: CurlAnswer, ca: string, { name, key }: DeviceRequest): Promise<string> {
    const pem = `${key}.pem`;
    const der = Buffer.from(body, 'base64');
    writeFileSync(pem, await run('openssl', ['pkcs7', '-inform', 'DER', '-print_certs'], { input: der }));
    await run('openssl', ['verify', '-x509_strict', '-CAfile', ca, pem]);
    const publicKeys = await Promise.all([
      runText('openssl', ['x509', '-in', pem, '-noout', '-pubkey']),
      runText('openssl', ['pkey', '-in', key, '-pubout']),
    ]);
    if (publicKeys[0] !== publicKeys[1]) throw new Error('the certificate is for another key');
    const text = await runText('openssl', ['x509', '-in', pem, '-noout', '-ext', 'subjectAltName']);
    if (!text.includes(`DNS:${name}.example.com`)) throw new Error(`the name is missing: ${text}`);
    return pem;
  }

  /** The serial number in a PEM file, as Estuary writes it. */
  async serial(pem: string): Promise<string> {
    const text = await runText('openssl', ['x509', '-in', pem, '-noout', '-serial']);
    return text.trim().replace('serial=', '').toLowerCase();
  }
}
