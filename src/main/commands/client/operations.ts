/** The `estuary client` commands that perform one EST operation and store nothing. */
import { createPrivateKey } from 'node:crypto';
import { ClientError } from '../../../client/client-error.ts';
import { forKey, givenKey } from '../../../client/enrollment.ts';
import { readCertificates } from '../../../client/keep/certificate-folder.ts';
import { requestFrom, requestWith, withServer } from '../../../client/one-shot.ts';
import { makePrivateKey, openPrivateKey, readPrivateKey, wantedOf } from '../../../client/request/csr.ts';
import { type KeyProtection, openServerKey, protectionAttributes } from '../../../client/server-key.ts';
import { readContentSync } from '../../../config/content.ts';
import { aesBits } from '../../../pki/cms/key-wrap.ts';
import { certsOnly } from '../../../pki/cms/cms.ts';
import { oidName } from '../../../pki/der/oids.ts';
import { type AttrOrOid, encodeCsrAttrs, keyTypeOf } from '../../../pki/pkcs10/csrattrs.ts';
import { tidyPem } from '../../../pki/der/pem.ts';
import { pemOf } from '../../../pki/x509/certificate.ts';
import { subjectKeyIdentifier } from '../../../pki/x509/public-key.ts';
import { type CommandContext, UsageError, type Values } from '../command.ts';
import { certificateJson, enrollOnce, jsonText, type OnceOptions, printOnce } from './once.ts';
import type { ENROLL, REENROLL, SERVERKEYGEN } from './options.ts';

/** `client cacerts`: the server's trusted CA certificates (RFC 7030 §4.1). @throws UsageError; ConfigError */
export const cacerts = (options: OnceOptions, context: CommandContext): Promise<number> =>
  printOnce(options, context, async (shot) => {
    const { anchors, intermediates } = await withServer(shot, (_, cas) => Promise.resolve(cas));
    const all = [...anchors, ...intermediates];
    if (options.json) return jsonText({ certificates: all.map(certificateJson) });
    return options.der ? certsOnly(all.map(({ der }) => der)) : pemOf(all);
  });

/** `client csrattrs`: the server's CSR attributes (RFC 7030 §4.5). @throws UsageError; ConfigError */
export const csrattrs = (options: OnceOptions, context: CommandContext): Promise<number> =>
  printOnce(options, context, async (shot) => {
    const attributes = await withServer(shot, (server) => server.csrAttributes(true));
    if (options.json) return jsonText({ attributes: attributes.map(attributeJson) });
    return options.der ? encodeCsrAttrs(attributes) : attributes.map(line).join('');
  });

const attributeJson = (attribute: AttrOrOid) => ({
  oid: attribute.oid,
  name: oidName(attribute.oid),
  key_type: keyTypeOf(attribute),
  values: attribute.values?.map((value) => value.toString('hex')),
});

function line(attribute: AttrOrOid): string {
  const { name, key_type, values = [] } = attributeJson(attribute);
  const shown = key_type ?? values.join(', ');
  return `${name}${shown === '' ? '' : ` ${shown}`}\n`;
}

/**
 * `client enroll --csr` and `--stdout`: one certificate for an existing request or key. @throws UsageError; ConfigError
 */
export const enrollFromRequest = (options: Values<typeof ENROLL>, context: CommandContext): Promise<number> =>
  enrollOnce(options, context, (shot) => {
    const { csr } = options;
    const { config } = shot;
    if (csr === undefined && config.key_file === undefined)
      throw new UsageError(
        '--stdout requires --csr FILE, or --key FILE (with --cert-key for --cert): a new key would be lost',
      );
    const key = csr === undefined ? givenKey(config.key_file ?? '', shot.context) : undefined;
    return {
      operation: 'simpleenroll',
      request: async (server) =>
        key === undefined
          ? requestFrom(readContentSync(csr ?? ''), csr ?? '')
          : requestWith(() => Promise.resolve(key), forKey(wantedOf(config, undefined), key), shot, server),
    };
  });

