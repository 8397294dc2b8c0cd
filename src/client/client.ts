/** Processes the certificates of a configuration once. */
import { CertificateAgent, type StepOptions, type StepResult } from './certificate-agent.ts';
import type { CertificateConfig, ClientConfig } from './config/schema.ts';
import type { ClientContext } from './context.ts';
import { locked, report } from './keep-up.ts';

/** One step per certificate. @throws ClientError if another process uses one of the folders */
export async function stepAll(
  config: ClientConfig,
  chosen: readonly CertificateConfig[],
  context: ClientContext,
  options: StepOptions = {},
): Promise<StepResult[]> {
  return locked(chosen, 'step', async () => {
    const results: StepResult[] = [];
    for (const one of chosen) {
      const result = await new CertificateAgent(one, config.server, context).step(options);
      const { outcome, note } = result;
      // A timer run with nothing to do is silent.
      if (note !== undefined && (outcome !== 'valid' || options.explicit === true)) context.log('info', one.name, note);
      results.push(result);
    }
    report(config, context);
    return results;
  });
}
