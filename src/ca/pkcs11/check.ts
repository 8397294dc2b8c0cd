import type { CaMaterial } from '../../config/material/material.ts';
import type { Problem } from '../../config/problem.ts';
import type { Config } from '../../config/schema.ts';
import { describe } from '../../errors.ts';
import type { LocalCaContext } from '../local/index.ts';
import { createPkcs11Ca, TokenProblem } from './index.ts';
import type { Pkcs11Context } from './index.ts';

const ALLOWED = {
  module: "the path of the token's PKCS#11 library",
  slot: 'the ID of a slot with a token',
  token_label: 'the label of a token that the module shows',
  pin: "the user's PIN of the token",
  key_label: 'the label of the private key that belongs to `certificate`',
  key_id: 'the CKA_ID of the private key that belongs to `certificate`',
} as const;

/** Tries every CA in a token, as a start would: what keeps those from working that cannot. */
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
