import { firstRepeated, OID } from '../../pki/der/oids.ts';
import type { ProfileConfig } from '../schema.ts';
import { finding, type Finding } from '../findings.ts';

/** Checks on a profile's `policies` and `extensions`. The schema rejects what is never allowed. */
export function* extensionChecks({ policies, extensions }: ProfileConfig, key: string): Generator<Finding> {
  const twice = firstRepeated(policies.map(({ oid }) => oid));
  if (twice !== undefined) yield finding(`${key}.policies`, `${twice} occurs twice (each policy once)`);
  const seen = new Set<string>();
  for (const [index, { oid, value, from }] of extensions.entries()) {
    const one = `${key}.extensions[${index}]`;
    if (seen.has(oid)) yield finding(`${one}.oid`, `${oid} occurs twice (each extension once)`);
    seen.add(oid);
    if ((value === undefined) === (from === undefined))
      yield finding(
        one,
        `has ${value === undefined ? 'neither value nor from' : 'both value and from'} (value = "hex of the DER", or from = "csr")`,
        `${one}.value`,
        `${one}.from`,
      );
    if (from !== undefined && oid === OID.microsoftSid)
      yield finding(
        `${one}.from`,
        `is "csr", and ${oid} names an account of a domain, which anybody could then claim (leave it out)`,
        `${one}.oid`,
      );
  }
}
