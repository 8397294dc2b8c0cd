/** Publishes calls to external dependencies for the metrics, so that no layer in between passes a meter on. */
import { channel, subscribe, unsubscribe } from 'node:diagnostics_channel';

export interface DependencyCall {
  /** `ca`: a signature by any driver; what a driver depends on; `gssapi`, `ldap`, `store_write` … */
  readonly dependency: string;
  /** The label, for `ca`. */
  readonly ca: string;
  /** `refused`: the dependency answered with a rejection. */
  readonly outcome: 'ok' | 'refused' | 'failed';
  readonly seconds: number;
}

const NAME = 'estuary:dependency-call';
const calls = channel(NAME);

interface Dependency {
  readonly dependency: DependencyCall['dependency'];
  readonly ca?: string;
}

/** Measures a call from now on. @returns publishes its outcome */
function meter({ dependency, ca = '' }: Dependency): (outcome: DependencyCall['outcome']) => void {
  const start = performance.now();
  return (outcome) =>
    calls.publish({ dependency, ca, outcome, seconds: (performance.now() - start) / 1000 } satisfies DependencyCall);
}

/** Makes a call and publishes its outcome. @param isRefusal whether an error is an answer */
export async function measured<T>(
  dependency: Dependency,
  work: () => Promise<T>,
  isRefusal: (error: unknown) => boolean = () => false,
): Promise<T> {
  const tell = meter(dependency);
  try {
    const result = await work();
    tell('ok');
    return result;
  } catch (error) {
    tell(isRefusal(error) ? 'refused' : 'failed');
    throw error;
  }
}

/** {@link measured} for a call that answers at once. */
export function measuredAtOnce<T>(dependency: Dependency, work: () => T, isRefusal: (error: unknown) => boolean): T {
  const tell = meter(dependency);
  try {
    const result = work();
    tell('ok');
    return result;
  } catch (error) {
    tell(isRefusal(error) ? 'refused' : 'failed');
    throw error;
  }
}

/** @returns a function that unsubscribes */
export function onDependencyCall(listener: (call: DependencyCall) => void): () => void {
  // Only `measured` publishes here.
  const onMessage = (message: unknown): void => listener(message as DependencyCall);
  subscribe(NAME, onMessage);
  return () => void unsubscribe(NAME, onMessage);
}
