/** Loads data of the API for a page, and reloads it on demand. */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { call, toApiError, type ApiError, type Query } from '../api/client.ts';
import { useEvents } from './events.ts';

export type Loaded<T> =
  | { readonly state: 'loading' }
  | { readonly state: 'failed'; readonly error: ApiError }
  | { readonly state: 'ready'; readonly value: T };

interface Loading<T> {
  readonly loaded: Loaded<T>;
  readonly again: () => void;
}

/**
 * Loads once per key, and again when `again` is called. The old value stays until the new one is there.
 *
 * @param key Identifies the data. A new key starts a new load.
 */
export function useLoad<T>(key: string, ask: (signal: AbortSignal) => Promise<T>): Loading<T> {
  const [shown, setShown] = useState<{ readonly key: string; readonly loaded: Loaded<T> }>();
  const [round, setRound] = useState(0);
  const asking = useRef(ask);
  asking.current = ask;
  useEffect(() => {
    const abort = new AbortController();
    asking.current(abort.signal).then(
      (value) => {
        if (!abort.signal.aborted) setShown({ key, loaded: { state: 'ready', value } });
      },
      (error: unknown) => {
        if (!abort.signal.aborted) setShown({ key, loaded: { state: 'failed', error: toApiError(error) } });
      },
    );
    return () => abort.abort();
  }, [key, round]);
  const again = useCallback(() => setRound((n) => n + 1), []);
  return { loaded: shown?.key === key ? shown.loaded : { state: 'loading' }, again };
}

/** Loads what the API has at a path, and again after events of these types. */
export function useRecord<T>(path: string, events: readonly string[], query: Query = {}): Loading<T> {
  const loading = useLoad(JSON.stringify([path, query]), (signal) => call<T>(path, { query, signal }));
  useEvents(events, loading.again);
  return loading;
}
