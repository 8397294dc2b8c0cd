/** How events reach a receiver: a webhook, or a mail server. */
import { createHmac } from 'node:crypto';
import type { Transporter } from 'nodemailer';
import { clientTls } from '../ca/remote/client-tls.ts';
import { anchoredAt, HttpClient } from '../https-client.ts';
import type { ServiceMaterial } from '../config/material/material.ts';
import type { NotificationConfig } from '../config/schema.ts';
import { pemOf } from '../pki/x509/certificate.ts';
import type { CloudEvent } from './event.ts';

/** Milliseconds that a mail server may take for each step. */
const MAIL_TIMEOUT = 30_000;

export interface Receiver {
  /** Rejects if the events were not accepted. */
  send(events: readonly CloudEvent[]): Promise<void>;
  close(): void;
}

type Webhook = Extract<NotificationConfig, { kind: 'webhook' }>;
type Smtp = Extract<NotificationConfig, { kind: 'smtp' }>;

export function createReceiver(config: NotificationConfig, material: ServiceMaterial | undefined): Receiver {
  return config.kind === 'webhook' ? webhook(config, material) : mail(config, material);
}

/** One event per POST (CloudEvents HTTP binding, structured mode). */
function webhook(
  { url, timeout, signature_key: key, signature_header }: Webhook,
  material?: ServiceMaterial,
): Receiver {
  const { origin, pathname, search } = new URL(url);
  const client = new HttpClient(origin, clientTls(material ?? {}));
  return {
    async send(events) {
      for (const event of events) {
        const body = Buffer.from(JSON.stringify(event), 'utf8');
        const { status } = await client.call({
          method: 'POST',
          path: `${pathname}${search}`,
          headers: {
            'Content-Type': 'application/cloudevents+json; charset=utf-8',
            ...(key === undefined ? {} : { [signature_header]: signature(key.reveal(), body) }),
          },
          body,
          deadline: Date.now() + timeout * 1000,
        });
        if (status < 200 || status > 299) throw new Error(`the receiver answered ${status}`);
      }
    },
    close: () => client.close(),
  };
}

/** `t=SECONDS,v1=HEX`, over `SECONDS.BODY`. */
export function signature(key: Buffer, body: Buffer, seconds = Math.floor(Date.now() / 1000)): string {
  const mac = createHmac('sha256', key).update(`${seconds}.`).update(body).digest('hex');
  return `t=${seconds},v1=${mac}`;
}

function mail(config: Smtp, material?: ServiceMaterial): Receiver {
  return {
    async send(events) {
      const transport = await mailTransport(config, material);
      try {
        const { from, to } = config;
        const count = `${events.length} ${events.length === 1 ? 'warning' : 'warnings'}`;
        await transport.sendMail({ from, to: [...to], subject: `Estuary: ${count}`, text: digest(events) });
      } finally {
        transport.close();
      }
    },
    close: () => undefined,
  };
}

export async function mailTransport(
  { host, port, security, username, password }: Smtp,
  material: ServiceMaterial | undefined,
): Promise<Transporter> {
  const { createTransport } = await import('nodemailer');
  return createTransport({
    host,
    port: port ?? (security === 'tls' ? 465 : 587),
    secure: security === 'tls',
    requireTLS: security === 'starttls',
    ignoreTLS: security === 'none',
    ...(username === undefined ? {} : { auth: { user: username, pass: password?.reveal().toString('utf8') ?? '' } }),
    tls: {
      ...anchoredAt(material?.trustAnchors && pemOf(material.trustAnchors)),
      minVersion: 'TLSv1.2',
    },
    connectionTimeout: MAIL_TIMEOUT,
    greetingTimeout: MAIL_TIMEOUT,
    socketTimeout: MAIL_TIMEOUT,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
}

/** Lines of a digest for each kind of event. */
const MAX_LINES = 200;

function digest(events: readonly CloudEvent[]): string {
  const parts = [...Map.groupBy(events, ({ type }) => type)].map(([type, all]) => {
    const lines = all.slice(0, MAX_LINES).map(({ time, data }) => `  ${time}  ${detailOf(data)}`);
    const more = all.length > MAX_LINES ? [`  and ${all.length - MAX_LINES} more`] : [];
    return [`${type} (${all.length})`, ...lines, ...more].join('\n');
  });
  return `${parts.join('\n\n')}\n`;
}

function detailOf(data: object): string {
  const text = 'detail' in data && typeof data.detail === 'string' ? data.detail : '';
  const ca = 'ca' in data && typeof data.ca === 'string' ? `${data.ca}: ` : '';
  return `${ca}${text}`.replaceAll(/\p{Cc}/gu, ' ');
}
