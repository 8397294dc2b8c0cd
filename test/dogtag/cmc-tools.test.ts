/** Full CMC round trips with Dogtag's own clients: requests of CMCRequest, answers read by CMCResponse. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildControl, controlsNamed, parseControl } from '../../src/pki/cmc/controls.ts';
import { buildPkiData, parsePkiResponse } from '../../src/pki/cmc/pki-data.ts';
import { parseCertificate, parsePemCertificates, type Certificate } from '../../src/pki/x509/certificate.ts';
import { parseSignedData, parseCertsOnly } from '../../src/pki/cms/cms.ts';
import { formatName } from '../../src/pki/x509/name.ts';
import { OID } from '../../src/pki/der/oids.ts';
import { issuedOutside, postCmc, RA_EXTENSIONS } from '../support/cmc.ts';
import { makeKey } from '../support/csr.ts';
import { DogtagTools, type ToolResponse } from '../support/dogtag-tools.ts';
import { caSection, Estuary, itemsOf, section, type ClientIdentity } from '../support/estuary.ts';
import { openssl } from '../support/openssl.ts';
import { requires } from '../support/requires.ts';
import { buildAuthenticatedData } from '../support/cmc-secrets.ts';

const SECRET = 'a-shared-secret-of-25-cha';
const IDENTIFICATION = 'device7';
/** A first enrollment: signed with the requested key, identified by the shared secret. */
const BY_SECRET = {
  'request.useSharedSecret': 'true',
  'identification.enable': 'true',
  identification: IDENTIFICATION,
  'witness.sharedSecret': SECRET,
  'identityProofV2.enable': 'true',
  'identityProofV2.hashAlg': 'SHA-256',
  'identityProofV2.macAlg': 'SHA-256-HMAC',
};

