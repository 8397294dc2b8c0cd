/** `estuary client` within a test's own process: real network and disk, and a clock that the test may move. */
import { CertificateAgent, type StepResult } from '../../src/client/certificate-agent.ts';
import { readClientConfig } from '../../src/client/config/load.ts';
import { realContext, type ClientContext } from '../../src/client/context.ts';
import { statusOf, writeReports } from '../../src/client/status.ts';

export interface LocalClient {
  readonly folder: string;
  readonly log: string[];
  /** Milliseconds that its clock is ahead. */
  ahead: number;
  step(force?: 'enroll' | 'renew'): Promise<StepResult>;
  report(): void;
  status(): ReturnType<typeof statusOf>['state'];
}

interface Settings {
  readonly server: Readonly<Record<string, unknown>>;
  readonly certificate: Readonly<Record<string, unknown>>;
  readonly document?: Readonly<Record<string, unknown>>;
  readonly env?: Readonly<Record<string, string>>;
  readonly ask?: ClientContext['ask'];
}

export function localClient(folder: string, settings: Settings): LocalClient {
  const document = {
    ...settings.document,
    server: settings.server,
    certificate: [{ folder, ...settings.certificate }],
  };
  const config = readClientConfig(document, `${folder}/client.toml`);
  const [certificate] = config.certificate;
  if (certificate === undefined) throw new Error('no certificate');
  const log: string[] = [];
  const client: LocalClient = {
    folder,
    log,
    ahead: 0,
    step: (force) => new CertificateAgent(certificate, config.server, context).step({ force }),
    report: () => writeReports(config, context.disk, context.now()),
    status: () => statusOf(certificate, context.disk, context.now()).state,
  };
  const context = realContext({
    env: settings.env ?? {},
    now: () => Date.now() + client.ahead,
    log: (level, _name, message) => void log.push(`${level}: ${message}`),
    ask: settings.ask,
  });
  return client;
}
