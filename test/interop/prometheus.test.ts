/** The alert rules and the dashboard of `config/`, held to Prometheus itself. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { connect as connectTcp } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { caSection, Estuary, itemsOf, section } from '../support/estuary.ts';
import { call } from '../support/https.ts';
import { freePort } from '../support/ports.ts';
import { findCommand, requires } from '../support/requires.ts';
import { ROOT } from '../support/root.ts';
import { removeFolder } from '../support/folders.ts';

const RULES = join(ROOT, 'config/alerts.yml');
const TESTS = join(ROOT, 'test/interop/alerts-test.yml');
const promtool = (args: readonly string[], input?: string): string =>
  execFileSync(findCommand('promtool') ?? 'promtool', args, {
    encoding: 'utf8',
    ...(input !== undefined && { input }),
  });

const alerts = [...readFileSync(RULES, 'utf8').matchAll(/^ +- alert: (\w+)$/gm)].map(([, name = '']) => name);

describe.skipIf(!requires('promtool'))('config/alerts.yml', () => {
  test('promtool finds nothing wrong with it, and its unit tests pass', () => {
    expect(promtool(['check', 'rules', RULES])).toContain(`SUCCESS: ${alerts.length} rules found`);
    expect(promtool(['test', 'rules', TESTS])).toContain('SUCCESS');
  });

  test('each alert has a unit test, is silent on a server that is well, and is explained', () => {
    const tests = readFileSync(TESTS, 'utf8');
    const explained = readFileSync(join(ROOT, 'docs/reference/alerts.md'), 'utf8');
    for (const alert of alerts) {
      expect(tests).toContain(`- alertname: ${alert}\n`);
      expect(tests).toContain(`{ alertname: ${alert}, eval_time: 50m, exp_alerts: [] }`);
      expect(explained).toContain(`\n## ${alert}\n`);
    }
  });
});

interface Panel {
  readonly title: string;
  readonly targets: readonly { readonly expr: string }[];
}

function panels(): Panel[] {
  const text = readFileSync(join(ROOT, 'config/grafana-dashboard.json'), 'utf8');
  const dashboard = JSON.parse(text) as { readonly panels: Panel[] };
  return dashboard.panels;
}

/** What a dashboard's variables stand for. */
const filledIn = (expr: string): string => expr.replaceAll('$__rate_interval', '1m').replaceAll('$instance', '.*');

function query(port: number, expr: string): Promise<{ status: string; results: number }> {
  return new Promise((resolve, reject) => {
    request({ host: '127.0.0.1', port, path: `/api/v1/query?query=${encodeURIComponent(expr)}` }, (response) => {
      let text = '';
      response.on('data', (chunk: Buffer) => (text += chunk.toString()));
      response.on('end', () => {
        // It answers 503 in plain text until it is ready.
        if (response.statusCode !== 200) {
          resolve({ status: text, results: 0 });
          return;
        }
        const answer = JSON.parse(text) as { status: string; data?: { result: unknown[] } };
        resolve({ status: answer.status, results: answer.data?.result.length ?? 0 });
      });
    })
      .on('error', reject)
      .setTimeout(20_000)
      .end();
  });
}

/** A Prometheus that scrapes the server each second. */
async function startPrometheus(estuary: Estuary): Promise<number> {
  const dir = mkdtempSync(join(tmpdir(), 'estuary-prometheus-'));
  const port = await freePort();
  writeFileSync(
    join(dir, 'prometheus.yml'),
    `
global: { scrape_interval: 1s, evaluation_interval: 1s }
rule_files: [${RULES}]
scrape_configs:
  - job_name: estuary
    scheme: https
    tls_config: { ca_file: ${join(estuary.dir, 'ca/root.pem')}, server_name: localhost }
    authorization: { credentials_file: ${join(estuary.dir, 'admin/token')} }
    static_configs: [{ targets: ['127.0.0.1:${estuary.server.port('admin')}'] }]
`,
  );
  const args = [`--config.file=${join(dir, 'prometheus.yml')}`, `--storage.tsdb.path=${join(dir, 'data')}`];
  const child = spawn(findCommand('prometheus') ?? 'prometheus', [...args, `--web.listen-address=127.0.0.1:${port}`], {
    stdio: 'ignore',
  });
  const ended = once(child, 'exit');
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await ended;
    removeFolder(dir);
  });
  return port;
}

async function metricsOf(estuary: Estuary): Promise<string> {
  const { text } = await call({
    port: estuary.server.port('admin'),
    path: '/metrics',
    headers: { Authorization: `Bearer ${estuary.adminToken}` },
    tls: { ca: estuary.root },
  });
  return text;
}

/** Something of all that the dashboard shows. */
async function load(estuary: Estuary): Promise<void> {
  const key = makeKey();
  const device = await estuary.enrolled(key);
  const wire = onTheWire(simpleCsr(key, 'device-1'));
  expect((await estuary.enroll(wire, { client: device, path: 'simplereenroll' })).status).toBe(200);
  await estuary.enroll(wire, { password: 'x'.repeat(20) });
  await estuary.est('cacerts');
  const { token } = await estuary.otp();
  expect(
    (await estuary.enroll(onTheWire(simpleCsr(makeKey(), 'device-2')), { password: token, path: 'lab/simpleenroll' }))
      .status,
  ).toBe(202);
  const { json } = await estuary.admin('GET', '/admin/certificates?limit=1000');
  const serial = itemsOf(json).at(-1)?.['serial'];
  expect((await estuary.admin('POST', `/admin/certificates/${String(serial)}/revoke?ca=devices`, {})).status).toBe(200);
  await new Promise<void>((resolve) => {
    const socket = connectTcp(estuary.server.port('est'), '127.0.0.1', () => socket.write('no TLS\r\n\r\n'));
    socket.on('error', () => undefined).on('close', () => resolve());
  });
}

test.skipIf(!requires('promtool'))(
  'promtool check metrics finds nothing in what a server under load counts, and every query of the dashboard has an answer',
  async () => {
    const estuary = await Estuary.start({
      configure(config) {
        caSection(config, 1)['approval'] = 'manual';
        // Each load has a wrong password.
        section(config, 'otp')['max_failures'] = 1000;
      },
    });
    onTestFinished(() => estuary.stop());
    await load(estuary);
    expect(promtool(['check', 'metrics'], await metricsOf(estuary))).toBe('');
    const port = await startPrometheus(estuary);
    const shown = panels();
    expect(shown.length).toBeGreaterThan(15);
    const queries = shown.flatMap(({ title, targets }) => targets.map(({ expr }) => ({ title, expr: filledIn(expr) })));
    await vi.waitFor(
      async () => {
        await load(estuary);
        const answers = await Promise.all(
          queries.map(async ({ title, expr }) => ({ title, expr, ...(await query(port, expr)) })),
        );
        expect(answers.filter(({ status, results }) => status !== 'success' || results === 0)).toEqual([]);
      },
      { timeout: 90_000, interval: 1000 },
    );
    // None of the alerts is about a server that is well.
    expect(await query(port, 'ALERTS{alertstate="firing"}')).toMatchObject({ status: 'success', results: 0 });
  },
  180_000,
);
