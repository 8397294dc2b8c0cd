/** Events of the server, for open pages. */
import { useEffect, useRef } from 'preact/hooks';
import { signal } from '@preact/signals';

type Listener = (type: string) => void;
const listeners = new Set<Listener>();

/** Whether the event stream is connected. */
export const isLive = signal(false);

/** Passes a server event to the open pages. */
export function publish(type: string): void {
  for (const listener of listeners) listener(type);
}

/** Calls back once after events of these types. It waits 400 ms for further events. A type may end in `*`. */
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
