/** What the driver relies on, as cases that hold with the stand-in and with the real Dogtag. */
import { expect } from 'vitest';
import type { DogtagCa } from '../../../src/ca/dogtag/dogtag-ca.ts';
import { parseCertificate } from '../../../src/pki/x509/certificate.ts';
import { formatGeneralName } from '../../../src/pki/x509/general-name.ts';
import { formatName } from '../../../src/pki/x509/name.ts';
import { EstuaryError } from '../../../src/errors.ts';
import { attribute, buildCsr, makeKey, name, simpleCsr, type KeyKind } from '../../support/csr.ts';
import { utf8String } from '../../../src/pki/der/der.ts';
import type { DogtagSettings } from '../../support/dogtag-stand-in/index.ts';
import type { Answer } from '../../support/https.ts';
import { issue, issued, newRequest, openDriver, queued, requestFor } from './support.ts';

/** A Dogtag, real or not, with an auto-approving and a queuing profile that keep any key and the names. */
export interface ContractTarget {
  settings(profile: 'auto' | 'queue' | 'caServerCert' | 'nosuch'): DogtagSettings;
  /** The name of a profile. */
  profileId(profile: 'auto' | 'queue'): string;
  decide(decision: 'approve' | 'reject' | 'cancel', requestId: string): Promise<void>;
  /** `VALID`, `REVOKED` … by the serial number in hex. */
  certificateStatus(serial: string): Promise<string>;
  /** A request of the agent's, without a session. */
  request(method: string, path: string, body?: string): Promise<Answer>;
}

export interface ContractCase {
  readonly name: string;
  readonly run: (target: ContractTarget) => Promise<void>;
}

async function withDriver(
  target: ContractTarget,
  profile: Parameters<ContractTarget['settings']>[0],
  work: (ca: DogtagCa) => Promise<void>,
): Promise<void> {
  const ca = await openDriver(target.settings(profile));
  try {
    await work(ca);
  } finally {
    await ca.close();
  }
}

/** Submits raw JSON, as no driver would. */
function submitText(target: ContractTarget, profile: string, certRequest: string): Promise<Answer> {
  const attributes = { cert_request_type: 'pkcs10', cert_request: certRequest };
  const Attribute = Object.entries(attributes).map(([key, Value]) => ({ name: key, Value }));
  const body = { ProfileID: profile, Renewal: false, Input: [{ ClassID: 'certReqInputImpl', Attribute }] };
  return target.request('POST', '/ca/rest/certrequests', JSON.stringify(body));
}

const keeps = (kind: KeyKind): ContractCase => ({
  name: `an auto-approving profile issues at once, with the names of the request (${kind})`,
  run: (target) =>
    withDriver(target, 'auto', async (ca) => {
      const key = makeKey(kind);
      const certificate = parseCertificate(
        await issued(ca, await newRequest('contract-1', ['a.example', 'b.example'], key)),
      );
      expect(formatName(certificate.subject)).toBe('CN=contract-1');
      expect(certificate.subjectAltNames.map(formatGeneralName).sort()).toEqual(['DNS:a.example', 'DNS:b.example']);
      expect(certificate.spki.equals(key.spki)).toBe(true);
    }),
});

