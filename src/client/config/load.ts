/** Reads `client.toml` and reports every problem. */
import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { ConfigError, parseToml, type Problem, type Table } from '../../config/problem.ts';
import { isKeyUri } from '../token/key-uri.ts';
import type { CertificateConfig, ClientConfig } from './client-config.ts';
import { CLIENT_SCHEMA, nameOf, type ReadCertificate, type ReadDocument } from './schema.ts';

/** @throws ConfigError with every problem */
export function loadClientConfig(file: string): ClientConfig {
  let content: string;
  try {
    content = readFileSync(file, 'utf8');
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new ConfigError(file, [{ key: '', message: `cannot be read: ${reason} (a TOML document)` }]);
  }
  const parsed = parseToml(content);
  if ('problem' in parsed) throw new ConfigError(file, [parsed.problem]);
  return readClientConfig(parsed.document, file);
}

/** @param file prefixes every problem; paths are relative to its folder. @throws ConfigError */
export function readClientConfig(document: Table, file: string): ClientConfig {
  const problems: Problem[] = [];
  const read = CLIENT_SCHEMA.read(document, '', {
    folder: dirname(resolve(file)),
    problem: (key, reason, allowed) => problems.push({ key, message: `${reason} (${allowed})` }),
  });
  problems.push(...across(read));
  if (problems.length > 0) throw new ConfigError(file, problems);
  const { token } = read;
  const complete = (one: ReadCertificate): CertificateConfig => ({
    ...one,
    name: nameOf(one),
    token,
    hooks: read.hooks ?? resolve(dirname(file), 'hooks'),
    private_key: absolute(one.private_key, dirname(resolve(file))),
  });
  return { ...read, token, certificate: read.certificate.map(complete) };
}

const absolute = (key: string | undefined, folder: string): string | undefined =>
  key === undefined || isKeyUri(key) ? key : resolve(folder, key);

function across({ server, certificate, token }: ReadDocument): Problem[] {
  const problems = certificate.flatMap((one, index) => [
    ...alone(one, `certificate[${index}]`),
    ...ofToken(one, token, `certificate[${index}]`),
    ...repeated(certificate, index),
  ]);
  if (server.min_version > server.max_version)
    problems.push({ key: 'server.min_version', message: 'is newer than max_version (at most max_version)' });
  if (server.accept_cmc_ra && server.system_trust_anchors)
    problems.push({
      key: 'server.accept_cmc_ra',
      message: 'requires system_trust_anchors = false: with the CAs of the system, the host name is always checked',
    });
  if (token !== undefined && (token.pin_file === undefined) === (token.pin_env === undefined))
    problems.push({ key: 'token.pin_file', message: 'exactly one of pin_file and pin_env is required' });
  return problems;
}

function ofToken(one: ReadCertificate, token: ReadDocument['token'], key: string): Problem[] {
  const problems: Problem[] = [];
  const inToken = one.key_store === 'token';
  if (token === undefined && inToken)
    problems.push({ key: `${key}.key_store`, message: 'is "token", and no token is configured ([token])' });
  if (token === undefined && one.private_key !== undefined && isKeyUri(one.private_key))
    problems.push({ key: `${key}.private_key`, message: 'is in a token, and no token is configured ([token])' });
  if (inToken && one.formats.some((format) => format !== 'pem'))
    problems.push({ key: `${key}.formats`, message: 'a key cannot leave its token (only "pem")' });
  return problems;
}

function alone(one: ReadCertificate, key: string): Problem[] {
  const problems: Problem[] = [];
  if ((one.certificate === undefined) !== (one.private_key === undefined))
    problems.push({
      key: `${key}.private_key`,
      message: 'certificate and private_key require each other (both, or neither)',
    });
  if (one.key_file !== undefined && (one.key_store === 'token' || one.key_type !== undefined))
    problems.push({
      key: `${key}.key_file`,
      message: 'excludes key_store = "token" and key_type (the key determines both)',
    });
  if (one.otp_file !== undefined && one.otp_env !== undefined)
    problems.push({ key: `${key}.otp_env`, message: 'otp_file and otp_env exclude each other (one of the two)' });
  if (one.subject === '' && [one.dns_names, one.ip_addresses, one.emails, one.uris].every(({ length }) => length === 0))
    problems.push({
      key: `${key}.subject`,
      message: 'the certificate has no name (subject, dns_names, ip_addresses …)',
    });
  return problems;
}

/** Two certificates in one folder would overwrite each other's files. */
function repeated(all: readonly ReadCertificate[], index: number): Problem[] {
  const one = all[index];
  const before = all.slice(0, index);
  if (one === undefined) return [];
  return [
    ...(before.some(({ folder }) => folder === one.folder)
      ? [
          {
            key: `certificate[${index}].folder`,
            message: 'another certificate uses this folder (a different folder for each certificate)',
          },
        ]
      : []),
    ...(before.some((other) => nameOf(other) === nameOf(one))
      ? [
          {
            key: `certificate[${index}].name`,
            message: `another certificate has the name "${nameOf(one)}" (a different name for each certificate)`,
          },
        ]
      : []),
  ];
}
