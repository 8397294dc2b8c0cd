/** Keys of serverkeygen in the real key recovery authority, and out of it again with Dogtag's own tool. */
import { createPublicKey } from 'node:crypto';
import { mkdtempSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeKey, onTheWire, simpleCsr, type KeyKind } from '../support/csr.ts';
import { AUTO } from '../support/dogtag-profiles.ts';
import { Dogtag, OPEN_TIMEOUT } from '../support/dogtag.ts';
import { caSection, Estuary, itemsOf, section } from '../support/estuary.ts';
import type { Answer } from '../support/https.ts';
import { requires } from '../support/requires.ts';
import { expectMatch, readPkcs8, readServerKey } from '../support/server-key.ts';
import { TcpRelay } from '../support/tcp-relay.ts';
import { removeFolder } from '../support/folders.ts';

describe.skipIf(!requires('dogtag'))('keys that the server generates, with the real KRA', () => {
  let dogtag: Dogtag;
  let kra: TcpRelay;
  let estuary: Estuary;

  beforeAll(async () => {
    dogtag = await Dogtag.open();
    kra = await TcpRelay.start(dogtag.port);
    estuary = await Estuary.start({
      configure: (config, dir) => {
        dogtag.configure(config, dir, AUTO, { kra_urls: [kra.url], timeout: 25, check_interval: 1 });
        section(caSection(config), 'profile')['key_escrow'] = true;
      },
    });
  }, OPEN_TIMEOUT);
  afterAll(async () => {
    await estuary.stop();
    await kra.die();
    await dogtag.close();
  });

  async function generate(cn: string, kind: KeyKind): Promise<{ answer: Answer; otp: string; token: string }> {
    const otp = await estuary.otp({ client_id: cn });
    const csr = onTheWire(simpleCsr(makeKey(kind), cn, [`${cn}.example.com`]));
    const answer = await estuary.enroll(csr, { path: 'serverkeygen', password: otp.token });
    return { answer, otp: otp.id, token: otp.token };
  }

  /** docs/guides/dogtag.md, "Recovering a key": with a folder of the operator's own inside Dogtag's tree. */
  async function recover(keyId: string): Promise<Buffer> {
    const folder = mkdtempSync(join(dogtag.tree, 'root', 'recovery-'));
    try {
      const script = `
        cd "$0" && printf secret >password && mkdir db
        certutil -N -d db -f password
        openssl pkcs12 -export -in ../credentials/agent.pem -inkey ../credentials/agent.key -name agent -out agent.p12 -passout file:password
        pk12util -i agent.p12 -d db -k password -w password
        certutil -A -d db -n ca -t CT,C,C -a -i ../credentials/ca.pem -f password
        pki -U https://localhost:8443 -d db -C password -n agent kra-key-retrieve --keyID "$1" --output-data key.der`;
      await dogtag.exec('sh', '-euc', script, folder.slice(dogtag.tree.length), keyId);
      return readFileSync(join(folder, 'key.der'));
    } finally {
      removeFolder(folder);
    }
  }

  test.each(['P-256', 'rsa2048'] as const)(
    'RFC 7030 §4.4: a delivered key is archived, and what the KRA recovers equals it: %s',
    async (kind) => {
      const { answer, token } = await generate(`escrow-${kind.toLowerCase()}`, kind);
      const delivered = readServerKey(answer);
      const key = readPkcs8(delivered.key, token);
      expectMatch(delivered, key);
      const serial = delivered.certificate.serialNumber.toLowerCase();
      const { json } = await estuary.admin('GET', `/admin/certificates/${serial}`);
      const keyId = String(json['archived_key_id']);
      expect(keyId).toMatch(/^(0x)?[0-9a-f]+$/);
      expect(await recover(keyId)).toEqual(key.export({ format: 'der', type: 'pkcs8' }));

      const { json: audit } = await estuary.admin('GET', '/admin/audit?type=key.archived&limit=1000');
      expect(itemsOf(audit)).toContainEqual(
        expect.objectContaining({ outcome: 'success', detail: keyId, request_id: json['request_id'] }),
      );
    },
  );

  test('a certificate whose key the client made has no archived key', async () => {
    const { cert } = await estuary.enrolled(makeKey(), 'no-escrow', ['no-escrow.example.com']);
    const { json } = await estuary.admin('GET', '/admin/certificates?subject=no-escrow');
    const serial = String(itemsOf(json)[0]?.['serial']);
    expect((await estuary.admin('GET', `/admin/certificates/${serial}`)).json['archived_key_id']).toBeNull();
    expect(createPublicKey(cert).asymmetricKeyType).toBe('ec');
  });

  test.each(['dead', 'silent'])(
    'the KRA is %s: 503, no key and no certificate reach the client, nothing is issued, the use goes back',
    async (fault) => {
      // Dogtag still has the certificates of earlier runs.
      const cn = `escrow-${fault}-${Date.now().toString(36)}`;
      if (fault === 'dead') await kra.die();
      else kra.silence(true);
      try {
        const { answer, otp } = await generate(cn, 'P-256');
        expect(answer.status).toBe(503);
        expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
        expect(answer.text).toBe('The key archive is unavailable.');
        expect(await dogtag.certificatesOf(cn)).toEqual([]);
        expect((await estuary.admin('GET', `/admin/certificates?subject=${cn}`)).json['items']).toEqual([]);
        expect((await estuary.admin('GET', `/admin/otp/${otp}`)).json['uses']).toBe(0);
      } finally {
        if (fault === 'dead') await kra.revive();
        else kra.silence(false);
      }
      // It recovers automatically.
      await expect.poll(async () => (await generate(cn, 'P-256')).answer.status, { interval: 1000 }).toBe(200);
    },
  );

  test('the health of the CA says that the key archive is away', async () => {
    await kra.die();
    const state = async () => (await estuary.admin('GET', '/admin/cas/devices')).json['health'];
    await expect.poll(state, { interval: 500 }).toBe('degraded');
    await kra.revive();
    await expect.poll(state, { interval: 500 }).toBe('ok');
  });
});