describe.skipIf(!requires('dogtag', 'openssl'))("RFC 5272: full CMC with Dogtag's CMCRequest and CMCResponse", () => {
  let server: Estuary;
  let tools: DogtagTools;
  let issuer: Certificate;

  beforeAll(async () => {
    tools = await DogtagTools.open();
    server = await Estuary.start({
      configure: (config, dir) => {
        writeFileSync(join(dir, 'cmc.secret'), SECRET, { mode: 0o600 });
        section(config, 'est')['fullcmc_require_mtls'] = false;
        section(config, 'cmc')['shared_secrets'] = [{ identification: IDENTIFICATION, secret_file: 'cmc.secret' }];
        caSection(config, 1)['approval'] = 'manual';
      },
    });
    const chain = parseCertsOnly(Buffer.from((await server.est('cacerts')).text, 'base64')).map(parseCertificate);
    const [first, ...above] = chain;
    if (first === undefined) throw new Error('no CA');
    issuer = first;
    for (const certificate of chain)
      await tools.addCertificate(formatName(certificate.subject), certificate.der, 'CT,C,C');
    expect(above.length).toBeGreaterThan(0);
    const ra = issuedOutside(server, 'issuing', makeKey(), '/CN=registration authority', RA_EXTENSIONS);
    await tools.addIdentity('ra', ra);
  });
  afterAll(async () => {
    await server.stop();
    tools.close();
  });

  interface RoundTrip extends ToolResponse {
    readonly http: number;
    /** DER ContentInfo. */
    readonly answer: Buffer;
    /** End entities' certificates that OpenSSL finds in the answer. */
    readonly issued: readonly Certificate[];
  }

  async function roundTrip(message: Buffer, tls?: ClientIdentity, path?: string): Promise<RoundTrip> {
    const { status: http, text } = await postCmc(server, message, tls, path);
    const answer = Buffer.from(text, 'base64');
    const root = join(server.dir, 'ca/root.pem');
    openssl(['cms', '-verify', '-binary', '-inform', 'DER', '-CAfile', root, '-purpose', 'any'], answer);
    const pem = openssl(['pkcs7', '-inform', 'DER', '-print_certs'], answer).toString('latin1');
    const issued = parsePemCertificates(pem).filter(({ isCa }) => !isCa);
    return { http, answer, issued, ...(await tools.cmcResponse(answer)) };
  }

  const pendTokenOf = (answer: Buffer): Buffer => {
    const { content } = parseSignedData(answer);
    const { controlSequence } = parsePkiResponse(content ?? Buffer.alloc(0));
    for (const { value } of controlsNamed(controlSequence.map(parseControl), 'statusInfoV2'))
      if (value.otherInfo !== undefined && 'pendInfo' in value.otherInfo) return value.otherInfo.pendInfo.pendToken;
    throw new Error('no pendInfo');
  };
  const only = ({ issued }: RoundTrip): Certificate => {
    const [certificate, ...more] = issued;
    if (certificate === undefined || more.length > 0) throw new Error(`${issued.length} certificates`);
    return certificate;
  };
  /** Revocation as the tool has it: the serial number in decimal. */
  const revocation = ({ serialNumber }: Certificate, reason: string): Record<string, string> => ({
    'revRequest.enable': 'true',
    'revRequest.serial': BigInt(`0x${serialNumber}`).toString(),
    'revRequest.reason': reason,
  });
  const statusOf = async ({ serialNumber }: Certificate): Promise<unknown> => {
    const { json } = await server.admin('GET', `/admin/certificates/${serialNumber}`);
    return json['status'] === 'revoked' ? json['reason'] : json['status'];
  };

  /** Enrolls by the shared secret, and keeps the certificate under a nickname. */
  async function enrolled(name: string): Promise<{ certificate: Certificate; answer: RoundTrip }> {
    await tools.newRequest(name, `CN=${name}`);
    const answer = await roundTrip(await tools.cmcRequest([name], BY_SECRET));
    const certificate = only(answer);
    await tools.addCertificate(name, certificate.der);
    return { certificate, answer };
  }

  test('a first enrollment by shared secret, and a key update signed with its certificate', async () => {
    const { certificate, answer } = await enrolled('device');
    expect(answer.http).toBe(200);
    expect(answer.output).toContain('Status: SUCCESS');
    expect(answer.code).toBe(0);
    expect(answer.certificates.map(({ serialNumber }) => serialNumber)).toContain(certificate.serialNumber);
    expect(formatName(certificate.subject)).toBe('CN=device');

    for (const format of ['pkcs10', 'crmf'] as const) {
      await tools.newRequest(`update-${format}`, 'CN=device', { format });
      const controls = format === 'crmf' ? { 'transactionMgt.enable': 'false', 'senderNonce.enable': 'false' } : {};
      const message = await tools.cmcRequest([`update-${format}`], { format, nickname: 'device', ...controls });
      const update = await roundTrip(message);
      expect(update).toMatchObject({ http: 200, code: 0 });
      expect(only(update).publicKey.spki.equals(certificate.publicKey.spki)).toBe(false);
      expect(formatName(only(update).subject)).toBe('CN=device');
    }
  });

  test('a wrong shared secret is badIdentity', async () => {
    await tools.newRequest('stranger', 'CN=stranger');
    const wrong = { ...BY_SECRET, 'witness.sharedSecret': 'another' };
    const { http, code, output, issued } = await roundTrip(await tools.cmcRequest(['stranger'], wrong));
    expect(http).toBe(401);
    expect(code).not.toBe(0);
    expect(output).toContain('failInfo=bad identity');
    expect(issued).toEqual([]);
  });

  test('three requests of which the second has a weak key: the others are issued', async () => {
    for (const name of ['a', 'b', 'c'])
      await tools.newRequest(name, `CN=${name}`, { key: name === 'b' ? 'RSA 1024' : 'P-256' });
    const { http, code, output, issued } = await roundTrip(await tools.cmcRequest(['a', 'b', 'c'], { nickname: 'ra' }));
    expect(http).toBe(200);
    expect(code).not.toBe(0);
    expect(output).toContain('failInfo=bad algorithm');
    expect(issued.map(({ subject }) => formatName(subject)).sort()).toEqual(['CN=a', 'CN=c']);
  });

  test('revocation by the owner, by an RA and by the shared secret, but not by another', async () => {
    const [own, foreign] = [await enrolled('owner'), await enrolled('other')];
    const refused = await roundTrip(
      await tools.cmcRequest([], { nickname: 'owner', ...revocation(foreign.certificate, 'superseded') }),
    );
    expect(refused.http).toBe(403);
    expect(refused.output).toContain('failInfo=bad identity');
    expect(await statusOf(foreign.certificate)).toBe('valid');

    const byOwner = await roundTrip(
      await tools.cmcRequest([], { nickname: 'owner', ...revocation(own.certificate, 'superseded') }),
    );
    expect(byOwner).toMatchObject({ http: 200, code: 0 });
    expect(await statusOf(own.certificate)).toBe('superseded');

    const byRa = await roundTrip(
      await tools.cmcRequest([], { nickname: 'ra', ...revocation(foreign.certificate, 'cessationOfOperation') }),
    );
    expect(byRa).toMatchObject({ http: 200, code: 0 });
    expect(await statusOf(foreign.certificate)).toBe('cessationOfOperation');

    const third = await enrolled('third');
    const secret = { 'revRequest.sharedSecret': SECRET, 'revRequest.issuer': formatName(issuer.subject) };
    const bySecret = await roundTrip(
      await tools.cmcRequest([], { ...revocation(third.certificate, 'keyCompromise'), ...secret }),
    );
    expect(bySecret).toMatchObject({ http: 200, code: 0 });
    expect(await statusOf(third.certificate)).toBe('keyCompromise');
  });

  test('confirmCertAcceptance', async () => {
    const { certificate } = await enrolled('confirming');
    const confirmed = await roundTrip(
      await tools.cmcRequest([], {
        nickname: 'confirming',
        'confirmCertAcceptance.enable': 'true',
        'confirmCertAcceptance.serial': BigInt(`0x${certificate.serialNumber}`).toString(),
        'confirmCertAcceptance.issuer': formatName(issuer.subject),
      }),
    );
    expect(confirmed).toMatchObject({ http: 200, code: 0 });
  });

  test('pending, and the certificate once it is approved', async () => {
    await tools.newRequest('queued', 'CN=queued');
    const queued = await roundTrip(await tools.cmcRequest(['queued'], BY_SECRET), undefined, 'lab/fullcmc');
    expect(queued.http).toBe(200);
    expect(queued.output).toContain('OtherInfo type: PEND');
    expect(queued.issued).toEqual([]);
    const [request] = itemsOf((await server.admin('GET', '/admin/requests?status=pending')).json);
    expect(request?.['subject']).toBe('CN=queued');
    const approved = await server.admin('POST', `/admin/requests/${String(request?.['id'])}/approve`);
    expect(approved.status).toBe(200);

    // CMCRequest has no queryPending: this one is ours, CMCResponse reads its answer.
    const query = buildPkiData({
      controlSequence: [
        buildControl(1, 'queryPending', pendTokenOf(queued.answer)),
        buildControl(2, 'identification', IDENTIFICATION),
      ],
    });
    const message = await buildAuthenticatedData(OID.pkiData, query, Buffer.from(IDENTIFICATION + SECRET, 'utf8'));
    const done = await roundTrip(message, undefined, 'lab/fullcmc');
    expect(done).toMatchObject({ http: 200, code: 0 });
    expect(formatName(only(done).subject)).toBe('CN=queued');
    await tools.addCertificate('queued', only(done).der);
  });

  test('RFC 5272 §3.2.2: its popLinkWitnessV2 gives two parts one bodyPartID, which is refused', async () => {
    await tools.newRequest('linked', 'CN=linked');
    const linked = {
      ...BY_SECRET,
      'popLinkWitnessV2.enable': 'true',
      'popLinkWitnessV2.keyGenAlg': 'SHA-256',
      'popLinkWitnessV2.macAlg': 'SHA-256-HMAC',
    };
    const { http, output, issued } = await roundTrip(await tools.cmcRequest(['linked'], linked));
    expect(http).toBe(400);
    expect(output).toContain('failInfo=bad request');
    expect(issued).toEqual([]);
  });
});
