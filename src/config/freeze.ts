import { Secret } from './secret.ts';

/** Freezes a value of plain objects and lists, and all that is in it. Secrets have nothing to change. */
export function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !(value instanceof Secret) && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const inner of Object.values(value)) deepFreeze(inner);
  }
  return value;
}
