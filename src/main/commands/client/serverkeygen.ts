/** `client serverkeygen`: a certificate with a key that the server generates (RFC 7030 §4.4). */
import { createPrivateKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { requestWith } from '../../../client/one-shot.ts';
import { makePrivateKey, readPrivateKey, wantedOf } from '../../../client/request/csr.ts';
import { openServerKey, protectionAttributes, type KeyProtection } from '../../../client/server-key.ts';
import { aesBits } from '../../../pki/cms/key-wrap.ts';
import { subjectKeyIdentifier } from '../../../pki/x509/public-key.ts';
import { UsageError, type CommandContext, type Values } from '../command.ts';
import { enrollOnce, openOnce, reported } from './once.ts';
import type { SERVERKEYGEN } from './options.ts';

type ServerKeyGenOptions = Values<typeof SERVERKEYGEN>;

/** @throws UsageError; ConfigError */
export function run(options: ServerKeyGenOptions, context: CommandContext): Promise<number> {
  return reported(options, context, async () => {
    if (options.der)
      throw new UsageError('--der does not go with serverkeygen, whose result is a key and a certificate');
    if (
      options.subject === undefined &&
      options.dns === undefined &&
      options.ip === undefined &&
      options.config === undefined
    )
      throw new UsageError('--subject DN (or --dns, --ip) is missing');
    const { wait, 'key-password-file': passwordFile, 'decrypt-key': decryptKey } = options;
    const protection = protectionOf(options);
    const passwords = passwordFile === undefined ? [] : [readFileSync(passwordFile, 'utf8').replace(/\r?\n$/, '')];
    const shot = openOnce(options, context);
    return enrollOnce(
      shot,
      {
        operation: 'serverkeygen',
        wait,
        request: (server) =>
          requestWith(
            async (keyType) =>
              decryptKey === undefined
                ? makePrivateKey(keyType)
                : readPrivateKey(readFileSync(decryptKey, 'utf8'), decryptKey),
            wantedOf(shot.config, undefined),
            shot,
            server,
            protection === undefined ? [] : protectionAttributes(protection),
          ),
        open: (key, cas, sent) =>
          openServerKey(key, { protection, passwords: [...passwords, ...sent], cas, now: context.now() }),
      },
      options,
      context,
    );
  });
}

/** @throws UsageError */
function protectionOf(options: ServerKeyGenOptions): KeyProtection | undefined {
  const { 'decrypt-key': keyFile, 'decrypt-id': keyId, 'kek-file': kekFile, 'kek-id': kekId } = options;
  if (keyFile !== undefined && kekFile !== undefined)
    throw new UsageError('--decrypt-key and --kek-file exclude each other');
  if (keyFile !== undefined) {
    const pem = readFileSync(keyFile, 'utf8');
    const { publicKey } = readPrivateKey(pem, keyFile);
    const identifier = keyId === undefined ? subjectKeyIdentifier(publicKey.spki) : hex('--decrypt-id', keyId);
    return { key: createPrivateKey(pem), identifier };
  }
  if (kekFile === undefined) return undefined;
  if (kekId === undefined) throw new UsageError('--kek-id HEX is missing');
  return { key: sharedKey(kekFile), identifier: hex('--kek-id', kekId) };
}

/** The octets as they are, or in hex. */
function sharedKey(file: string): Buffer {
  const content = readFileSync(file);
  const text = content.toString('latin1').trim();
  const key = /^(?:[0-9a-fA-F]{2})+$/.test(text) ? Buffer.from(text, 'hex') : content;
  try {
    aesBits(key);
  } catch {
    throw new UsageError(`--kek-file: ${file} does not hold an AES key of 16, 24 or 32 octets`);
  }
  return key;
}

function hex(option: string, text: string): Buffer {
  if (!/^(?:[0-9a-fA-F]{2})+$/.test(text)) throw new UsageError(`${option}: "${text}" is not hex`);
  return Buffer.from(text, 'hex');
}
