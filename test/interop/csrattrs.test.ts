/** Clients that read csrattrs, against the quickstart's configuration with `[ca.csrattrs]` added (RFC 7030 §4.5.2). */
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { compileEstClient } from '../support/bouncycastle.ts';
import { run, runAny, runText } from '../support/command.ts';
import { type Quickstart, startQuickstart } from '../support/quickstart.ts';
import { ESTCLIENT, requires } from '../support/requires.ts';

const WANTED = `
[ca.csrattrs]
challenge_password = true
key_type = "ec:P-256"
signature = "ecdsaWithSHA256"
extensions = ["subjectAltName"]
`;

/** challengePassword, id-ecPublicKey, subjectAltName, ecdsaWithSHA256 */
const OIDS = ['1.2.840.10045.2.1', '1.2.840.10045.4.3.2', '1.2.840.113549.1.9.7', '2.5.29.17'];

describe.skipIf(!requires('curl', 'openssl'))('csrattrs', () => {
  let server: Quickstart;

  beforeAll(async () => {
    // After the profile of the first CA, which is the default one.
    const configure = (toml: string): string => toml.replace('validity_days = 90\n', `validity_days = 90\n${WANTED}`);
    server = await startQuickstart({ configure });
  });
  afterAll(() => server.stop());

  const curl = (): Promise<Buffer> => {
    const args = ['-sSf', '--noproxy', '*', '--cacert', server.file('ca/root.pem')];
    return run('curl', [...args, `${server.est}/csrattrs`]);
  };

  test('curl and openssl', async () => {
    const der = Buffer.from((await curl()).toString('latin1'), 'base64');
    const dump = await runText('openssl', ['asn1parse', '-inform', 'DER'], { input: der });
    for (const name of ['challengePassword', 'id-ecPublicKey', 'prime256v1', 'ecdsa-with-SHA256'])
      expect(dump).toContain(`:${name}\n`);
    expect(dump).toContain(':X509v3 Subject Alternative Name\n');
  });

  test.skipIf(!requires('estclient'))('libest estclient', async () => {
    const out = server.file('client/libest');
    mkdirSync(out);
    const [host = '', port = ''] = server.host.split(':');
    const env = { EST_OPENSSL_CACERT: server.file('ca/root.pem') };
    const { output } = await runAny(ESTCLIENT, ['-a', '-s', host, '-p', port, '-o', out, '-v', '-w', '60'], { env });
    const bare = (text: string): string => text.replace(/\s/g, '');
    expect(bare(readFileSync(join(out, 'csr-0-0.base64'), 'utf8')), output).toBe(
      bare((await curl()).toString('latin1')),
    );
  });

  test.skipIf(!requires('bouncycastle'))('Bouncy Castle', async () => {
    const estClient = await compileEstClient(server.file('client'));
    const options = { server: server.host, ca: server.file('ca/root.pem') };
    const output = await runText('java', estClient('csrattrs', options));
    expect(output.trim().split('\n').sort()).toEqual(OIDS);
  });
});
