import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';

import { afterAll, describe, expect, test } from 'vitest';

import { ClientTrust } from '../../../src/auth/mtls/client-trust.ts';
import { validateClientCertificate } from '../../../src/auth/mtls/mtls.ts';
import { EstuaryError } from '../../../src/errors.ts';
import { allowsPurpose } from '../../../src/auth/mtls/path-validation.ts';
import { OID } from '../../../src/pki/der/oids.ts';
import { encodePem } from '../../../src/pki/der/pem.ts';
import { parseCertificate } from '../../../src/pki/x509/certificate.ts';
import { extKeyUsage, makeCa, makeClient, type Issuer } from '../../support/certificates.ts';
import { temporaryFolder } from '../../support/openssl.ts';
import { NOW, type Chain } from '../chain.ts';
import { makeChains } from './path-chains.ts';
import { clientTrust } from '../../support/client-trust.ts';

const folder = temporaryFolder();
afterAll(folder.remove);

const pem = (certificates: readonly Issuer[]): string =>
  certificates.map(({ der }) => encodePem('CERTIFICATE', der)).join('');

/** What OpenSSL says, or undefined when it accepts. */
function opensslRefusal({ anchors, intermediates, leaf }: Chain): string | undefined {
  writeFileSync(folder.file('anchors.pem'), pem(anchors));
  writeFileSync(folder.file('untrusted.pem'), pem(intermediates));
  writeFileSync(folder.file('leaf.pem'), pem([leaf]));
  const untrusted = intermediates.length === 0 ? [] : ['-untrusted', folder.file('untrusted.pem')];
  const options = ['-partial_chain', '-purpose', 'sslclient', '-auth_level', '2', '-attime', String(NOW / 1000)];
  try {
    execFileSync(
      'openssl',
      ['verify', ...options, '-trusted', folder.file('anchors.pem'), ...untrusted, folder.file('leaf.pem')],
      { stdio: 'pipe', timeout: 60_000 },
    );
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : 'refused';
  }
}

async function ourRefusal(
  trust: ClientTrust,
  { leaf }: Chain,
  presented: readonly Issuer[],
): Promise<string | undefined> {
  try {
    const { path } = await validateClientCertificate(
      trust,
      leaf.der,
      presented.map(({ der }) => der),
      NOW,
    );
    expect(path[0]?.der.equals(leaf.der)).toBe(true);
    expect(trust.isAnchor(path.at(-1) ?? expect.fail('no path'))).toBe(true);
    return undefined;
  } catch (error) {
    if (!(error instanceof EstuaryError)) throw error;
    expect(error.status).toBe(401);
    return error.message;
  }
}

const chains = await makeChains();

describe('RFC 5280 §6.1: a path gets the verdict that OpenSSL gives it', () => {
  test.each(chains.map((chain): [string, Chain] => [chain.what, chain]))('%s', async (_, chain) => {
    const theirs = opensslRefusal(chain);
    const agree = chain.deviation === undefined;
    expect(theirs === undefined, theirs).toBe((chain.refused === undefined) === agree);

    const trustAnchors = pem(chain.anchors);
    const sent = await clientTrust({ trustAnchors });
    expect(await ourRefusal(sent, chain, chain.intermediates)).toBe(chain.refused);
    // again, from the snapshot's memory
    expect(await ourRefusal(sent, chain, chain.intermediates)).toBe(chain.refused);
  });

  test('there are 30 chains and more, good and bad', () => {
    expect(chains.filter(({ refused }) => refused === undefined).length).toBeGreaterThan(30);
    expect(chains.filter(({ refused }) => refused !== undefined).length).toBeGreaterThan(30);
    expect(chains.filter(({ deviation }) => deviation !== undefined).length).toBe(24);
  });
});

test('a certificate is suitable for one of several purposes, for any, or without a restriction', async () => {
  const suits = async (...purposes: string[]): Promise<boolean> => {
    const { der } = await makeClient('CN=a', await makeCa('CN=CA'), {
      extensions: purposes.length === 0 ? [] : [extKeyUsage(...purposes)],
    });
    return allowsPurpose(parseCertificate(der), [OID.clientAuth, OID.cmcRA]);
  };
  for (const purpose of [OID.clientAuth, OID.cmcRA, OID.anyExtendedKeyUsage]) expect(await suits(purpose)).toBe(true);
  expect(await suits()).toBe(true);
  expect(await suits(OID.serverAuth)).toBe(false);
});
