/** Creates CAs with their key in a PKCS#11 token (`driver = "pkcs11"`). */
import type { CaMaterial, Pkcs11CaMaterial } from '../../config/material/material.ts';
import type { Problem } from '../../config/problem.ts';
import type { Config, Pkcs11CaConfig } from '../../config/schema.ts';
import { isSameConfig } from '../../config/secret.ts';
import { describe, EstuaryError } from '../../errors.ts';
import type { IsolatedLog } from '../../process/isolated-process.ts';
import { IsolatedError } from '../../process/protocol.ts';
import { labeledLog, type Predecessor, type Signer } from '../driver.ts';
import { createLocalCa, LocalCa, type LocalCaConfig, type LocalCaContext } from '../local/index.ts';
import { Pkcs11Signer } from './pkcs11-signer.ts';
import { TokenFault } from './wire.ts';

interface Pkcs11Context {
  /** The module's environment, which may name its configuration. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly retryAfter: number;
  readonly log: IsolatedLog;
}

type Pkcs11Key = 'module' | 'slot' | 'token_label' | 'pin' | 'key_label' | 'key_id';

/** An unusable token or key, with the related key of `[ca.pkcs11]`. */
class TokenProblem extends EstuaryError {
  readonly key: Pkcs11Key;
  readonly reason: string;

  constructor(label: string, key: Pkcs11Key, cause: Error) {
    super(500, 'CA_UNUSABLE', `ca "${label}": pkcs11.${key}: ${describe(cause)}`, { cause });
    this.name = 'TokenProblem';
    this.key = key;
    this.reason = describe(cause);
  }
}

/**
 * A local CA with a key in a token, not started. Its start fails unless the key exists and matches the certificate.
 * @param before its signer stays open if it has the same key in the same token
 * @throws EstuaryError 500 `CA_UNUSABLE` that names the label, the key and the problem
 */
export function createPkcs11Ca(
  config: LocalCaConfig & Pick<Pkcs11CaConfig, 'pkcs11'>,
  material: Pick<Pkcs11CaMaterial, 'certificates' | 'ocsp'>,
  context: LocalCaContext & Pkcs11Context,
  before?: Predecessor,
): LocalCa {
  const { publication, now } = context;
  const opened = before && openedSigner(config, material, before);
  if (opened !== undefined) return createLocalCa(config, material, opened, { publication, now });
  const signer = createSigner(config, { ...context, expectedSpki: material.certificates.certificate.spki });
  return createLocalCa(config, material, signer, { publication, now, start: () => startSigner(signer, config) });
}

function openedSigner(
  { pkcs11 }: Pick<Pkcs11CaConfig, 'pkcs11'>,
  { certificates }: Pick<Pkcs11CaMaterial, 'certificates'>,
  { driver, material }: Predecessor,
): Signer | undefined {
  return driver instanceof LocalCa &&
    material.driver === 'pkcs11' &&
    !(driver.signer instanceof Pkcs11Signer && driver.signer.hasGivenUp) &&
    isSameConfig(material.table.pkcs11, pkcs11) &&
    driver.certificate.spki.equals(certificates.certificate.spki)
    ? driver.signer
    : undefined;
}

type TokenSettings = Pick<LocalCaConfig, 'label'> & Pick<Pkcs11CaConfig, 'pkcs11'>;

/** The running signer of a `[[ca]]` table. @throws TokenProblem that names the label, the key and the problem */
export async function openSigner(settings: TokenSettings, context: Pkcs11Context): Promise<Pkcs11Signer> {
  const signer = createSigner(settings, context);
  await startSigner(signer, settings);
  return signer;
}

function createSigner(
  settings: TokenSettings,
  { env, retryAfter, log, expectedSpki }: Pkcs11Context & { readonly expectedSpki?: Buffer },
): Pkcs11Signer {
  const { label, pkcs11 } = settings;
  const pin = pkcs11.pin.reveal().toString('utf8');
  try {
    return new Pkcs11Signer({ ...pkcs11, pin, env, retryAfter, expectedSpki, log: labeledLog(log, label) });
  } catch (error) {
    throw tokenProblem(error, settings);
  }
}

async function startSigner(signer: Pkcs11Signer, settings: TokenSettings): Promise<void> {
  try {
    await signer.start();
  } catch (error) {
    throw tokenProblem(error, settings);
  }
}

function tokenProblem(error: unknown, { label, pkcs11 }: TokenSettings): unknown {
  if (!(error instanceof IsolatedError) && !(error instanceof EstuaryError)) return error;
  return new TokenProblem(label, relatedKey(error.code, pkcs11), error);
}

function relatedKey(code: string, { token_label, key_label }: Pkcs11CaConfig['pkcs11']): Pkcs11Key {
  switch (code) {
    case TokenFault.PIN:
      return 'pin';
    case TokenFault.SLOT:
      return token_label === undefined ? 'slot' : 'token_label';
    case TokenFault.KEY:
    case TokenFault.KEY_MISMATCH:
      return key_label === undefined ? 'key_id' : 'key_label';
    default:
      return 'module';
  }
}

const ALLOWED = {
  module: "the path of the token's PKCS#11 library",
  slot: 'the ID of a slot with a token',
  token_label: 'the label of a token that the module shows',
  pin: "the user's PIN of the token",
  key_label: 'the label of the private key that belongs to `certificate`',
  key_id: 'the CKA_ID of the private key that belongs to `certificate`',
} as const;

/** Opens the token of every CA, as a start would, and returns the problems. */
export async function tokenProblems(
  { est }: Pick<Config, 'est'>,
  cas: readonly CaMaterial[],
  context: Pick<LocalCaContext, 'now'> & Pick<Pkcs11Context, 'env'>,
): Promise<Problem[]> {
  const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
  const problems: Problem[] = [];
  for (const [index, material] of cas.entries()) {
    if (material.driver !== 'pkcs11') continue;
    try {
      const made = createPkcs11Ca(material.table, material, { ...context, retryAfter: est.retry_after, log });
      try {
        await made.start();
      } finally {
        await made.close();
      }
    } catch (error) {
      const name = error instanceof TokenProblem ? error.key : 'module';
      const reason = error instanceof TokenProblem ? error.reason : describe(error);
      problems.push({ key: `ca[${index}].pkcs11.${name}`, message: `${reason} (${ALLOWED[name]})` });
    }
  }
  return problems;
}
