/** The configuration, with everything checked that a start would trip over. */
import { checkGssapi } from '../../auth/gssapi/gssapi.ts';
import { tokenProblems } from '../../ca/pkcs11/index.ts';
import { loadConfig, type LoadedService } from '../../config/load.ts';
import { findings } from '../../config/findings.ts';
import { ConfigError, type Problem } from '../../config/problem.ts';
import type { Config } from '../../config/schema.ts';
import { describe, EstuaryError } from '../../errors.ts';
import { describeTrouble, findKeyTrouble } from '../../store/sqlite/token-lookups.ts';
import type { CommandContext } from './command.ts';

/** @throws ConfigError with everything that keeps it from starting */
export async function loadService(
  file: string,
  { env, now }: Pick<CommandContext, 'env' | 'now'>,
): Promise<LoadedService> {
  const loaded = await loadConfig(file, env, now());
  const { config, material } = loaded;
  // What only the libraries that the configuration needs can tell about it.
  const problems = [
    ...(await checkGssapi({ config: config.gssapi, environment: env })),
    ...(await tokenProblems(config, material.cas, { env, now })),
    ...lookupKeyProblems(config, now()),
  ];
  if (problems.length > 0) throw new ConfigError(file, findings(problems, config));
  return loaded;
}

/** The key of the tokens' lookups belongs to the store, whose database says which it is. */
function lookupKeyProblems({ otp, store }: Config, now: number): Problem[] {
  // A database elsewhere says so when the server starts.
  if (!otp.enabled || store.driver === 'postgres') return [];
  const key = 'otp.lookup_key';
  try {
    const trouble = findKeyTrouble(store.path, otp.lookup_key?.reveal(), now);
    if (trouble === undefined) return [];
    return [{ key, message: describeTrouble(trouble, store.path, otp.lookup_key !== undefined) }];
  } catch (error) {
    if (!(error instanceof EstuaryError)) throw error;
    return [{ key, message: describe(error) }];
  }
}
