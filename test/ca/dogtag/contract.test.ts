import { afterAll, beforeAll, describe, test } from 'vitest';
import { DogtagStandIn } from '../../support/dogtag-stand-in/index.ts';
import { CONTRACT_CASES, type ContractTarget } from './contract-cases.ts';

let standIn: DogtagStandIn;
beforeAll(async () => {
  standIn = await DogtagStandIn.start();
});
afterAll(() => standIn.stop());

const IDS = { auto: 'estuaryAuto', queue: 'estuaryQueue' } as const;

const target: ContractTarget = {
  settings: (profile) =>
    standIn.settings({ profile: profile === 'auto' || profile === 'queue' ? IDS[profile] : profile }),
  profileId: (profile) => IDS[profile],
  decide: (decision, id) => standIn.decide(decision, id),
  request: (method, path, body) => standIn.request(method, path, body),
  certificateStatus: async (serial) => {
    const { text } = await standIn.request('GET', `/ca/rest/certs/0x${serial}`);
    return /"Status":"(\w+)"/.exec(text)?.[1] ?? text;
  },
};

describe('the Dogtag driver against the stand-in: the cases that the real one passes too', () => {
  for (const { name, run } of CONTRACT_CASES) test(name, () => run(target));
});