export const CONTRACT_CASES: readonly ContractCase[] = [
  {
    name: 'the CA tells its certificate and the way to the root',
    run: (target) =>
      withDriver(target, 'auto', async (ca) => {
        const [own, ...above] = ca.chain().map(parseCertificate);
        const root = above.at(-1) ?? own;
        expect(own?.isCa).toBe(true);
        expect(root?.subject.der.equals(root.issuer.der)).toBe(true);
        await expect(ca.health()).resolves.toEqual({ health: 'ok' });
      }),
  },
  keeps('P-256'),
  keeps('rsa2048'),
  {
    name: 'a request that breaks a constraint is answered 200 and is a rejection with the reason',
    run: (target) =>
      withDriver(target, 'auto', async (ca) => {
        const key = makeKey();
        const csr = buildCsr(key, { subject: name(attribute('2.5.4.10', utf8String('NoCN'))), attributes: [] });
        const result = await issue(ca, await requestFor(csr));
        expect(result).toMatchObject({ status: 'rejected' });
        expect(result.status === 'rejected' && result.reason).toMatch(/Subject Name Not Matched/);
      }),
  },
  {
    name: 'a CSR that cannot be read is answered 500, which says nothing of the server',
    run: async (target) => {
      const answer = await submitText(target, target.profileId('auto'), 'AAAA');
      expect(answer.status).toBe(500);
      expect(answer.headers['content-type']).toMatch(/^application\/json/);
      expect(answer.text).toContain('Unable to create enrollment request: Invalid Request');
    },
  },
  {
    name: 'an unknown profile is answered 400',
    run: async (target) => {
      const answer = await submitText(target, 'nosuch', simpleCsr(makeKey('rsa2048'), 'x').toString('base64'));
      expect([answer.status, answer.text.includes('Profile nosuch Not Found')]).toEqual([400, true]);
    },
  },
  {
    name: 'a queuing profile leaves the request pending; approved, it is issued',
    run: (target) =>
      withDriver(target, 'queue', async (ca) => {
        const request = await newRequest('contract-queue', ['q.example']);
        const reference = await queued(ca, request);
        await expect(ca.remoteQueue.poll(reference, request)).resolves.toEqual({ status: 'pending', reference });
        await target.decide('approve', reference);
        const result = await ca.remoteQueue.poll(reference, request);
        if (result.status !== 'issued') throw new Error(result.status);
        expect(parseCertificate(result.certificate).spki.equals(request.spki)).toBe(true);
      }),
  },
  {
    name: 'a profile tells whether it issues at once',
    run: async (target) => {
      await withDriver(target, 'auto', (ca) => expect(ca.remoteQueue.issuesAtOnce()).resolves.toBe(true));
      for (const queuing of ['queue', 'caServerCert'] as const)
        await withDriver(target, queuing, (ca) => expect(ca.remoteQueue.issuesAtOnce()).resolves.toBe(false));
      await withDriver(target, 'nosuch', (ca) =>
        expect(ca.remoteQueue.issuesAtOnce()).rejects.toMatchObject({ status: 500, code: 'CA_PROFILE_UNREADABLE' }),
      );
    },
  },
  {
    name: 'a profile is shown to who has logged in, and to nobody else',
    run: async (target) => {
      const { status, text } = await target.request('GET', `/ca/rest/profiles/${target.profileId('auto')}`);
      expect([status, text.includes('No user principal provided')]).toEqual([403, true]);
    },
  },
  {
    name: 'what is issued beyond what was asked for is refused, and revoked',
    run: async (target) => {
      const ca = await openDriver(target.settings('auto'), { profile: { extended_key_usage: ['clientAuth'] } });
      try {
        const refused = await issue(ca, await newRequest('contract-purposes')).catch((error: unknown) => error);
        expect(refused).toMatchObject({ status: 500, code: 'CA_ISSUED_OTHER' });
        const detail = refused instanceof EstuaryError ? (refused.detail ?? '') : '';
        const serial = /^certificate ([0-9a-f]+): its purposes include serverAuth.* revoked at the CA$/.exec(
          detail,
        )?.[1];
        expect(serial, detail).toBeDefined();
        expect(await target.certificateStatus(serial ?? '')).toBe('REVOKED');
      } finally {
        await ca.close();
      }
    },
  },
  {
    name: 'a request that an agent rejects is rejected, one that it cancels is canceled',
    run: (target) =>
      withDriver(target, 'queue', async (ca) => {
        const [one, other] = [await newRequest('contract-reject'), await newRequest('contract-cancel')];
        const [rejected, canceled] = [await queued(ca, one), await queued(ca, other)];
        await target.decide('reject', rejected);
        await target.decide('cancel', canceled);
        await expect(ca.remoteQueue.poll(rejected, one)).resolves.toMatchObject({ status: 'rejected' });
        await expect(ca.remoteQueue.poll(canceled, other)).resolves.toEqual({ status: 'canceled' });
      }),
  },
  {
    name: 'a request that the CA does not know is unknown',
    run: (target) =>
      withDriver(target, 'queue', async (ca) => {
        await expect(ca.remoteQueue.poll('999999', await newRequest('contract-unknown'))).resolves.toEqual({
          status: 'unknown',
        });
      }),
  },
  {
    name: 'a certificate is revoked, for every reason, and revoking it again changes nothing',
    run: (target) =>
      withDriver(target, 'auto', async (ca) => {
        for (const reason of ['keyCompromise', 'unspecified', 'superseded', 'aACompromise']) {
          const { serialNumber: serial } = parseCertificate(await issued(ca, await newRequest(`contract-${reason}`)));
          await ca.revoke({ serial, reason });
          await ca.revoke({ serial, reason: 'superseded' });
          expect(await target.certificateStatus(serial)).toBe('REVOKED');
        }
      }),
  },
  {
    name: 'a certificate that the CA does not know cannot be revoked',
    run: (target) =>
      withDriver(target, 'auto', (ca) =>
        expect(ca.revoke({ serial: '00deadbeef', reason: 'keyCompromise' })).rejects.toMatchObject({ status: 404 }),
      ),
  },
  {
    name: 'a nonce is bound to the session of its review',
    run: async (target) => {
      let serial = '';
      await withDriver(target, 'auto', async (ca) => {
        serial = parseCertificate(await issued(ca, await newRequest('contract-nonce'))).serialNumber;
      });
      const review = await target.request('GET', `/ca/rest/agent/certs/0x${serial}`);
      const nonce = /"Nonce":(-?\d+)/.exec(review.text)?.[1];
      const order = await target.request(
        'POST',
        `/ca/rest/agent/certs/0x${serial}/revoke`,
        `{"Reason":"Superseded","Nonce":"${String(nonce)}"}`,
      );
      expect([order.status, order.text.includes('does not exist')]).toEqual([400, true]);
    },
  },
  {
    name: 'a submission whose answer was lost is found again: among those that wait',
    run: (target) =>
      withDriver(target, 'queue', async (ca) => {
        const request = await newRequest('contract-find-waiting');
        const from = Date.now();
        const reference = await queued(ca, request);
        await queued(ca, await newRequest('contract-find-other'));
        const sought = { ...request, from, until: Date.now() };
        await expect(ca.remoteQueue.find(sought)).resolves.toEqual([{ reference }]);
      }),
  },
  {
    name: 'a submission whose answer was lost is found again: among what was issued',
    run: (target) =>
      withDriver(target, 'auto', async (ca) => {
        const request = await newRequest('contract-find-issued');
        const from = Date.now();
        const certificate = await issued(ca, request);
        await issued(ca, await newRequest('contract-find-another'));
        const sought = { ...request, from, until: Date.now() };
        await expect(ca.remoteQueue.find(sought)).resolves.toEqual([{ certificate }]);
        const stranger = await newRequest('contract-find-none');
        await expect(ca.remoteQueue.find({ ...sought, ...stranger })).resolves.toEqual([]);
      }),
  },
  {
    name: 'the same request again is another request: duplicates are not detected',
    run: (target) =>
      withDriver(target, 'auto', async (ca) => {
        const request = await newRequest('contract-twice');
        const serials = [await issued(ca, request), await issued(ca, request)].map(
          (der) => parseCertificate(der).serialNumber,
        );
        expect(new Set(serials).size).toBe(2);
      }),
  },
];
