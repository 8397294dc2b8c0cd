/** Who still needs a key of a CA, so that it can be retired (docs/guides/rollover.md). */
import { hash } from 'node:crypto';
import type { Ca } from '../ca/router.ts';
import { children } from '../pki/der/der.ts';
import { type Certificate, isIssuedBy, parseCertificate } from '../pki/x509/certificate.ts';
import { formatName, namesMatch } from '../pki/x509/name.ts';
import type { HeldCertificate, HeldCertificateStore, HolderRow } from '../store/held-certificates.ts';
import type { HolderState } from '../store/holder-state.ts';

/** Holders that are named. */
const NAMED = 100;

/** A key that issued certificates of a label. */
export interface IssuingKey {
  /** RFC 4514. */
  readonly subject: string;
  /** Of the SubjectPublicKeyInfo; null: a CA elsewhere that is not in the known chain. */
  readonly key_sha256: string | null;
  /** Of the CA certificate. */
  readonly not_after: number | null;
  readonly current: boolean;
  /** Holders that have not used a certificate of another key. */
  holders: number;
  /** Of these, how many were given the current CA certificate. */
  informed: number;
  /** Of their certificates. */
  latest_expiry: number | null;
  readonly in_the_way: ListedHolderRow[];
}

/** In the list of holders. */
export type ListedHolderRow = HolderRow & { readonly state: HolderState; readonly since: number };

const isListed = (holder: HolderRow): holder is ListedHolderRow => holder.state !== null && holder.since !== null;

/** @throws EstuaryError 500 or 503 from the store */
export async function rolloverOf(
  store: Pick<HeldCertificateStore, 'listHeldCertificates' | 'listGivenChains'>,
  ca: Ca,
  now: number,
): Promise<readonly IssuingKey[]> {
  const [current] = ca.knownCertificates;
  const keys = new Keys(ca, current);
  const informing = new Set<number>();
  if (current !== undefined)
    for (const { position, der } of await store.listGivenChains())
      if (children(der).some(({ raw }) => raw.equals(current.der))) informing.add(position);
  for (let at: number | null = 0; at !== null;) {
    const page = await store.listHeldCertificates(at, ca.label);
    at = page.next;
    for (const holder of page.holders.filter(isListed)) {
      const counted = new Set<IssuingKey>();
      for (const held of neededOf(holder, now)) {
        const key = await keys.of(parseCertificate(held.der));
        if (key === undefined) continue;
        key.latest_expiry = Math.max(key.latest_expiry ?? 0, held.not_after);
        if (counted.has(key)) continue;
        counted.add(key);
        key.holders++;
        if (holder.chains.some((chain) => informing.has(chain))) key.informed++;
        if (key.in_the_way.length < NAMED) key.in_the_way.push(holder);
      }
    }
  }
  return keys.all;
}

/** The valid certificates, except those with a newer one that has authenticated. */
function neededOf({ certificates }: HolderRow, now: number): readonly HeldCertificate[] {
  const newestUsed = certificates.findIndex(({ first_used_at }) => first_used_at !== null);
  const needed = newestUsed < 0 ? certificates : certificates.slice(0, newestUsed + 1);
  return needed.filter(({ not_after, der }) => not_after >= now && der.length > 0);
}

class Keys {
  readonly #known: readonly { readonly certificate: Certificate; readonly key: IssuingKey }[];
  /** For a CA elsewhere: by the name and the key identifier in its certificates. */
  readonly #named: Map<string, IssuingKey> | undefined;

  constructor(ca: Ca, current: Certificate | undefined) {
    const own = ca.ownIsRecorded ? ca.knownCertificates : [...ca.knownCertificates.slice(0, 1), ...ca.renewalIssuers];
    const distinct = own.filter(
      (certificate, index) => own.findIndex(({ spki }) => spki.equals(certificate.spki)) === index,
    );
    this.#known = distinct.map((certificate) => ({
      certificate,
      key: newKey(certificate, current !== undefined && certificate.spki.equals(current.spki)),
    }));
    if (ca.ownIsRecorded) this.#named = new Map();
  }

  get all(): readonly IssuingKey[] {
    if (this.#named === undefined) return this.#known.map(({ key }) => key);
    return [...new Set([...this.#known.flatMap(({ key }) => (key.current ? [key] : [])), ...this.#named.values()])];
  }

  /** undefined: a key that the label no longer names. */
  async of(certificate: Certificate): Promise<IssuingKey | undefined> {
    const possible = this.#known.filter((issuer) => namesMatch(issuer.certificate.subject, certificate.issuer));
    for (const { certificate: issuer, key } of possible)
      if (await isIssuedBy(certificate, issuer)) return this.#name(certificate, key);
    return this.#name(certificate, undefined);
  }

  #name({ issuer, authorityKeyIdentifier }: Certificate, key: IssuingKey | undefined): IssuingKey | undefined {
    if (this.#named === undefined) return key;
    const name = `${formatName(issuer)} ${authorityKeyIdentifier?.toString('hex') ?? ''}`;
    let named = key ?? this.#named.get(name);
    named ??= {
      ...EMPTY,
      subject: formatName(issuer),
      key_sha256: null,
      not_after: null,
      current: false,
      in_the_way: [],
    };
    this.#named.set(name, named);
    return named;
  }
}

const EMPTY = { holders: 0, informed: 0, latest_expiry: null } as const;

function newKey({ subject, spki, notAfter }: Certificate, current: boolean): IssuingKey {
  const key_sha256 = hash('sha256', spki, 'hex');
  return { ...EMPTY, subject: formatName(subject), key_sha256, not_after: notAfter.getTime(), current, in_the_way: [] };
}
