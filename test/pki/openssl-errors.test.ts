/**
 * OpenSSL keeps a queue of errors for each thread, and what a call leaves in it fails the next read of any TLS connection of
 * that thread. Here a connection stays open while all of our code processes bad input.
 */
import { X509Certificate, createPrivateKey, diffieHellman, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect, createSecureContext, createServer, type Server, type TLSSocket } from 'node:tls';

import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { isKey } from '../../src/ca/remote/issued.ts';
import { wrapForTransport } from '../../src/ca/dogtag/kra.ts';
import { FileSigner } from '../../src/ca/local/signing.ts';
import { buildEnvelopedData } from '../../src/pki/cms/enveloped-data.ts';
import { unwrapKey, unwrapPasswordKey } from '../../src/pki/cms/key-wrap.ts';
import { OID } from '../../src/pki/der/oids.ts';
import { encodePem } from '../../src/pki/der/pem.ts';
import { buildCsr } from '../../src/pki/pkcs10/csr-builder.ts';
import { parseCsr, verifyCsr } from '../../src/pki/pkcs10/csr.ts';
import { parseCertificate, verifyCertificateSignature } from '../../src/pki/x509/certificate.ts';
import { EMPTY_NAME } from '../../src/pki/x509/name.ts';
import { parsePublicKey, samePublicKey } from '../../src/pki/x509/public-key.ts';
import { SIGNATURE_ALGORITHMS, createSignature, verifySignature } from '../../src/pki/x509/signature-algorithms.ts';
import { makeCa, makeClient } from '../support/certificates.ts';
import * as csrs from '../support/csr.ts';
import { restrictedPssKey, type KeyPair } from '../support/keys.ts';

const KEYS: Readonly<Record<string, KeyPair>> = {
  rsa: generateKeyPairSync('rsa', { modulusLength: 2048 }),
  'rsa-pss': restrictedPssKey(),
  'P-256': generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  'P-384': generateKeyPairSync('ec', { namedCurve: 'P-384' }),
  secp256k1: generateKeyPairSync('ec', { namedCurve: 'secp256k1' }),
  SM2: generateKeyPairSync('ec', { namedCurve: 'SM2' }),
  ed25519: generateKeyPairSync('ed25519'),
  ed448: generateKeyPairSync('ed448'),
  x25519: generateKeyPairSync('x25519'),
  'ml-dsa': generateKeyPairSync('ml-dsa-44'),
};
const spkiOf = ({ publicKey }: KeyPair): Buffer => publicKey.export({ format: 'der', type: 'spki' });
const pemOf = ({ privateKey }: KeyPair): string => privateKey.export({ format: 'pem', type: 'pkcs8' });
const kinds = Object.entries(KEYS);

/** Empty, random, and a well-formed ECDSA signature that matches no key. */
const SIGNATURES = [Buffer.alloc(0), Buffer.alloc(64, 1), Buffer.alloc(256, 1), Buffer.from('3006020101020101', 'hex')];
const DATA = Buffer.from('data');

const ca = await makeCa('CN=localhost');
const client = await makeClient('CN=client', ca);
const certificate = encodePem('CERTIFICATE', ca.der);
const flipped = (bytes: Buffer, fromEnd: number): Buffer =>
  csrs.patched(bytes, bytes.length - fromEnd, (bytes.at(-fromEnd) ?? 0) ^ 0x55);

let server: Server;
let socket: TLSSocket;

