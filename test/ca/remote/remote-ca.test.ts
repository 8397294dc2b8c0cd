/** A remote CA: the issued certificate is compared with the request, and a failing upstream is taken out of use. */
import { parseRetryAfter } from '../../../src/retry-after.ts';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import type { IssuedProfile } from '../../../src/ca/remote/issued.ts';
import { RemoteCa } from '../../../src/ca/remote/remote-ca.ts';
import { refusalOf, Unanswered, type Upstream, type UpstreamAnswer } from '../../../src/ca/remote/upstream.ts';
import type { IssuanceRequest } from '../../../src/ca/driver.ts';
import { describe as describeError, EstuaryError, unavailable } from '../../../src/errors.ts';
import { parseCsr, verifyCsr } from '../../../src/pki/pkcs10/csr.ts';
import { bitString, oid, sequence } from '../../../src/pki/der/der.ts';
import { OID } from '../../../src/pki/der/oids.ts';
import { parseCertificate } from '../../../src/pki/x509/certificate.ts';
import type { Extension } from '../../../src/pki/x509/extensions.ts';
import type { PresentedIntermediate, PresentedPath } from '../../../src/store/intermediate-store.ts';
import {
  basicConstraints,
  dns,
  extension,
  extKeyUsage,
  keyUsage,
  makeCa,
  makeCertificate,
  makeClient,
  NOT_BEFORE,
  subjectAltName,
  uri,
  type CertificateSpec,
  type Issuer,
} from '../../support/certificates.ts';
import { dns as dnsName, extensionRequest, makeKey, san, buildCsr, commonName } from '../../support/csr.ts';

const NOW = NOT_BEFORE + 86_400_000;
const key = makeKey();
const keys = { publicKey: key.publicKey, privateKey: key.privateKey };
const root = await makeCa('CN=Upstream Root');
const issuing = await makeCa('CN=Upstream Issuing', { issuer: root });
const foreign = await makeCa('CN=Foreign Root');
const expired = await makeCa('CN=Expired Issuing', { issuer: root, notAfter: NOW - 1000 });

const certified = (spec: Partial<CertificateSpec> = {}): Promise<Issuer> =>
  makeClient('CN=device', issuing, {
    keys,
    extensions: [keyUsage('digitalSignature'), subjectAltName(dns('a.example'))],
    ...spec,
  });

const PROFILE: IssuedProfile = { key_usage: [], extended_key_usage: ['clientAuth'] };

interface Made {
  readonly ca: RemoteCa;
  readonly revoked: Buffer[];
  readonly issue: (change?: Partial<IssuanceRequest>) => Promise<unknown>;
}

/** A remote CA whose upstream answers so. */
async function remote(
  submit: () => Promise<UpstreamAnswer>,
  more: Partial<Upstream> = {},
  profile: Partial<IssuedProfile> = {},
  options: Partial<ConstructorParameters<typeof RemoteCa>[0]> = {},
): Promise<Made> {
  const revoked: Buffer[] = [];
  const upstream: Upstream = {
    name: 'est',
    canRecover: false,
    continuesAtOnce: false,
    submit,
    poll: submit,
    revoke: (certificate) => Promise.resolve(void revoked.push(certificate)),
    probe: () => Promise.reject(new Error('still down')),
    close: () => undefined,
    ...more,
  };
  const ca = new RemoteCa({
    label: 'edge',
    upstream,
    anchors: [parseCertificate(root.der)],
    chain: [],
    maxCalls: 2,
    timeout: 1000,
    retryAfter: 7,
    profile: { validity_days: 30, ...PROFILE, ...profile },
    log: { info: () => undefined, warn: () => undefined, error: () => undefined },
    store: { recallIntermediates: () => Promise.resolve([]), rememberIntermediates: () => Promise.resolve() },
    now: () => NOW,
    ...options,
  });
  const csr = await verifyCsr(
    parseCsr(
      buildCsr(key, { subject: commonName('device'), attributes: [extensionRequest(san(dnsName('a.example')))] }),
    ),
  );
  const request: IssuanceRequest = {
    request_id: 'r1',
    subject: csr.subject,
    subjectAltNames: csr.subjectAltNames,
    spki: csr.publicKey.spki,
    csr,
  };
  return { ca, revoked, issue: async (change) => (await ca.prepare({ ...request, ...change })).issue() };
}

