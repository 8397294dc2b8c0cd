import { choice, integer, list, optional, seconds, table, text, variants } from '../keys.ts';
import { checkHost, urlCheck, trustAnchors } from './formats.ts';
import { NOTIFICATION_EVENTS } from '../vocabulary.ts';

const common = {
  name: text({
    description: 'Identifies the entry, also in metrics.',
    allowed: '1 to 64 letters, digits, "-", "." or "_"',
    pattern: /^[A-Za-z0-9._-]{1,64}$/,
  }),
  events: optional.list(choice(NOTIFICATION_EVENTS, { description: 'An event.' }), {
    description: 'Which events.',
    defaultText: 'all events, for `smtp` all warnings',
  }),
  labels: optional.list(text({ description: 'A label.', allowed: 'a label', pattern: /^.{1,64}$/u }), {
    description: 'Only events of these labels.',
    defaultText: 'all labels',
  }),
  days: list(integer(1, 3650, { description: 'Days.', unit: 'days' }), {
    description: 'How long before the expiry `certificate.expiring` and `ca.expiring` are sent.',
    default: [30, 7, 1],
  }),
  retry_for: seconds(1, 31536000, { description: 'How long the delivery of an event is repeated.', default: 259200 }),
  trust_anchors: trustAnchors("PEM file with the CA certificates behind the receiver's TLS certificate."),
};

const webhook = table('A webhook.', {
  ...common,
  kind: choice(['webhook'], { description: 'Each event in an HTTPS POST.' }),
  url: text({
    description: 'Where events are POSTed. Redirects are not followed.',
    allowed: 'an https URL',
    check: urlCheck('https'),
  }),
  signature_key: optional.secret({ description: 'The key of the HMAC-SHA-256 over timestamp and body.' }),
  signature_header: text({
    description: 'The header with the signature.',
    default: 'X-Estuary-Signature',
    allowed: 'a header name',
    pattern: /^[A-Za-z0-9-]{1,100}$/,
  }),
  timeout: seconds(1, 600, { description: 'How long the receiver may take.', default: 10 }),
});

const address = (description: string) =>
  text({ description, allowed: 'a mail address', pattern: /^[^\s\p{Cc}]{1,200}@[^\s\p{Cc}]{1,200}$/u });

const smtp = table('Digests by mail.', {
  ...common,
  kind: choice(['smtp'], { description: 'Digests of warnings by mail.' }),
  host: text({ description: 'The mail server.', allowed: 'a host name', check: checkHost }),
  port: optional.integer(1, 65535, { description: 'Its port.', defaultText: '465 for `tls`, else 587' }),
  security: choice(['tls', 'starttls', 'none'], { description: 'How the connection is protected.', default: 'tls' }),
  username: optional.text({ description: 'For the mail server.', allowed: 'a name', pattern: /^.{1,200}$/u }),
  password: optional.secret({ description: 'For the mail server.' }),
  from: address('The sender.'),
  to: list(address('A recipient.'), { description: 'The recipients.', minItems: 1 }),
  digest_interval: seconds(1, 31536000, { description: 'At least this time lies between two mails.', default: 86400 }),
});

export const notifications = list(variants('kind', [webhook, smtp], { description: 'One receiver.' }), {
  description: 'Who is informed of events (docs/guides/notifications.md).',
  default: [],
});