beforeAll(async () => {
  server = createServer({ cert: certificate, key: pemOf(ca.keys) }, (peer) => {
    peer.on('error', () => peer.destroy());
    peer.pipe(peer);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  socket = await connected();
});
afterAll(() => {
  socket.destroy();
  server.close();
});

async function connected(): Promise<TLSSocket> {
  const { port } = server.address() as AddressInfo;
  const fresh = connect({ port, host: '127.0.0.1', rejectUnauthorized: false });
  await once(fresh, 'secureConnect');
  fresh.on('error', () => fresh.destroy());
  await echo(fresh); // past the session tickets
  return fresh;
}

/** What became of one octet there and back: the octet, or the connection's end. */
async function echo(over: TLSSocket): Promise<'alive' | 'dead'> {
  // The listeners of the event that does not come would stay: thousands on one connection.
  const settled = new AbortController();
  const { signal } = settled;
  const answer = Promise.race([
    once(over, 'data', { signal }).then(() => 'alive' as const),
    once(over, 'close', { signal }).then(() => 'dead' as const),
  ]);
  over.write('x');
  return answer.catch(() => 'dead' as const).finally(() => settled.abort());
}

/** Does what may throw or reject, and then sees whether the connection still works. */
async function after(call: () => unknown): Promise<'alive' | 'dead'> {
  const pending = new Promise((resolve) => {
    resolve(call());
  }).catch(() => undefined);
  const now = await echo(socket);
  await pending;
  const later = now === 'dead' ? now : await echo(socket);
  if (later === 'dead') socket = await connected();
  return later;
}

const calls: [string, () => unknown][] = [];
for (const [name, key] of kinds) {
  const info = () => parsePublicKey(spkiOf(key));
  for (const [other, otherKey] of kinds)
    calls.push([`samePublicKey ${name} ${other}`, () => samePublicKey(info(), parsePublicKey(spkiOf(otherKey)))]);
  calls.push(
    [`an issued certificate of another key ${name}`, () => isKey(parseCertificate(client.der), spkiOf(key))],
    [
      `a certificate's signature by ${name}`,
      () =>
        verifyCertificateSignature(parseCertificate(client.der), { ...parseCertificate(ca.der), publicKey: info() }),
    ],
    [`an SPKI of ${name} with a flipped bit`, () => parsePublicKey(flipped(spkiOf(key), 2)).keyObject],
    [`an SPKI of ${name} cut short`, () => parsePublicKey(spkiOf(key).subarray(0, -3)).keyObject],
    [`a CA key of ${name}`, () => new FileSigner(createPrivateKey(pemOf(key))).sign(DATA)],
    [`a CA key of ${name}, damaged`, () => createPrivateKey(pemOf(key).replace(/.{8}\n-----END/, '\n-----END'))],
    [`a private key of ${name}, cut short`, () => createPrivateKey(pemOf(key).slice(0, -60))],
    [
      `a CSR with the key ${name}`,
      () =>
        buildCsr({
          subject: EMPTY_NAME,
          subjectAltNames: [],
          publicKey: info(),
          pkcs8: key.privateKey.export({ format: 'der', type: 'pkcs8' }),
        }),
    ],
    [`a key transport to ${name}`, () => wrapForTransport(DATA, key.publicKey)],
    [
      `an agreement with ${name}`,
      () => diffieHellman({ privateKey: KEYS['P-256']?.privateKey as KeyObject, publicKey: key.publicKey }),
    ],
    [`a TLS context with the key ${name}`, () => createSecureContext({ cert: certificate, key: pemOf(key) })],
    [`X509Certificate.verify with ${name}`, () => new X509Certificate(ca.der).verify(key.publicKey)],
    [`X509Certificate.checkPrivateKey with ${name}`, () => new X509Certificate(ca.der).checkPrivateKey(key.privateKey)],
  );
  for (const [algorithmName, algorithm] of Object.entries(SIGNATURE_ALGORITHMS)) {
    calls.push([
      `signing by ${name} with ${algorithmName}`,
      () => createSignature(algorithm, key.privateKey, info().keyType, DATA),
    ]);
    for (const signature of SIGNATURES)
      calls.push([
        `${algorithmName} of ${signature.length} octets, key ${name}`,
        () => verifySignature(algorithm, info(), DATA, signature),
      ]);
  }
}
const kek = Buffer.alloc(16, 1);
const csr = csrs.simpleCsr(csrs.makeKey());
calls.push(
  ['a CSR with a wrong signature', () => verifyCsr(parseCsr(flipped(csr, 1)))],
  [
    'a CSR with a point off its curve',
    () => verifyCsr(parseCsr(csrs.buildCsr(csrs.makeKey(), { spki: flipped(csrs.makeKey().spki, 1) }))),
  ],
  ['a wrapped key that does not open', () => unwrapKey(128, kek, Buffer.alloc(24, 1))],
  ['a wrapped key of an odd length', () => unwrapKey(128, kek, Buffer.alloc(23, 1))],
  ['a password key that does not open', () => unwrapPasswordKey(128, kek, kek, Buffer.alloc(32, 1))],
  ['a password key of an odd length', () => unwrapPasswordKey(128, kek, kek, Buffer.alloc(31, 1))],
  ['an invalid private key', () => createPrivateKey('-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n')],
  [
    'an encrypted private key',
    () =>
      createPrivateKey(
        KEYS['rsa']?.privateKey.export({ format: 'pem', type: 'pkcs8', cipher: 'aes-256-cbc', passphrase: 'x' }) ?? '',
      ),
  ],
  ['a certificate of nonsense', () => new X509Certificate(Buffer.alloc(40, 7))],
  ['a certificate cut short', () => new X509Certificate(ca.der.subarray(0, -4))],
  ['a TLS context of nonsense', () => createSecureContext({ cert: 'x', key: 'y' })],
  [
    'a TLS context with a CA of nonsense',
    () => createSecureContext({ ca: '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----' }),
  ],
  ['a TLS context with a CA twice', () => createSecureContext({ ca: [certificate, certificate] })],
  [
    'a reload of TLS material that fails',
    () => server.setSecureContext({ cert: certificate, key: pemOf(KEYS['rsa'] ?? ca.keys) }),
  ],
  [
    'an envelope for a key that agrees on nothing',
    () =>
      buildEnvelopedData({
        contentType: OID.data,
        content: DATA,
        recipient: {
          kind: 'publicKey',
          rid: { kind: 'subjectKeyIdentifier', keyIdentifier: DATA },
          publicKey: parsePublicKey(spkiOf(KEYS['SM2'] ?? ca.keys)),
        },
        contentBits: 128,
        wrapBits: 128,
      }),
  ],
);

describe('no call breaks other TLS connections', () => {
  test('the connection shows what KeyObject.equals leaves behind', async () => {
    expect(await after(() => KEYS['rsa']?.publicKey.equals(KEYS['P-256']?.publicKey as KeyObject))).toBe('dead');
    expect(await after(() => undefined)).toBe('alive');
  });

  test('it lives through all of ours', async () => {
    const dead: string[] = [];
    for (const [what, call] of calls) if ((await after(call)) === 'dead') dead.push(what);
    expect(dead).toEqual([]);
    expect(calls.length).toBeGreaterThan(600);
  });
});
