/**
 * The floors that Estuary is compared with: TLS servers of Node that request a client certificate and answer each POST.
 * `bare` verifies the CSR, signs, and stores nothing. `durable` verifies the CSR, commits an intent, signs, verifies its signature,
 * commits the certificate with five chained audit records to SQLite and to a file, forces both to disk, and then answers. A password is
 * checked, and its use committed with the intent. It does nothing else, all in its main thread. enroll.ts starts it: `floor.ts bare|durable FOLDER`, the folder of a quickstart.
 */
import Database from 'better-sqlite3';
import {
  createHmac,
  createPublicKey,
  generateKeyPairSync,
  hash,
  randomBytes,
  randomUUID,
  sign,
  timingSafeEqual,
  verify,
} from 'node:crypto';
import { fdatasyncSync, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { createServer, type TLSSocket } from 'node:tls';

const [, , kind, folder = ''] = process.argv;
const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });

/** Octets of the header of a DER element. */
function headerOf(der: Buffer): number {
  const octet = der[1] ?? 0;
  return octet < 0x80 ? 2 : 2 + (octet & 0x7f);
}

/** The elements inside a DER element, each with its header. */
function inside(der: Buffer): readonly Buffer[] {
  const elements: Buffer[] = [];
  for (let at = headerOf(der); at < der.length;) {
    const header = headerOf(der.subarray(at));
    const length = header === 2 ? (der[at + 1] ?? 0) : der.readUIntBE(at + 2, header - 2);
    elements.push(der.subarray(at, (at += header + length)));
  }
  return elements;
}

/** @returns the SubjectPublicKeyInfo of a PKCS #10 whose signature is valid */
function verifiedKey(csr: Buffer): Buffer {
  const [info, , bits] = inside(csr);
  const spki = info === undefined ? undefined : inside(info)[2];
  if (info === undefined || bits === undefined || spki === undefined) throw new Error('not a PKCS #10');
  const key = createPublicKey({ key: spki, format: 'der', type: 'spki' });
  if (!verify('sha256', info, key, bits.subarray(headerOf(bits) + 1))) throw new Error('an invalid signature');
  return spki;
}

/** Something of the size of a certificate: what is signed, and the signature. */
function certificate(spki: Buffer): Buffer {
  const tbs = Buffer.concat([randomBytes(330), spki]);
  return Buffer.concat([tbs, sign('sha256', tbs, privateKey)]);
}

function issueDurably(): (spki: Buffer, password?: string) => Buffer {
  const db = new Database(join(folder, 'floor.db'));
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = FULL');
  db.exec(`CREATE TABLE intent (id TEXT PRIMARY KEY, serial TEXT, requester TEXT, at INTEGER) WITHOUT ROWID;
    CREATE TABLE token (id TEXT PRIMARY KEY, hash BLOB, used INTEGER) WITHOUT ROWID;
    CREATE TABLE certificate (serial TEXT PRIMARY KEY, request TEXT, subject TEXT, at INTEGER, der BLOB);
    CREATE TABLE audit (seq INTEGER PRIMARY KEY, time INTEGER, line TEXT)`);
  const file = openSync(join(folder, 'floor.log'), 'a');
  const [begin, commit] = [db.prepare('BEGIN IMMEDIATE'), db.prepare('COMMIT')];
  const addIntent = db.prepare('INSERT INTO intent VALUES (?, ?, ?, ?)');
  const endIntent = db.prepare('DELETE FROM intent WHERE id = ?');
  const addCertificate = db.prepare('INSERT INTO certificate VALUES (?, ?, ?, ?, ?)');
  const addRecord = db.prepare('INSERT INTO audit VALUES (?, ?, ?)');
  const addToken = db.prepare('INSERT OR IGNORE INTO token VALUES (?, ?, 0)');
  const findToken = db.prepare<[string], { hash: Buffer }>('SELECT hash FROM token WHERE id = ?');
  const useToken = db.prepare('UPDATE token SET used = used + 1 WHERE id = ?');
  const hmacKey = randomBytes(32);
  const known = new Set<string>();
  const subject = 'CN=device-1.example.com,O=Example';
  let [seq, prev_hash] = [0, '0'.repeat(64)];

  /** One transaction, with its audit records. */
  function write(types: readonly string[], request_id: string, serial: string, change: (now: number) => void): void {
    const now = Date.now();
    const time = new Date(now).toISOString();
    begin.run();
    change(now);
    const lines = types.map((type) => {
      const event = { type, outcome: 'success', subject, method: 'mtls', address: '192.0.2.1', ca: 'devices' };
      const record = JSON.stringify({ seq: ++seq, time, ...event, serial, request_id, prev_hash });
      prev_hash = hash('sha256', record);
      const line = `${record.slice(0, -1)},"hash":"${prev_hash}"}`;
      addRecord.run(seq, now, line);
      return line;
    });
    writeSync(file, `${lines.join('\n')}\n`);
    fdatasyncSync(file);
    commit.run();
  }

  /** @returns the token; that of a new password is added first */
  function checked(password: string): string {
    const [id = '', secret = ''] = Buffer.from(password, 'base64').toString().split(':');
    const mac = createHmac('sha256', hmacKey).update(secret).digest();
    if (!known.has(id)) addToken.run(id, mac);
    known.add(id);
    const stored = findToken.get(id)?.hash;
    if (stored === undefined || !timingSafeEqual(stored, mac)) throw new Error('a wrong password');
    return id;
  }

  return (spki, password) => {
    const [id, serial] = [randomUUID(), randomBytes(16).toString('hex')];
    const token = password === undefined ? undefined : checked(password);
    write(['auth.succeeded', 'request.received', 'request.checked'], id, serial, (now) => {
      addIntent.run(id, serial, subject, now);
      if (token !== undefined) useToken.run(token);
    });
    const der = certificate(spki);
    const tbs = 330 + spki.length;
    if (!verify('sha256', der.subarray(0, tbs), publicKey, der.subarray(tbs))) throw new Error('an invalid signature');
    write(['ca.signature', 'certificate.issued'], id, serial, (now) => {
      endIntent.run(id);
      addCertificate.run(serial, id, subject, now, der);
    });
    return der;
  };
}

const issue = kind === 'durable' ? issueDurably() : certificate;
/** The certificates of the chain, which a response contains as well. */
const CHAIN = 'A'.repeat(600);

function serve(socket: TLSSocket): void {
  let text = '';
  socket.on('error', () => socket.destroy());
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1');
    for (let head = text.indexOf('\r\n\r\n'); head >= 0; head = text.indexOf('\r\n\r\n')) {
      const fields = text.slice(0, head);
      const end = head + 4 + Number(/^content-length: *(\d+)$/im.exec(fields)?.[1] ?? 0);
      if (text.length < end) return;
      const [, password] = /^authorization: *Basic (\S+)$/im.exec(fields) ?? [];
      const spki = verifiedKey(Buffer.from(text.slice(head + 4, end), 'base64'));
      const body = issue(spki, password).toString('base64') + CHAIN;
      text = text.slice(end);
      socket.write(
        `HTTP/1.1 200 OK\r\nContent-Type: application/pkcs7-mime\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      );
    }
  });
}

const file = (name: string): Buffer => readFileSync(join(folder, name));
const server = createServer(
  {
    cert: file('tls/server.pem'),
    key: file('tls/server.key'),
    ca: [file('ca/root.pem'), file('ca/issuing.pem')],
    requestCert: true,
    // Clients with a one-time password have no certificate.
    rejectUnauthorized: false,
  },
  serve,
);
server.listen(0, '127.0.0.1', () => process.send?.(server.address()));
