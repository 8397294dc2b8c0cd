/** Full CMC with Estuary in front of Dogtag, from a client's side: the agent signs the responses. */
import { controlsNamed, parseControl, type CmcControl } from '../../../src/pki/cmc/controls.ts';
import { type TaggedAttribute, parsePkiResponse } from '../../../src/pki/cmc/pki-data.ts';
import type { CmcStatusInfo } from '../../../src/pki/cmc/status-info.ts';
import { parseCertificate, type Certificate } from '../../../src/pki/x509/certificate.ts';
import { parseSignedData, verifySignerInfo } from '../../../src/pki/cms/cms.ts';
import { postCmc, requestBy, tcr } from '../../support/cmc.ts';
import { simpleCsr, type TestKey } from '../../support/csr.ts';
import type { ClientIdentity, Estuary } from '../../support/estuary.ts';
import { pause } from '../../support/until.ts';

export interface Reply {
  readonly http: number;
  readonly status: CmcStatusInfo | undefined;
  readonly controls: readonly CmcControl[];
  /** Those of end entities, the signer's left out. */
  readonly certificates: readonly Certificate[];
}

/** Sends a message and reads the answer, which a certificate in it must verify. */
export async function exchange(estuary: Estuary, client: ClientIdentity, message: Buffer): Promise<Reply> {
  const answer = await postCmc(estuary, message, client);
  const signedData = parseSignedData(Buffer.from(answer.text, 'base64'));
  const [signer] = signedData.signerInfos;
  const others: Certificate[] = [];
  let verified = false;
  for (const certificate of signedData.certificates.map(parseCertificate)) {
    const signs = signer !== undefined && (await verifySignerInfo(signedData, signer, certificate.publicKey));
    verified ||= signs;
    if (!signs && !certificate.isCa) others.push(certificate);
  }
  if (!verified) throw new Error('none of its certificates verifies the response');
  const controls = parsePkiResponse(signedData.content ?? Buffer.alloc(0)).controlSequence.map(parseControl);
  const status = controlsNamed(controls, 'statusInfoV2')[0]?.value;
  return { http: answer.status, status, controls, certificates: others };
}

/** A message that requests a certificate with the client's name and another key. */
export function asks(
  client: ClientIdentity,
  cn: string,
  key: TestKey,
  id = 77,
  controlSequence: readonly TaggedAttribute[] = [],
): Promise<Buffer> {
  return requestBy(client, { controlSequence, reqSequence: [tcr(id, simpleCsr(key, cn))] });
}

/**
 * Concurrent requests of many clients: whether each gets exactly the certificate for its key. A client that waited in
 * vain retries, as Retry-After says.
 */
export async function atOnce(
  estuary: Estuary,
  clients: readonly { readonly cn: string; readonly client: ClientIdentity; readonly key: TestKey }[],
): Promise<string[]> {
  return Promise.all(
    clients.map(async ({ cn, client, key }) => {
      let reply = await exchange(estuary, client, await asks(client, cn, key));
      for (let again = 0; again < 20 && reply.http === 503; again++) {
        await pause(1000);
        reply = await exchange(estuary, client, await asks(client, cn, key));
      }
      const { status, certificates } = reply;
      const own = certificates.length === 1 && certificates[0]?.spki.equals(key.spki) === true;
      return `${status?.status ?? 'no status'}${status?.statusString ?? ''}, ${own ? 'its own' : 'not its own'}`;
    }),
  );
}