const answering =
  (...certificates: readonly Issuer[]) =>
  (): Promise<UpstreamAnswer> =>
    Promise.resolve({ status: 'issued', certificates: certificates.map(({ der }) => der) });

async function refusal(work: Promise<unknown>): Promise<EstuaryError> {
  const error: unknown = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error instanceof EstuaryError) return error;
  throw new Error(`not an EstuaryError: ${describeError(error)}`);
}

test('the store keeps the last known chain, which counts until the upstream answers, if it leads to an anchor', async () => {
  const kept = new Map<string, readonly PresentedIntermediate[]>();
  const store = {
    recallIntermediates: (leaf: string) => Promise.resolve(kept.get(leaf) ?? []),
    rememberIntermediates: ({ leaf, intermediates }: PresentedPath) =>
      Promise.resolve(void kept.set(leaf, intermediates)),
  };
  const submit = answering(issuing);
  const chain = [issuing, root].map(({ der }) => parseCertificate(der));
  const { ca: first } = await remote(submit, { chain: () => Promise.resolve(chain) }, {}, { store });
  onTestFinished(() => first.close());
  await first.start();
  expect(first.unconfirmed()).toEqual([]);
  const down = { chain: () => Promise.reject(new Error('it is down')) };
  const { ca: second } = await remote(submit, down, {}, { store });
  onTestFinished(() => second.close());
  await second.start();
  expect(second.chain()).toEqual(first.chain());
  expect(second.unconfirmed().map(({ der }) => der)).toEqual([root.der]);
  expect(await second.health()).toMatchObject({ health: 'down' });
  const { ca: third } = await remote(submit, down, {}, { store, anchors: [parseCertificate(foreign.der)] });
  onTestFinished(() => third.close());
  await third.start();
  expect(third.chain()).toEqual([]);
});

test('a request in another format than PKCS #10 is 400, and nothing is sent', async () => {
  const submit = vi.fn(answering(issuing));
  const { issue } = await remote(submit);
  expect(await refusal(issue({ csr: undefined }))).toMatchObject({ status: 400, code: 'UPSTREAM_PKCS10_ONLY' });
  expect(submit).not.toHaveBeenCalled();
});

