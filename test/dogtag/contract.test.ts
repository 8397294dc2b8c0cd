/** The driver against the real Dogtag: the cases that the stand-in passes too (test/ca/dogtag/contract.test.ts). */
import { afterAll, beforeAll, describe, test } from 'vitest';
import { CONTRACT_CASES, type ContractTarget } from '../ca/dogtag/contract-cases.ts';
import { AUTO, QUEUE } from '../support/dogtag-profiles.ts';
import { Dogtag, OPEN_TIMEOUT } from '../support/dogtag.ts';
import { requires } from '../support/requires.ts';

const PROFILES = { auto: AUTO, queue: QUEUE } as const;

describe.skipIf(!requires('dogtag'))('the Dogtag driver against the real one', () => {
  let dogtag: Dogtag;
  beforeAll(async () => {
    dogtag = await Dogtag.open();
  }, OPEN_TIMEOUT);
  afterAll(() => dogtag.close());

  const target: ContractTarget = {
    settings: (profile) => dogtag.settings(profile === 'auto' || profile === 'queue' ? PROFILES[profile].id : profile),
    profileId: (profile) => PROFILES[profile].id,
    decide: (decision, id) => dogtag.decide(decision, id),
    request: (method, path, body) => dogtag.request(method, path, body),
    certificateStatus: (serial) => dogtag.certificateStatus(serial),
  };

  test.each(CONTRACT_CASES)('$name', ({ run }) => run(target));
});
