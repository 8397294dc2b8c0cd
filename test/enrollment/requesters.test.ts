/** Who may poll a queued request, on a separate store, without a server. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { holderOf, isOfHolder, isSameHolder } from '../../src/auth/certificate-holder.ts';
import type { Identity } from '../../src/auth/identity.ts';
import { mtlsIdentity } from '../../src/auth/mtls/mtls.ts';
import { Ca } from '../../src/ca/router.ts';
import type { EstEnrollment } from '../../src/enrollment/request.ts';
import { parseCertificate } from '../../src/pki/x509/certificate.ts';
import type { Store } from '../../src/store/store.ts';
import { fileCa } from '../support/file-ca.ts';
import { otpRow, T0 } from '../store/rows.ts';
import { openedIn } from '../store/support.ts';
import { dns, makeCa, makeClient, subjectAltName, type Issuer } from '../support/certificates.ts';
import { makeKey, simpleCsr } from '../support/csr.ts';
import { temporaryFolder } from '../support/openssl.ts';
import { pipeline, otpIdentity, received } from './support.ts';

const folder = temporaryFolder();
let store: Store;
let manual: Ca;

beforeAll(async () => {
  store = await openedIn(folder);
  const { config, driver } = await fileCa(folder, 'devices', true);
  manual = new Ca({ ...config, approval: 'manual' }, driver);
});
afterAll(async () => {
  await store.close();
  folder.remove();
});

interface Client {
  readonly names?: readonly string[];
  readonly ca?: Issuer;
  readonly slot?: string;
  readonly subject?: string;
}

const plant = await makeCa('CN=Plant');
/** Another CA of the same name. */
const impostor = await makeCa('CN=Plant', { slot: 'another key' });
/** The same CA: its name and its key, another certificate. */
const renewedPlant = await makeCa('CN=Plant');

/** The identity of a certificate's holder, whose certificate this CA has issued. */
async function holder({ names = ['a.example'], ca = plant, slot = 'key', subject = 'CN=device-1' }: Client = {}) {
  const client = await makeClient(subject, ca, {
    slot,
    extensions: names.length === 0 ? [] : [subjectAltName(...names.map(dns))],
  });
  return mtlsIdentity(holderOf({ certificate: parsed(client), path: [parsed(client), parsed(ca)] }));
}

const parsed = ({ der }: Issuer) => parseCertificate(der);

function principal(name: string): Identity {
  return {
    method: 'gssapi',
    requester: `gssapi:${name}`,
    display: name,
    principal: name,
    subject: parsed(plant).subject,
    replyToken: undefined,
  };
}

describe('what one requester queued, no other gets', () => {
  const key = makeKey();

  /** The id of the request that this one is in the queue. */
  async function queued(identity: Identity, operation: EstEnrollment, cn: string): Promise<string> {
    const sent = received(manual, simpleCsr(key, cn), { requestId: randomUUID(), operation });
    const { outcome } = await pipeline({ store, identity }).enroll(sent);
    if (outcome.status !== 'pending') throw new Error(outcome.status);
    return outcome.requestId;
  }

  const token = async (): Promise<Identity> => {
    const row = otpRow({ max_uses: 2 });
    await store.insertOtp(row, []);
    return otpIdentity({ otp_id: row.id, requester: `otp:${row.id}` });
  };

  test.each<[string, () => Identity | Promise<Identity>, () => Identity | Promise<Identity>, 'the same' | 'another']>([
    ['a renewed certificate of the same names and issuer', holder, () => holder({ slot: 'next' }), 'the same'],
    [
      'the same issuer, by another certificate of its name and key',
      holder,
      () => holder({ ca: renewedPlant }),
      'the same',
    ],
    ['SANs in another case', holder, () => holder({ names: ['A.Example'] }), 'the same'],
    ['another issuer of the same name', holder, () => holder({ ca: impostor }), 'another'],
    ['a further SAN', holder, () => holder({ names: ['a.example', 'b.example'] }), 'another'],
    ['other SANs', holder, () => holder({ names: ['b.example'] }), 'another'],
    ['no SANs', holder, () => holder({ names: [] }), 'another'],
    ['another subject', holder, () => holder({ subject: 'CN=device-2' }), 'another'],
    ['another token of the same client', token, token, 'another'],
    ['another realm', () => principal('a@ONE'), () => principal('a@TWO'), 'another'],
    ['another method', holder, () => principal('device-1@ONE'), 'another'],
  ])('%s', async (_, first, second, expected) => {
    const [one, other] = [await first(), await second()];
    for (const operation of ['simpleenroll', 'serverkeygen'] as const) {
      const cn = randomUUID();
      const id = await queued(one, operation, cn);
      expect(await queued(one, operation, cn)).toBe(id);
      expect((await queued(other, operation, cn)) === id ? 'the same' : 'another').toBe(expected);
    }
  });

  test('an approved serverkeygen is for its requester alone', async () => {
    const cn = randomUUID();
    const id = await queued(await holder(), 'serverkeygen', cn);
    await store.decideRequest({ id, status: 'approved', reason: null, decided_at: T0 + 1000 }, []);
    expect(await queued(await holder({ ca: impostor }), 'serverkeygen', cn)).not.toBe(id);
    expect(await queued(await holder({ names: ['b.example'] }), 'serverkeygen', cn)).not.toBe(id);
    expect((await store.getRequest(id))?.status).toBe('approved');
  });

  test('an approver sees the issuer and the SANs of the certificate', async () => {
    const id = await queued(await holder({ names: ['a.example', 'b.example'] }), 'simpleenroll', randomUUID());
    expect(await store.getRequest(id)).toMatchObject({
      requester: 'CN=device-1',
      requester_issuer: 'CN=Plant',
      requester_sans: ['DNS:a.example', 'DNS:b.example'],
    });
    const byToken = await queued(await token(), 'simpleenroll', randomUUID());
    expect(await store.getRequest(byToken)).toMatchObject({ requester_issuer: null, requester_sans: [] });
  });
});

describe('holders of certificates', () => {
  test('are told apart by issuer, by name and key', async () => {
    const [own, foreign] = [await holder(), await holder({ ca: impostor })];
    expect(isSameHolder(own, await holder({ ca: renewedPlant, slot: 'next' }))).toBe(true);
    expect(isSameHolder(own, foreign)).toBe(false);
  });

  test('a certificate without a validated path is of a holder only when the holder’s issuer signed it', async () => {
    const own = await holder();
    expect(await isOfHolder(own, (await holder({ slot: 'next' })).certificate)).toBe(true);
    expect(await isOfHolder(own, (await holder({ ca: impostor })).certificate)).toBe(false);
    expect(await isOfHolder(own, (await holder({ names: ['b.example'] })).certificate)).toBe(false);
  });
});