describe('what the upstream issues', () => {
  test('is delivered if it has the key, the names and a path, in any order', async () => {
    const leaf = await certified();
    const { issue, ca } = await remote(answering(issuing, leaf, root));
    expect(await issue()).toMatchObject({ status: 'issued', certificate: leaf.der });
    expect(ca.chain()).toEqual([issuing.der, root.der]);
  });

  test('may have fewer names than authorized, and a DNS name as common name', async () => {
    for (const subject of ['CN=a.example', '']) {
      const leaf = await makeCertificate({
        subject,
        issuer: issuing,
        keys,
        extensions: [subjectAltName(dns('a.example'))],
      });
      const { issue } = await remote(answering(leaf, issuing));
      expect(await issue()).toMatchObject({ status: 'issued' });
    }
  });

  const end = keyUsage('digitalSignature');
  const further = (type: string, value: Buffer) => extension(type, false, value);
  const sid = further(OID.microsoftSid, sequence());
  const policies = (...oids: readonly string[]) =>
    further(OID.microsoftApplicationPolicies, sequence(...oids.map((purpose) => sequence(oid(purpose)))));
  const netscape = (bits: number) => further(OID.netscapeCertType, bitString(Buffer.from([bits])));
  const withExtensions =
    (...extensions: readonly Extension[]) =>
    async () => [await certified({ extensions }), issuing];

  test.each<[string, Partial<IssuedProfile>, readonly Extension[]]>([
    ['no keyUsage and no extKeyUsage', { key_usage: ['digitalSignature'] }, []],
    ['every usage of an end entity', {}, [keyUsage('digitalSignature', 'keyEncipherment', 'dataEncipherment')]],
    ['fewer usages', { key_usage: ['digitalSignature', 'keyAgreement'] }, [end]],
    ['fewer purposes', { extended_key_usage: ['clientAuth', 'serverAuth'] }, [extKeyUsage(OID.clientAuth)]],
    ['purposes of the profile for Windows', {}, [extKeyUsage(OID.clientAuth), policies(OID.clientAuth)]],
    ['the certificate type of a TLS client', {}, [netscape(0x80)]],
    ['extensions that give no name, purpose or right', {}, [further('1.3.6.1.4.1.311.21.7', sequence())]],
    ['a SID that the operator lets through', { forward_extensions: [OID.microsoftSid] }, [sid]],
    ['cmcRA, which the profile names', { extended_key_usage: ['cmcRA'] }, [extKeyUsage(OID.cmcRA)]],
  ])('may have %s', async (_what, profile, extensions) => {
    const leaf = await certified({ extensions });
    const { issue } = await remote(answering(leaf, issuing), {}, profile);
    expect(await issue()).toMatchObject({ status: 'issued', certificate: leaf.der });
  });

  test.each<[string, () => Promise<readonly Issuer[]>, string, Partial<IssuedProfile>?]>([
    ['another key', async () => [await makeClient('CN=device', issuing), issuing], 'another public key'],
    [
      'another key after the chain',
      async () => [issuing, await makeClient('CN=device', issuing)],
      'another public key',
    ],
    [
      'a CA certificate for another key',
      async () => [await makeCa('CN=device', { issuer: root })],
      'another public key',
    ],
    ['another DNS name', withExtensions(end, subjectAltName(dns('a.example'), dns('b.example'))), 'DNS:b.example'],
    ['another kind of name', withExtensions(end, subjectAltName(uri('https://a.example'))), 'URI:'],
    [
      'another subject',
      async () => [await makeClient('CN=other', issuing, { keys }), issuing],
      'its subject is "CN=other"',
    ],
    [
      'a further RDN',
      async () => [await makeClient('CN=device,O=Other', issuing, { keys }), issuing],
      'its subject is',
    ],
    ['a CA certificate', withExtensions(basicConstraints(true)), 'it is a CA certificate'],
    ['a keyUsage of CAs', withExtensions(keyUsage('cRLSign')), 'cRLSign'],
    [
      'a usage outside the profile',
      withExtensions(keyUsage('keyAgreement')),
      'keyAgreement',
      { key_usage: ['digitalSignature'] },
    ],
    ['a purpose outside the profile', withExtensions(extKeyUsage(OID.clientAuth, OID.cmcRA)), 'cmcRA'],
    ['any purpose', withExtensions(extKeyUsage(OID.anyExtendedKeyUsage)), 'anyExtendedKeyUsage'],
    [
      'a purpose, where the profile has none',
      withExtensions(extKeyUsage(OID.clientAuth)),
      'clientAuth',
      { extended_key_usage: [] },
    ],
    ['a purpose that only Windows reads', withExtensions(policies(OID.codeSigning)), 'codeSigning'],
    [
      'application policies that cannot be read',
      withExtensions(further(OID.microsoftApplicationPolicies, oid('1.2'))),
      'cannot be read',
    ],
    ['the certificate type of a TLS server', withExtensions(netscape(0x40)), 'serverAuth'],
    ['the certificate type of a CA', withExtensions(netscape(0x04)), 'SSL CA'],
    ['the right to issue proxy certificates', withExtensions(further(OID.proxyCertInfo, sequence())), 'proxyCertInfo'],
    ['the SID of an account', withExtensions(sid), 'microsoftSid'],
    [
      'a foreign chain',
      async () => [await makeClient('CN=device', foreign, { keys }), foreign],
      'a certificate in upstream_trust_anchors',
    ],
    ['no chain', async () => [await certified()], 'a certificate in upstream_trust_anchors'],
    [
      'an expired chain',
      async () => [await makeClient('CN=device', expired, { keys }), expired],
      'a certificate in upstream_trust_anchors',
    ],
    ['an expired certificate', async () => [await certified({ notAfter: NOW - 1 }), issuing], 'already expired'],
  ])('%s is not delivered, and revoked upstream', async (_what, make, detail, profile) => {
    const issued = await make();
    const { issue, revoked, ca } = await remote(answering(...issued), {}, profile);
    const error = await refusal(issue());
    expect([error.status, error.code]).toEqual([500, 'CA_ISSUED_OTHER']);
    expect(error.detail).toContain(detail);
    expect(error.detail).toContain('revoked at the upstream CA');
    expect(revoked).toEqual([issued.find(({ der }) => der !== issuing.der)?.der]);
    expect(ca.chain()).toEqual([root.der]);
  });

  test('a chain without a certificate for the request revokes no CA', async () => {
    const { issue, revoked } = await remote(answering(issuing, root));
    expect(await refusal(issue())).toMatchObject({ code: 'CA_ISSUED_OTHER', detail: 'it issued no certificate' });
    expect(revoked).toEqual([]);
  });

  test('garbage and nothing are 500', async () => {
    for (const certificates of [[], [Buffer.from('garbage')]]) {
      const { issue, revoked } = await remote(() => Promise.resolve({ status: 'issued', certificates }));
      expect(await refusal(issue())).toMatchObject({ status: 500, code: 'CA_ISSUED_OTHER' });
      expect(revoked).toEqual(certificates);
    }
  });
});

