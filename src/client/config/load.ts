/** Reads `client.toml` and reports every problem. */
import { dirname, resolve } from 'node:path';
import { readContentSync } from '../../config/content.ts';
import { ConfigError, finding, type Problem, type Table } from '../../config/problem.ts';
import { parseToml } from '../../config/toml.ts';
import { describe } from '../../errors.ts';
import { isKeyUri } from '../token/key-uri.ts';
import {
  type CertificateConfig,
  CLIENT_SCHEMA,
  type ClientConfig,
  nameOf,
  type ReadCertificate,
  type ReadDocument,
} from './schema.ts';

/** @throws ConfigError with every problem */
export function loadClientConfig(file: string): ClientConfig {
  let content: string;
  try {
    content = readContentSync(file).toString();
  } catch (error) {
    throw new ConfigError(file, [{ key: '', message: `cannot be read: ${describe(error)} (a TOML document)` }]);
  }
  const parsed = parseToml(content);
  if ('problem' in parsed) throw new ConfigError(file, [parsed.problem]);
  return readClientConfig(parsed.document, file);
}

/** @param file prefixes every problem; paths are relative to its folder. @throws ConfigError */
export function readClientConfig(document: Table, file: string): ClientConfig {
  const problems: Problem[] = [];
  const folder = dirname(resolve(file));
  const read = CLIENT_SCHEMA.read(document, '', {
    folder,
    problem: (key, reason, allowed) => problems.push({ key, message: `${reason} (${allowed})` }),
  });
  problems.push(...across(read));
  if (problems.length > 0) throw new ConfigError(file, problems);
  const { token, hooks = resolve(folder, 'hooks') } = read;
  const complete = (given: ReadCertificate): CertificateConfig => {
    const { private_key: key } = given;
    const private_key = key === undefined || isKeyUri(key) ? key : resolve(folder, key);
    return { ...given, name: nameOf(given), token, hooks, private_key };
  };
  return { ...read, certificate: read.certificate.map(complete) };
}

function* across({ server, certificate, token }: ReadDocument): Generator<Problem> {
  for (const [index, wanted] of certificate.entries()) {
    const key = `certificate[${index}]`;
    yield* alone(wanted, key);
    yield* ofToken(wanted, token, key);
    yield* repeated(wanted, certificate.slice(0, index), key);
  }
  if (server.min_version > server.max_version)
    yield finding('server.min_version', 'is newer than max_version (at most max_version)');
  if (server.accept_cmc_ra && server.system_trust_anchors)
    yield finding(
      'server.accept_cmc_ra',
      'requires system_trust_anchors = false: with the CAs of the system, the host name is always checked',
    );
  if (token !== undefined && (token.pin_file === undefined) === (token.pin_env === undefined))
    yield finding('token.pin_file', 'exactly one of pin_file and pin_env is required');
}

function* ofToken(
  { key_store, private_key, formats }: ReadCertificate,
  token: ReadDocument['token'],
  key: string,
): Generator<Problem> {
  const inToken = key_store === 'token';
  if (token === undefined && inToken)
    yield finding(`${key}.key_store`, 'is "token", and no token is configured ([token])');
  if (token === undefined && private_key !== undefined && isKeyUri(private_key))
    yield finding(`${key}.private_key`, 'is in a token, and no token is configured ([token])');
  if (inToken && formats.some((format) => format !== 'pem'))
    yield finding(`${key}.formats`, 'a key cannot leave its token (only "pem")');
}

function* alone(wanted: ReadCertificate, key: string): Generator<Problem> {
  if ((wanted.certificate === undefined) !== (wanted.private_key === undefined))
    yield finding(`${key}.private_key`, 'certificate and private_key require each other (both, or neither)');
  if (wanted.key_file !== undefined && (wanted.key_store === 'token' || wanted.key_type !== undefined))
    yield finding(`${key}.key_file`, 'excludes key_store = "token" and key_type (the key determines both)');
  if (wanted.otp_file !== undefined && wanted.otp_env !== undefined)
    yield finding(`${key}.otp_env`, 'otp_file and otp_env exclude each other (one of the two)');
  if (
    wanted.subject === '' &&
    [wanted.dns_names, wanted.ip_addresses, wanted.emails, wanted.uris].every(({ length }) => length === 0)
  )
    yield finding(`${key}.subject`, 'the certificate has no name (subject, dns_names, ip_addresses …)');
}

/** Two certificates in one folder would overwrite each other's files. */
function* repeated(wanted: ReadCertificate, before: readonly ReadCertificate[], key: string): Generator<Problem> {
  const name = nameOf(wanted);
  if (before.some(({ folder }) => folder === wanted.folder))
    yield finding(`${key}.folder`, 'another certificate uses this folder (a different folder for each certificate)');
  if (before.some((other) => nameOf(other) === name))
    yield finding(`${key}.name`, `another certificate has the name "${name}" (a different name for each certificate)`);
}
