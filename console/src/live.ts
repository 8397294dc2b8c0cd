/** Receives server-sent events while a user with a role for them is signed in. */
import { effect } from '@preact/signals';
import { whenUnreachable } from './api/client.ts';
import { caller, findSession, may } from './shared/session.ts';
import { isLive, publish } from './ui/events.ts';

/** Milliseconds before a closed stream is opened again. */
const AGAIN = 30_000;
/** Milliseconds of silence after which the server counts as unreachable. It sends a message every 15 seconds. */
const SILENCE = 40_000;

function listen(): () => void {
  const source = new EventSource('/admin/events');
  let close = (): void => undefined;
  let again: ReturnType<typeof setTimeout> | undefined;
  let silence: ReturnType<typeof setTimeout> | undefined;
  // A stream that is open may go on without the network for a while.
  const offline = () => {
    isLive.value = false;
    clearTimeout(silence);
    source.close();
  };
  const online = () => open(0);
  addEventListener('offline', offline);
  addEventListener('online', online);
  const end = () => {
    removeEventListener('offline', offline);
    removeEventListener('online', online);
    clearTimeout(silence);
    source.close();
  };
  const open = (wait: number) => {
    end();
    again ??= setTimeout(() => {
      close = listen();
      void findSession();
    }, wait);
  };
  const heard = () => {
    isLive.value = true;
    clearTimeout(silence);
    silence = setTimeout(() => {
      isLive.value = false;
      open(0);
    }, SILENCE);
  };
  source.onopen = heard;
  source.addEventListener('alive', heard);
  source.addEventListener('audit', ({ data }: MessageEvent<unknown>) => {
    heard();
    const record: unknown = typeof data === 'string' ? JSON.parse(data) : undefined;
    if (typeof record === 'object' && record !== null && 'type' in record && typeof record.type === 'string')
      publish(record.type);
  });
  source.onerror = () => {
    isLive.value = false;
    clearTimeout(silence);
    // The browser reconnects automatically unless the response forbids it: then the session may have ended.
    if (source.readyState === EventSource.CLOSED) open(AGAIN);
  };
  return () => {
    clearTimeout(again);
    end();
    close();
    isLive.value = false;
  };
}

/** Starts once, when the console loads. */
export function keepLive(): void {
  effect(() => (caller.value.state === 'in' && may('ra', 'auditor', 'operator') ? listen() : undefined));
  whenUnreachable(() => {
    isLive.value = false;
  });
}