describe('an upstream that fails', () => {
  test('is out of use after three failures: 503 at once, until a probe succeeds', async () => {
    vi.useFakeTimers();
    try {
      let isUp = false;
      const submit = vi.fn(() => Promise.reject(unavailable('CA_UNAVAILABLE', 'down', { retryAfter: 7 })));
      const { ca, issue } = await remote(submit, {
        probe: () => (isUp ? Promise.resolve() : Promise.reject(new Error('still down'))),
      });
      for (let attempt = 0; attempt < 3; attempt++) await refusal(issue());
      expect(await refusal(issue())).toMatchObject({ status: 503, retryAfter: 7 });
      expect(submit).toHaveBeenCalledTimes(3);
      expect(await ca.health()).toMatchObject({ health: 'down' });
      await vi.advanceTimersByTimeAsync(3000);
      expect(await ca.health()).toMatchObject({ health: 'down', detail: 'still down' });
      isUp = true;
      await vi.advanceTimersByTimeAsync(60_000);
      expect(await ca.health()).toEqual({ health: 'ok' });
      await ca.close();
    } finally {
      vi.useRealTimers();
    }
  });

  test('after a probe, one failure takes it out of use again, and for longer', async () => {
    vi.useFakeTimers();
    try {
      const submit = vi.fn(() => Promise.reject(unavailable('CA_UNAVAILABLE', 'down', { retryAfter: 7 })));
      const { ca, issue } = await remote(submit, { probe: () => Promise.resolve() });
      for (let attempt = 0; attempt < 3; attempt++) await refusal(issue());
      for (const wait of [2000, 4000, 8000]) {
        await vi.advanceTimersByTimeAsync(wait - 1);
        await refusal(issue());
        const calls = submit.mock.calls.length;
        await vi.advanceTimersByTimeAsync(1);
        for (let attempt = 0; attempt < 5; attempt++) await refusal(issue());
        expect(submit.mock.calls.length - calls).toBe(1);
      }
      await ca.close();
    } finally {
      vi.useRealTimers();
    }
  });

  test('refusals do not take it out of use', async () => {
    const { ca, issue } = await remote(() => Promise.reject(refusalOf({ status: 403, text: 'no' }, 7)));
    for (let attempt = 0; attempt < 5; attempt++)
      expect(await refusal(issue())).toMatchObject({ status: 403, message: 'no' });
    expect(await ca.health()).toEqual({ health: 'ok' });
  });

  test('a lost response that nothing can recover is 503 and possibly issued', async () => {
    const { issue } = await remote(() => Promise.reject(new Unanswered('connection reset')));
    const error = await refusal(issue());
    expect(error).toMatchObject({ status: 503, code: 'SUBMISSION_LOST', retryAfter: 7 });
    expect(error.detail).toBe('possibly issued: connection reset');
  });
});

