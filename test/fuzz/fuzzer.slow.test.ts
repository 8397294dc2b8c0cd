/** The fuzzer finds the defects that it is made for. */
import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { DerError, integer, sequence } from '../../src/pki/der/der.ts';
import { badRequest, failed } from '../../src/errors.ts';
import { mutateTree } from './der-mutation.ts';
import type { Finding, Fuzzer } from './fuzzer.ts';
import { fuzzing } from './in-test.ts';
import { random } from './mutation.ts';
import { isClientError, type Target } from './target.ts';
import { mutateText } from './text-mutation.ts';

const { of: fuzzerFor, probe } = fuzzing();

function fuzzerOf(read: Target['read'], findings: Finding[], seconds = 0): Fuzzer {
  const target: Target = {
    grammar: 'der',
    seeds: () => [sequence(integer(1))],
    read,
    isRefusal: (error) => isClientError(error) || error instanceof RangeError,
  };
  return fuzzerFor(target, findings, seconds);
}

async function findingsOf(read: Target['read']): Promise<string[]> {
  const findings: Finding[] = [];
  await fuzzerOf(read, findings).replay(Buffer.from('input'));
  return findings.map(({ what }) => what);
}

const endless = (depth: number): number => endless(depth + 1) + 1;

function busy(milliseconds: number): void {
  // The looks at the clock are work of the system's, which counts as well.
  const spent = ({ user, system }: NodeJS.CpuUsage): number => user + system;
  const before = process.cpuUsage();
  while (spent(process.cpuUsage(before)) < milliseconds * 1000);
}

/** Leaves an error in OpenSSL's queue, which the next TLS read reports. */
function poison(): void {
  generateKeyPairSync('ed25519').publicKey.equals(generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey);
}

describe('a finding', () => {
  test.each<[string, Target['read'], RegExp]>([
    ['an exception of no class that is declared', () => JSON.parse('{') as unknown, /^SyntaxError/],
    ['a rejected promise', () => Promise.reject(new TypeError('no')), /^TypeError: no/],
    ['a failure of ours', () => Promise.reject(failed('INTERNAL_ERROR', 'failed')), /^EstuaryError: failed/],
    ['a stack that overflows, though RangeErrors are declared', () => endless(0), /^RangeError: Maximum call stack/],
    ['more than 100 ms of CPU', () => busy(250), /^too slow/],
    ['an error for the next TLS connection', poison, /^leaves an error for the next TLS connection/],
  ])('is %s', async (_, read, what) => {
    expect(await findingsOf(read)).toEqual([expect.stringMatching(what)]);
  });

  test.each<[string, Target['read']]>([
    ['a refusal', () => Promise.reject(badRequest('BAD_REQUEST', 'refused'))],
    ['a RangeError that the parser declares', () => Buffer.alloc(1).readInt8(2)],
    ['20 ms of CPU', () => busy(20)],
  ])('is not %s', async (_, read) => {
    expect(await findingsOf(read)).toEqual([]);
  });

  test('is one input of thousands that are tried', async () => {
    const findings: Finding[] = [];
    const read = (input: Buffer): void => {
      if (input.includes(Buffer.of(0x02, 0x01, 0x7f))) throw new DerError('found');
    };
    await fuzzerOf(read, findings, 2).run();
    expect(findings.map(({ what }) => what.split('\n')[0])).toEqual(['DerError: found']);
  });

  test('is memory that is kept', async () => {
    const findings: Finding[] = [];
    const held: Buffer[] = [];
    await fuzzerOf(() => held.length < 6000 && held.push(Buffer.alloc(20_000, 1)), findings, 2).run();
    expect(findings.map(({ what }) => what.split('\n')[0])).toContain('memory grows');
  });
});

test('the connection that was failed by an error is replaced', async () => {
  poison();
  expect(await probe().fault()).toBeDefined();
  expect(await probe().fault()).toBeUndefined();
});

describe('changes of inputs', () => {
  const der = sequence(integer(5), sequence(integer(6)));
  const change = {
    der: (seed: number) => mutateTree(der, der, random(seed)),
    text: (seed: number) => mutateText(Buffer.from('a = 1\nb = 2\n'), der, ['[c]'], random(seed)),
  };

  test.each(['der', 'text'] as const)('of %s are the same for the same seed, and differ between seeds', (grammar) => {
    const changed = Array.from({ length: 200 }, (_, seed) => change[grammar](seed).toString('hex'));
    expect(Array.from({ length: 200 }, (_, seed) => change[grammar](seed).toString('hex'))).toEqual(changed);
    expect(new Set(changed).size).toBeGreaterThan(50);
  });
});
