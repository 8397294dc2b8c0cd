/** Calls to what the service depends on, told to whoever measures them; nobody in between has to pass a meter on. */
import { channel, subscribe, unsubscribe } from 'node:diagnostics_channel';

export interface DependencyCall {
  /** `ca`: a signature, whoever makes it; the others are behind a CA or a method of authentication. */
  readonly dependency:
    'ca' | 'hsm' | 'gssapi' | 'ldap' | 'jwks' | 'dogtag' | 'est' | 'acme' | 'command' | 'store_write' | 'store_read';
  /** The label, for `ca`. */
  readonly ca: string;
  /** `refused`: it answered, and said no. */
  readonly outcome: 'ok' | 'refused' | 'failed';
  readonly seconds: number;
}

const NAME = 'estuary:dependency-call';
const calls = channel(NAME);

/** Carries a call out and tells how it went. @param isRefusal whether an error is an answer */
export async function measured<T>(
  { dependency, ca = '' }: { readonly dependency: DependencyCall['dependency']; readonly ca?: string },
  work: () => Promise<T>,
  isRefusal: (error: unknown) => boolean = () => false,
): Promise<T> {
  const start = performance.now();
  const tell = (outcome: DependencyCall['outcome']): void =>
    calls.publish({ dependency, ca, outcome, seconds: (performance.now() - start) / 1000 } satisfies DependencyCall);
  try {
    const result = await work();
    tell('ok');
    return result;
  } catch (error) {
    tell(isRefusal(error) ? 'refused' : 'failed');
    throw error;
  }
}

/** @returns what ends it */
export function onDependencyCall(listener: (call: DependencyCall) => void): () => void {
  // Nobody but `measured` publishes here.
  const onMessage = (message: unknown): void => listener(message as DependencyCall);
  subscribe(NAME, onMessage);
  return () => void unsubscribe(NAME, onMessage);
}
