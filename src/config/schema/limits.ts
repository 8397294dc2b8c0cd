import { integer, optional, table } from '../keys.ts';

const rate = (description: string) =>
  optional(integer({ description, defaultText: 'unlimited', minimum: 1, maximum: 1000000 }));

export const limits = table(
  {
    requests_per_second_per_address: rate(
      'How many requests a second each listener of each process takes from one address (for IPv6, one /64), with bursts of twice as many; beyond, 503 with Retry-After.',
    ),
    requests_per_second: rate(
      'How many requests a second each listener of each process takes in all, with bursts of twice as many; beyond, 503 with Retry-After.',
    ),
  },
  { description: 'How many requests are taken. Connections have limits of their own in `[server]`.' },
);
