/** RFC 5272 §6.13: who may query a queued request, and which one a pendToken names (docs/guides/approval.md). */
import { expect, test } from 'vitest';
import type { Ca } from '../../src/ca/router.ts';
import { PendingRequests, pendToken } from '../../src/cmc/pending.ts';
import type { Sender } from '../../src/cmc/sender.ts';
import type { Enrollment } from '../../src/enrollment/enrollment.ts';
import type { RequestBase } from '../../src/enrollment/request.ts';
import { parseSignedData, buildSignedData } from '../../src/pki/cms/cms.ts';
import { OID } from '../../src/pki/der/oids.ts';
import { encodeSubjectKeyIdentifier } from '../../src/pki/x509/extensions.ts';
import { subjectKeyIdentifier } from '../../src/pki/x509/public-key.ts';
import type { CertificateStore } from '../../src/store/certificate-store.ts';
import type { RequestRow, RequestStore } from '../../src/store/request-store.ts';
import { buildCrmf } from '../pki/cmc/samples.ts';
import { requestRow } from '../store/rows.ts';
import { buildCsr, extensionRequest, makeKey } from '../support/csr.ts';
import { ownKeyIdentifier, requestedKey } from '../support/cmc.ts';
import { messageOf, outcome, part, senderOf } from './support.ts';

const ID = '00000000-0000-4000-8000-000000000001';
const sender = senderOf();
const ca = { label: 'devices' } as unknown as Ca;

function pendingWith(more: Partial<RequestRow> = {}) {
  const asked: string[] = [];
  const row = requestRow({ id: ID, operation: 'fullcmc', requester_id: sender.identity.requester, ...more });
  const getRequest = (id: string) => {
    asked.push(id);
    return Promise.resolve(id === ID ? row : undefined);
  };
  const store = { getRequest } as unknown as CertificateStore & RequestStore;
  return { pending: new PendingRequests(store, {} as unknown as Enrollment), asked };
}

const query = (more: Partial<RequestRow>, by: Sender = sender, token = pendToken(ID)): Promise<string> =>
  outcome(async () => {
    const base: RequestBase = {
      ...{ requestId: 'x', operation: 'fullcmc', ca, address: '192.0.2.1', identity: by.identity, events: [] },
    };
    const answer = await pendingWith(more).pending.query(4, token, by, base);
    expect(answer).toEqual({ kind: 'pending', bodyPart: 4, requestId: ID });
  });

test('the requester, a registration authority and the holder of the queued key query a request', async () => {
  const NOT_ALLOWED = '403 badIdentity [4]';
  expect(await query({})).toBe('ok');
  expect(await query({ requester_id: 'cmc:other' })).toBe(NOT_ALLOWED);
  expect(await query({ requester_id: 'cmc:other' }, senderOf('ra'))).toBe('ok');
  const limited = (limitedTo: NonNullable<Sender['limitedTo']>) => senderOf('subscriber', { limitedTo });
  expect(await query({ requester_id: 'cmc:other' }, limited({ queuedRequest: ID }))).toBe('ok');
  expect(await query({}, limited({ queuedRequest: 'another' }))).toBe(NOT_ALLOWED);
  expect(await query({}, limited('shared-secret revocation'))).toBe(NOT_ALLOWED);
});

test('a pendToken names a request of fullcmc at this label', async () => {
  const UNKNOWN = '400 badRequest [4]';
  expect(await query({ ca: 'lab' })).toBe(UNKNOWN);
  expect(await query({ operation: 'simpleenroll' })).toBe(UNKNOWN);
  expect(await query({}, sender, pendToken(ID.replace('1', '2')))).toBe(UNKNOWN);
  const { pending, asked } = pendingWith();
  const base = {
    requestId: 'x',
    operation: 'fullcmc',
    ca,
    address: '',
    identity: sender.identity,
    events: [],
  } as const;
  for (const token of ['', 'x', `${ID}\n`, `${ID}0`, '\0'])
    expect(await outcome(() => pending.query(4, Buffer.from(token), sender, base))).toBe(UNKNOWN);
  expect(asked, 'only an ID is looked up').toEqual([]);
});

test('the queued request whose key signs the message, and not one that only has its name', async () => {
  const [key, other] = [makeKey(), makeKey()];
  const csr = buildCsr(key, { attributes: [extensionRequest(ownKeyIdentifier(key))] });
  const value = encodeSubjectKeyIdentifier(subjectKeyIdentifier(key.spki));
  const crmf = buildCrmf(key, { extensions: [{ oid: OID.subjectKeyIdentifier, critical: false, value }] });
  const signedWith = async (by: typeof key, row: Partial<RequestRow> = { csr }) => {
    const signedData = parseSignedData(
      await buildSignedData({
        contentType: OID.pkiData,
        content: Buffer.from('content'),
        certificates: [],
        signers: [{ ...requestedKey(by), sid: requestedKey(key).sid }],
        signingTime: new Date(0),
      }),
    );
    const [signer] = signedData.signerInfos;
    if (signer === undefined) throw new Error('no signer');
    const message = messageOf([part(1, 'queryPending', pendToken(ID))]);
    return pendingWith(row).pending.ofSigner(message, signedData, signer, ca);
  };
  expect(await signedWith(key)).toMatchObject({ id: ID, requesterId: sender.identity.requester });
  expect(await signedWith(key, { csr: crmf, format: 'crmf' })).toMatchObject({ id: ID });
  expect(await signedWith(other)).toBeUndefined();
});
