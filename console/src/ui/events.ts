/** What happens on the server while a page is open. */
import { useEffect, useRef } from 'preact/hooks';
import { signal } from '@preact/signals';

type Listener = (type: string) => void;
const listeners = new Set<Listener>();

/** Whether the event stream is connected. */
export const isLive = signal(false);

/** Receives each server event, by type. */
export function tell(type: string): void {
  for (const listener of listeners) listener(type);
}

/** Calls back, soon after and once for many, when events of these types came; a type may end in `*`. */
export function useEvents(types: readonly string[], changed: () => void): void {
  const latest = useRef(changed);
  latest.current = changed;
  const wanted = types.join(' ');
  useEffect(() => {
    if (wanted === '') return undefined;
    const names = wanted.split(' ');
    let timer: ReturnType<typeof setTimeout> | undefined;
    const listener: Listener = (type) => {
      if (!names.some((name) => (name.endsWith('*') ? type.startsWith(name.slice(0, -1)) : type === name))) return;
      timer ??= setTimeout(() => {
        timer = undefined;
        latest.current();
      }, 400);
    };
    listeners.add(listener);
    return () => {
      listeners.delete(listener);
      clearTimeout(timer);
    };
  }, [wanted]);
}