/** `client reenroll`: renews a certificate once (RFC 7030 §4.2.2). @throws UsageError; ConfigError */
export const reenroll = (options: Values<typeof REENROLL>, context: CommandContext): Promise<number> =>
  enrollOnce(options, context, (shot) => {
    const { csr } = options;
    const { config, identity } = shot;
    if (identity === undefined)
      throw new UsageError('--cert FILE and --key FILE are missing: the certificate to renew');
    const { certificate, privateKey } = identity;
    const [renewed] = readCertificates(certificate, config.certificate ?? 'the certificate');
    if (renewed === undefined)
      throw new ClientError('local', 'FILES_UNUSABLE', 'the certificate to renew does not exist');
    return {
      operation: 'simplereenroll',
      request: async (server) => {
        if (csr !== undefined) return requestFrom(readContentSync(csr), csr);
        const text = typeof privateKey === 'string' ? privateKey : privateKey.uri;
        const token = config.token && shot.context.token(config.token);
        const key = await openPrivateKey(text, config.private_key ?? 'the key', token);
        return requestWith(() => Promise.resolve(key), forKey(wantedOf(config, renewed), key), shot, server);
      },
    };
  });

type ServerKeyGenOptions = Values<typeof SERVERKEYGEN>;

/** `client serverkeygen`: a certificate for a server-generated key (RFC 7030 §4.4). @throws UsageError; ConfigError */
export async function serverkeygen(options: ServerKeyGenOptions, context: CommandContext): Promise<number> {
  if (options.der) throw new UsageError('serverkeygen does not support --der: its result is a key and a certificate');
  if ((options.subject ?? options.dns ?? options.ip ?? options.config) === undefined)
    throw new UsageError('--subject DN (or --dns, --ip) is missing');
  return enrollOnce(options, context, (shot) => {
    const { 'key-password-file': passwordFile, 'decrypt-key': decryptKey } = options;
    const protection = protectionOf(options);
    const password =
      passwordFile &&
      readContentSync(passwordFile)
        .toString()
        .replace(/\r?\n$/, '');
    const passwords = password === undefined ? [] : [password];
    return {
      operation: 'serverkeygen',
      request: (server) =>
        requestWith(
          async (keyType) =>
            decryptKey === undefined
              ? makePrivateKey(keyType)
              : readPrivateKey(readContentSync(decryptKey).toString(), decryptKey),
          wantedOf(shot.config, undefined),
          shot,
          server,
          protection === undefined ? [] : protectionAttributes(protection),
        ),
      open: (key, cas, sent) =>
        openServerKey(key, { protection, passwords: [...passwords, ...sent], cas, now: context.now() }),
    };
  });
}

function protectionOf(options: ServerKeyGenOptions): KeyProtection | undefined {
  const { 'decrypt-key': keyFile, 'decrypt-id': keyId, 'kek-file': kekFile, 'kek-id': kekId } = options;
  if (keyFile !== undefined && kekFile !== undefined)
    throw new UsageError('--decrypt-key and --kek-file exclude each other');
  if (keyFile !== undefined) {
    const pem = tidyPem(readContentSync(keyFile).toString());
    const { publicKey } = readPrivateKey(pem, keyFile);
    const identifier = keyId === undefined ? subjectKeyIdentifier(publicKey.spki) : hex('--decrypt-id', keyId);
    return { key: createPrivateKey(pem), identifier };
  }
  if (kekFile === undefined) return undefined;
  if (kekId === undefined) throw new UsageError('--kek-id HEX is missing');
  return { key: sharedKey(kekFile), identifier: hex('--kek-id', kekId) };
}

/** Raw octets or hex. */
function sharedKey(file: string): Buffer {
  const content = readContentSync(file);
  const text = content.toString('latin1').trim();
  const key = /^(?:[0-9a-fA-F]{2})+$/.test(text) ? Buffer.from(text, 'hex') : content;
  try {
    aesBits(key);
  } catch {
    throw new UsageError(`--kek-file: ${file} is not an AES key of 16, 24 or 32 octets`);
  }
  return key;
}

function hex(option: string, text: string): Buffer {
  if (!/^(?:[0-9a-fA-F]{2})+$/.test(text)) throw new UsageError(`${option}: "${text}" is not hex`);
  return Buffer.from(text, 'hex');
}
