/** Prints the usage of a script and ends the process: on stdout if `--help` requests it, otherwise as an error. */
export function endWithUsage(usage: string): never {
  const isHelp = process.argv.includes('--help');
  (isHelp ? process.stdout : process.stderr).write(`Usage: ${usage}\n`);
  process.exit(isHelp ? 0 : 1);
}

/** The action of a script that generates a file of the repository. */
export function generatorAction(script: string): 'write' | 'check' {
  const [action] = process.argv.slice(2);
  if (action === 'write' || action === 'check') return action;
  return endWithUsage(`node scripts/${script} write|check`);
}
