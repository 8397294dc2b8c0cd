/** Which algorithms encrypt a generated key: the strongest of what the client's SMIMECapabilities allow. */
import { badRequest } from '../errors.ts';
import type { Recipient } from '../pki/cms/enveloped-data.ts';
import { aesBits, WRAP_OIDS, type AesBits } from '../pki/cms/key-wrap.ts';
import { OID } from '../pki/der/oids.ts';
import type { SMimeCapability } from '../pki/cms/smime-capabilities.ts';

interface Algorithms {
  readonly contentBits: AesBits;
  readonly wrapBits: AesBits;
}

const STRONGEST_FIRST: readonly AesBits[] = [256, 192, 128];
const CONTENT_OIDS: Readonly<Record<AesBits, string>> = {
  256: OID.aes256CBC,
  192: OID.aes192CBC,
  128: OID.aes128CBC,
};
/** rsaEncryption and RSAES-OAEP. */
const KEY_TRANSPORT = [OID.rsaEncryption, OID.rsaOAEP];
/** The arcs of RFC 5753 §7.1.4's key agreement schemes: X9.63 with SHA-1, and SECG's with SHA-2. */
const KEY_AGREEMENT = /^1\.3\.(?:133\.16\.840\.63\.0|132\.1\.1[1-5])(?:\.|$)/;

/**
 * AES-256 throughout without capabilities. With them, the content encryption must be among them; the key management is
 * held to them as far as they speak of it.
 *
 * @throws EstuaryError 400 `CAPABILITIES_WITHOUT_OVERLAP`
 */
export function chooseAlgorithms(
  recipient: Recipient,
  capabilities: readonly SMimeCapability[] | undefined,
): Algorithms {
  const ownWrap = recipient.kind === 'kek' ? aesBits(recipient.key) : 256;
  if (capabilities === undefined) return { contentBits: 256, wrapBits: ownWrap };
  const named = new Set(capabilities.map(({ oid }) => oid));
  const contentBits = STRONGEST_FIRST.find((bits) => named.has(CONTENT_OIDS[bits]));
  if (contentBits === undefined) throw noOverlap('AES in CBC mode');
  if (recipient.kind === 'publicKey') checkScheme(recipient.publicKey.keyType, named);
  const wraps = new Set(capabilities.flatMap(({ oid, inner }) => [oid, inner ?? oid]));
  const listed = STRONGEST_FIRST.filter((bits) => wraps.has(WRAP_OIDS[bits]));
  if (recipient.kind === 'kek') {
    if (listed.length > 0 && !listed.includes(ownWrap)) throw noOverlap(`the ${ownWrap}-bit AES key wrap`);
    return { contentBits, wrapBits: ownWrap };
  }
  return { contentBits, wrapBits: listed[0] ?? ownWrap };
}

function checkScheme(keyType: string, named: ReadonlySet<string>): void {
  if (keyType.startsWith('rsa:')) {
    if (KEY_TRANSPORT.some((oid) => named.has(oid)) && !named.has(OID.rsaOAEP)) throw noOverlap('RSAES-OAEP');
    return;
  }
  const ours = keyType === 'ec:P-256' ? OID.dhSinglePassStdDHSha256Kdf : OID.dhSinglePassStdDHSha384Kdf;
  if ([...named].some((oid) => KEY_AGREEMENT.test(oid)) && !named.has(ours))
    throw noOverlap(`ECDH with ${keyType === 'ec:P-256' ? 'SHA-256' : 'SHA-384'}`);
}

const noOverlap = (missing: string): ReturnType<typeof badRequest> =>
  badRequest(
    'CAPABILITIES_WITHOUT_OVERLAP',
    `The CSR's SMIMECapabilities leave out ${missing}, which the server would encrypt the private key with.`,
  );
