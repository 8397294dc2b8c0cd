/** Server-sent events, while somebody is signed in who may have them. */
import { effect } from '@preact/signals';
import { caller, findSession, may } from './session.ts';
import { isLive, tell } from './ui/events.ts';

/** Milliseconds before a stream that has ended for good is asked for again. */
const AGAIN = 30_000;

function listen(): () => void {
  const source = new EventSource('/admin/events');
  let timer: ReturnType<typeof setTimeout> | undefined;
  let close = () => source.close();
  source.onopen = () => {
    isLive.value = true;
  };
  source.addEventListener('audit', ({ data }: MessageEvent<unknown>) => {
    const record: unknown = typeof data === 'string' ? JSON.parse(data) : undefined;
    if (typeof record === 'object' && record !== null && 'type' in record && typeof record.type === 'string')
      tell(record.type);
  });
  source.onerror = () => {
    isLive.value = false;
    // The browser reconnects automatically unless the response forbids it: then the session may have ended.
    if (source.readyState !== EventSource.CLOSED || timer !== undefined) return;
    timer = setTimeout(() => {
      close = listen();
      void findSession();
    }, AGAIN);
  };
  return () => {
    clearTimeout(timer);
    close();
    isLive.value = false;
  };
}

/** From now on. */
export function keepLive(): void {
  effect(() => (caller.value.state === 'in' && may('ra', 'auditor', 'operator') ? listen() : undefined));
}
