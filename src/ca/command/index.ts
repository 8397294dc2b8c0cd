/** `driver = "command"`: a CA behind programs of the operator's. */
import { choice, integer, optional, type Static, table } from '../../config/keys.ts';
import { failed } from '../../errors.ts';
import { commandLine } from '../../process/run-program.ts';
import type { DriverDefinition, DriverContext } from '../driver.ts';
import {
  loadUpstream,
  type MadeUpstream,
  program,
  programChecks,
  timeout,
  upstreamCa,
  upstreamKeys,
  type UpstreamMaterial,
} from '../remote/create.ts';
import { CommandUpstream } from './command-upstream.ts';

const command = table("Programs of the operator's.", {
  issue: program('Gets the CSR (PEM) on the standard input, and writes the certificate and its chain (PEM).'),
  poll: optional(program('Gets the ID that `issue` printed, or nothing after a lost response; answers like `issue`.')),
  revoke: optional(program('Gets the certificate (PEM) on the standard input.')),
  timeout: timeout(60),
  max_running: integer(1, 256, {
    description: 'Programs that run concurrently. Up to sixteen times as many wait; further requests get 503.',
    default: 4,
  }),
});

const keys = table("A CA behind programs of the operator's.", {
  ...upstreamKeys,
  driver: choice(['command'], { description: 'Where the CA is: behind programs.' }),
  command,
});

type CommandTable = Static<typeof keys>;

export const commandDriver: DriverDefinition<CommandTable, UpstreamMaterial<CommandTable>> = {
  keys,
  name: 'command',
  remote: 'the upstream CA',
  dependency: 'command',
  load: loadUpstream,
  checks: ({ command: { issue, poll, revoke } }, key) => programChecks({ issue, poll, revoke }, `${key}.command`),
  create: upstreamCa(makeUpstream),
};

/** @throws EstuaryError 500 `CA_UNUSABLE` without a program that issues */
function makeUpstream({ table: ca }: UpstreamMaterial<CommandTable>, { retryAfter }: DriverContext): MadeUpstream {
  const { label, command: own } = ca;
  const issue = commandLine(own.issue);
  if (issue === undefined) throw failed('CA_UNUSABLE', `ca "${label}": command.issue is empty`);
  const milliseconds = own.timeout * 1000;
  const further = { poll: commandLine(own.poll), revoke: commandLine(own.revoke) };
  return {
    upstream: new CommandUpstream({ label, issue, ...further, timeout: milliseconds, retryAfter }),
    maxCalls: own.max_running,
    timeout: milliseconds,
  };
}
