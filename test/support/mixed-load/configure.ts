/** The configuration that a mixed load needs, out of the quickstart's. */
import type { TomlTable } from 'smol-toml';
import { caSection, section } from '../estuary.ts';

/** A CA with an approval queue, publication, and short lockouts. */
export function configureMixedLoad(config: TomlTable): void {
  // A device that got no answer asks again.
  Object.assign(section(config, 'otp'), { retry_window: 3600, failure_window: 5, lockout_duration: 5 });
  section(config, 'serverkeygen')['encryption'] = 'optional';
  const base_url = 'http://pki.example.test';
  Object.assign(section(config, 'publication'), {
    enabled: true,
    host: '127.0.0.1',
    port: 0,
    base_url,
    crl_interval: 20,
  });
  caSection(config, 1)['approval'] = 'manual';
}
