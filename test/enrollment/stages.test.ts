/** Leaving a stage out, or making one by hand, does not compile: these are checked with the types of everything else. */
import { describe, expectTypeOf, test } from 'vitest';
import { Allowed } from '../../src/enrollment/allowed.ts';
import { Admitted } from '../../src/enrollment/admitted.ts';
import type { Authenticated } from '../../src/enrollment/authenticated.ts';
import { Authorized } from '../../src/enrollment/authorized.ts';
import { Checked } from '../../src/enrollment/checked.ts';
import { Recorded, Reserved, Signed } from '../../src/enrollment/issue.ts';
import { Keyed } from '../../src/enrollment/keyed.ts';
import type { Proven } from '../../src/enrollment/proven.ts';
import { Queued } from '../../src/enrollment/queue.ts';
import { Submitted } from '../../src/enrollment/submitted.ts';

/** What a way to the next stage takes first. */
type Takes<F extends (...all: never[]) => unknown> = Parameters<F>[0];
/** All of a stage that can be seen, put together by hand. */
type Copy<T> = { [K in keyof T]: T[K] };

describe('a stage takes the one before', () => {
  test('the device check requires an authenticated requester', () => {
    expectTypeOf<Takes<typeof Admitted.of>>().toEqualTypeOf<Authenticated>();
    expectTypeOf<Authenticated>().not.toExtend<Takes<typeof Authorized.of>>();
  });

  test('names are decided for an admitted requester with a proven request', () => {
    expectTypeOf<Takes<typeof Authorized.of>>().toEqualTypeOf<Admitted>();
    expectTypeOf<Parameters<typeof Authorized.of>[1]>().toEqualTypeOf<Proven>();
  });

  test('keys are certified of what is authorized', () => {
    expectTypeOf<Takes<typeof Keyed.own>>().toEqualTypeOf<Authorized>();
    expectTypeOf<Takes<typeof Keyed.generated>>().toEqualTypeOf<Authorized>();
    expectTypeOf<Authenticated>().not.toExtend<Takes<typeof Keyed.own>>();
  });

  test('what is queued or reserved was checked, and allowed', () => {
    expectTypeOf<Takes<typeof Checked.of>>().toEqualTypeOf<Keyed>();
    expectTypeOf<Authorized>().not.toExtend<Takes<typeof Checked.of>>();
    expectTypeOf<Takes<typeof Allowed.of>>().toEqualTypeOf<Checked>();
    expectTypeOf<Keyed>().not.toExtend<Takes<typeof Allowed.of>>();
    expectTypeOf<Takes<typeof Queued.of>>().toEqualTypeOf<Allowed>();
    expectTypeOf<Takes<typeof Reserved.of>>().toEqualTypeOf<Allowed>();
    expectTypeOf<Takes<typeof Submitted.of>>().toEqualTypeOf<Allowed>();
    expectTypeOf<Checked>().not.toExtend<Takes<typeof Reserved.of>>();
    expectTypeOf<Checked>().not.toExtend<Takes<typeof Queued.of>>();
    expectTypeOf<Keyed>().not.toExtend<Takes<typeof Reserved.of>>();
  });

  test('what is signed was reserved, what is recorded was signed', () => {
    expectTypeOf<Takes<typeof Signed.of>>().toEqualTypeOf<Reserved>();
    expectTypeOf<Checked>().not.toExtend<Takes<typeof Signed.of>>();
    expectTypeOf<Takes<typeof Recorded.of>>().toEqualTypeOf<Signed>();
    expectTypeOf<Reserved>().not.toExtend<Takes<typeof Recorded.of>>();
  });
});

test('no stage can be put together by hand', () => {
  expectTypeOf<Copy<Authenticated>>().not.toExtend<Authenticated>();
  expectTypeOf<Copy<Admitted>>().not.toExtend<Admitted>();
  expectTypeOf<Copy<Proven>>().not.toExtend<Proven>();
  expectTypeOf<Copy<Authorized>>().not.toExtend<Authorized>();
  expectTypeOf<Copy<Keyed>>().not.toExtend<Keyed>();
  expectTypeOf<Copy<Checked>>().not.toExtend<Checked>();
  expectTypeOf<Copy<Allowed>>().not.toExtend<Allowed>();
  expectTypeOf<Copy<Queued>>().not.toExtend<Queued>();
  expectTypeOf<Copy<Reserved>>().not.toExtend<Reserved>();
  expectTypeOf<Copy<Submitted>>().not.toExtend<Submitted>();
  expectTypeOf<Copy<Signed>>().not.toExtend<Signed>();
  expectTypeOf<Copy<Recorded>>().not.toExtend<Recorded>();
});

/** Any class that can be made with `new`. */
type Constructor = abstract new (...all: never[]) => unknown;

test('no stage can be made outside of its file', () => {
  expectTypeOf<typeof Authenticated>().not.toExtend<Constructor>();
  expectTypeOf<typeof Admitted>().not.toExtend<Constructor>();
  expectTypeOf<typeof Proven>().not.toExtend<Constructor>();
  expectTypeOf<typeof Authorized>().not.toExtend<Constructor>();
  expectTypeOf<typeof Keyed>().not.toExtend<Constructor>();
  expectTypeOf<typeof Checked>().not.toExtend<Constructor>();
  expectTypeOf<typeof Allowed>().not.toExtend<Constructor>();
  expectTypeOf<typeof Queued>().not.toExtend<Constructor>();
  expectTypeOf<typeof Reserved>().not.toExtend<Constructor>();
  expectTypeOf<typeof Submitted>().not.toExtend<Constructor>();
  expectTypeOf<typeof Signed>().not.toExtend<Constructor>();
  expectTypeOf<typeof Recorded>().not.toExtend<Constructor>();
});
