/** RFC 5272, RFC 6402 and RFC 7030 §4.3 at the built server: what is granted. */
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildControl } from '../../src/cmc/controls.ts';
import { formatName } from '../../src/pki/name.ts';
import { exchange, inShort, issuedBy, requestBy } from '../support/cmc.ts';
import { makeKey, simpleCsr } from '../support/csr.ts';
import { Estuary, type ClientIdentity } from '../support/estuary.ts';

let server: Estuary;
let device: ClientIdentity;

beforeAll(async () => {
  server = await Estuary.start();
  device = await server.enrolled(makeKey(), 'device-1');
}, 120_000);
afterAll(() => server.stop());

const tcr = (bodyPartID: number, der: Buffer) => ({ kind: 'tcr' as const, bodyPartID, der });

describe('RFC 7030 §4.3: a full PKI request', () => {
  test('a signed PKCS#10 over mTLS is answered with its certificate in a signed PKIResponse', async () => {
    const key = makeKey();
    const nonce = randomBytes(16);
    const controls = [
      buildControl(101, 'transactionId', '7f01'),
      buildControl(102, 'senderNonce', nonce),
      buildControl(103, 'dataReturn', Buffer.from('state')),
    ];
    const reply = await exchange(
      server,
      requestBy(device, { controlSequence: controls, reqSequence: [tcr(1, simpleCsr(key, 'device-1'))] }),
      device,
    );
    expect(reply.status).toBe(200);
    expect(inShort(reply)).toEqual(['success [1]']);
    const [certificate, ...more] = issuedBy(reply);
    expect(more).toEqual([]);
    expect(certificate?.spki.equals(key.spki)).toBe(true);
    expect(certificate && formatName(certificate.subject)).toBe('CN=device-1');
    const values = new Map(reply.controls.map((control) => [control.name, control]));
    expect(values.get('transactionId')).toMatchObject({ value: '7f01' });
    expect(values.get('recipientNonce')).toMatchObject({ value: nonce });
    expect(values.get('dataReturn')).toMatchObject({ value: Buffer.from('state') });
    expect(values.get('senderNonce')).not.toMatchObject({ value: nonce });
  });
});