describe('a rollover of the upstream', () => {
  test('a certificate of its new CA makes the chain be read again; links to new keys are published', async () => {
    const newRoot = await makeCa('CN=Upstream Root', { slot: 'new root' });
    const newWithOld = await makeCa('CN=Upstream Root', { slot: 'new root', issuer: root });
    const oldWithNew = await makeCa('CN=Upstream Root', { slot: 'CN=Upstream Root', issuer: newRoot });
    const newIssuing = await makeCa('CN=Upstream Issuing 2', { issuer: newRoot });
    const stranger = await makeCa('CN=Stranger Root');
    let published = [issuing, root];
    const leaf = await makeClient('CN=device', newIssuing, { keys });
    vi.useFakeTimers({ now: NOW, toFake: ['Date'] });
    try {
      const { ca, issue } = await remote(answering(leaf), {
        chain: () => Promise.resolve(published.map(({ der }) => parseCertificate(der))),
      });
      await ca.start();
      expect(ca.chain()).toEqual([issuing.der, root.der]);
      expect(await refusal(issue())).toMatchObject({ code: 'CA_ISSUED_OTHER' });
      published = [newIssuing, newRoot, newWithOld, oldWithNew, root, stranger];
      vi.setSystemTime(NOW + 20_000);
      expect(await issue()).toMatchObject({ status: 'issued', certificate: leaf.der });
      const inOrder = new Set(ca.chain().map((der) => der.toString('hex')));
      expect(inOrder).toEqual(
        new Set([newIssuing, newRoot, newWithOld, root, oldWithNew].map(({ der }) => der.toString('hex'))),
      );
      expect(ca.chain()[0]).toEqual(newIssuing.der);
      await ca.close();
    } finally {
      vi.useRealTimers();
    }
  });
});

describe('the answers of an upstream', () => {
  test.each([
    [400, 'bad CSR', 400, 'bad CSR'],
    [403, 'not\u0007 you\r\n', 403, 'not you'],
    [401, 'who are you', 500, 'The upstream CA could not process the request.'],
    [404, 'what', 500, 'The upstream CA could not process the request.'],
    [429, 'slow down', 503, 'The CA is unavailable.'],
    [503, '', 503, 'The CA is unavailable.'],
    [500, 'oops', 500, 'The upstream CA could not process the request.'],
    [302, '', 500, 'The upstream CA could not process the request.'],
  ])('%i %j is %i', (status, text, expected, message) => {
    const error = refusalOf({ status, text, retryAfter: undefined }, 9);
    expect([error.status, error.message]).toEqual([expected, message]);
    expect(error.retryAfter).toBe(expected === 503 ? 9 : undefined);
  });

  test('texts are shortened, and their Retry-After is kept', () => {
    expect(refusalOf({ status: 403, text: 'x'.repeat(5000) }, 9).message).toHaveLength(200);
    expect(refusalOf({ status: 429, text: '', retryAfter: 120 }, 9).retryAfter).toBe(120);
    expect(parseRetryAfter('Wed, 21 Oct 2026 07:28:00 GMT', Date.UTC(2026, 9, 21, 7, 27))).toBe(60);
    expect(parseRetryAfter('soon', 0)).toBeUndefined();
  });
});
