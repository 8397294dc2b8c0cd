/**
 * Dogtag's own CMC clients (PKCS10Client, CRMFPopClient, CMCRequest, CMCResponse), run where `scripts/dogtag` keeps
 * them, on an NSS database of their own. Dogtag itself takes no part.
 */
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { parseCertificate, type Certificate } from '../../src/pki/x509/certificate.ts';
import { parseSignedData } from '../../src/pki/cms/cms.ts';
import { BRIEF } from './bouncycastle.ts';
import { run, runAny } from './command.ts';
import { DOGTAG_FOLDER } from './dogtag-folder.ts';
import type { ClientIdentity } from './estuary.ts';
import { openssl } from './openssl.ts';
import { ROOT } from './root.ts';
import { removeFolder } from './folders.ts';

const SCRIPT = join(ROOT, 'scripts', 'dogtag');
/** Runs a command inside. */
const INSIDE = ['exec', 'env', `JAVA_TOOL_OPTIONS=${BRIEF.join(' ')}`];
const PASSWORD = 'Secret.123';
const TIMEOUT = { timeout: 100_000 };

/** What CMCResponse makes of an answer. */
export interface ToolResponse {
  /** 0: every status is success. */
  readonly code: number;
  /** What it says of the controls. */
  readonly output: string;
  /** The certificates it wrote out; none unless the code is 0. */
  readonly certificates: readonly Certificate[];
}

export class DogtagTools {
  /** The folder here, and its name inside. */
  readonly #here: string;
  readonly #inside: string;

  private constructor(folder: string) {
    this.#here = folder;
    this.#inside = join('/tmp', basename(folder));
  }

  static async open(): Promise<DogtagTools> {
    const folder = mkdtempSync(join(DOGTAG_FOLDER, 'tree', 'tmp', 'estuary-cmc-'));
    const tools = new DogtagTools(folder);
    writeFileSync(join(folder, 'password'), PASSWORD);
    mkdirSync(join(folder, 'db'));
    await tools.#run('certutil', '-N', '-d', tools.inside('db'), '-f', tools.inside('password'));
    return tools;
  }

  close(): void {
    removeFolder(this.#here);
  }

  inside(name: string): string {
    return join(this.#inside, name);
  }

  read(name: string): Buffer {
    return readFileSync(join(this.#here, name));
  }

  write(name: string, content: string | Buffer): void {
    writeFileSync(join(this.#here, name), content);
  }

  #run(...command: readonly string[]): Promise<Buffer> {
    return run(SCRIPT, [...INSIDE, ...command], TIMEOUT);
  }

  /** A new key in the database and a request for it, in the file `NAME.pem`, with a Subject Key Identifier. */
  async newRequest(
    name: string,
    subject: string,
    { format = 'pkcs10', key = 'P-256' }: { format?: 'pkcs10' | 'crmf'; key?: 'P-256' | 'RSA 1024' } = {},
  ): Promise<void> {
    const algorithm = key === 'P-256' ? ['-a', 'ec', '-c', 'nistp256'] : ['-a', 'rsa', '-l', '1024'];
    const common = ['-d', this.inside('db'), '-p', PASSWORD, ...algorithm, '-n', subject];
    const output = ['-o', this.inside(`${name}.pem`)];
    if (format === 'pkcs10') await this.#run('PKCS10Client', ...common, '-y', 'true', ...output);
    else await this.#run('CRMFPopClient', ...common, '-q', 'POP_SUCCESS', '-t', 'false', '-y', ...output);
  }

  /** Makes a full PKI request (BER) of these settings and the requests of these names. */
  async cmcRequest(requests: readonly string[], settings: Readonly<Record<string, string>>): Promise<Buffer> {
    const [first] = requests;
    const all: Record<string, string> = {
      numRequests: String(requests.length),
      input: requests.map((name) => this.inside(`${name}.pem`)).join(' '),
      output: this.inside('request.der'),
      tokenname: 'internal',
      dbdir: this.inside('db'),
      password: PASSWORD,
      format: 'pkcs10',
      'transactionMgt.enable': 'true',
      'senderNonce.enable': 'true',
      ...(first === undefined
        ? {}
        : { 'request.privKeyId': this.read(`${first}.pem.keyId`).toString('latin1').trim() }),
      ...settings,
    };
    this.write('request.der', '');
    this.write(
      'request.cfg',
      Object.entries(all)
        .map(([name, value]) => `${name}=${value}\n`)
        .join(''),
    );
    const { output } = await runAny(SCRIPT, [...INSIDE, 'CMCRequest', this.inside('request.cfg')], TIMEOUT);
    const message = this.read('request.der');
    // Its exit code is 0 whatever happens.
    if (message.length === 0) throw new Error(output);
    return message;
  }

  async cmcResponse(message: Buffer): Promise<ToolResponse> {
    this.write('response.der', message);
    this.write('response.pem', '');
    const args = ['-d', this.inside('db'), '-i', this.inside('response.der'), '-o', this.inside('response.pem')];
    const { code, output } = await runAny(SCRIPT, [...INSIDE, 'CMCResponse', ...args], TIMEOUT);
    const pem = this.read('response.pem').toString('latin1');
    const der = Buffer.from(pem.replace(/-----[^-]+-----/g, ''), 'base64');
    const certificates = der.length === 0 ? [] : parseSignedData(der).certificates.map(parseCertificate);
    return { code, output: output.slice(Math.max(0, output.indexOf('Number of controls'))), certificates };
  }

  /** Imports a certificate for its key under this nickname, or a trusted CA certificate. */
  async addCertificate(nickname: string, der: Buffer, trust: 'CT,C,C' | ',,' = ',,'): Promise<void> {
    this.write('add.der', der);
    const file = ['-i', this.inside('add.der')];
    await this.#run(
      'certutil',
      '-A',
      '-d',
      this.inside('db'),
      '-f',
      this.inside('password'),
      '-n',
      nickname,
      '-t',
      trust,
      ...file,
    );
  }

  /** Puts a certificate with its key into the database. */
  async addIdentity(nickname: string, { cert, key }: ClientIdentity): Promise<void> {
    this.write('identity.pem', `${key}\n${cert}`);
    const args = ['-in', join(this.#here, 'identity.pem'), '-name', nickname, '-passout', `pass:${PASSWORD}`];
    // NSS of Debian bullseye reads no newer encryption.
    const old = ['-keypbe', 'PBE-SHA1-3DES', '-certpbe', 'PBE-SHA1-3DES', '-macalg', 'sha1'];
    this.write('identity.p12', openssl(['pkcs12', '-export', ...args, ...old]));
    const database = ['-d', this.inside('db'), '-K', PASSWORD, '-W', PASSWORD];
    await this.#run('pk12util', '-i', this.inside('identity.p12'), ...database);
  }
}
