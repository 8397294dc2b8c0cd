/** `check`: whether the server would start with a configuration. */
import { formatProblem } from '../../config/problem.ts';
import { EXIT, type CommandContext } from './command.ts';
import { loadService } from './load-service.ts';

/** @throws ConfigError with every problem there is */
export async function run({ config: file }: { readonly config: string }, context: CommandContext): Promise<number> {
  const { warnings } = await loadService(file, context);
  for (const { key, message } of warnings)
    context.err(`${formatProblem(file, { key, message: `warning: ${message}` })}\n`);
  context.out(`${file}: the configuration is valid\n`);
  return EXIT.ok;
}
