/** Worker thread: expands an ML-DSA seed to a private key. */
import { parentPort, workerData } from 'node:worker_threads';
import { ml_dsa44, ml_dsa65, ml_dsa87 } from '@noble/post-quantum/ml-dsa.js';
import type { MlDsaSeed } from './ml-dsa-private-key.ts';

const ALGORITHMS = { 'ML-DSA-44': ml_dsa44, 'ML-DSA-65': ml_dsa65, 'ML-DSA-87': ml_dsa87 } as const;

const isSeed = (value: unknown): value is MlDsaSeed =>
  typeof value === 'object' &&
  value !== null &&
  'name' in value &&
  typeof value.name === 'string' &&
  value.name in ALGORITHMS &&
  'seed' in value &&
  value.seed instanceof Uint8Array;

const given: unknown = workerData;
if (!isSeed(given)) throw new TypeError('no seed');
const { secretKey } = ALGORITHMS[given.name].keygen(given.seed);
given.seed.fill(0);
parentPort?.postMessage(secretKey, [secretKey.buffer]);
