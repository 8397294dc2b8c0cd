/** Messages about finished actions. Screen readers read them, and they disappear after six seconds. */
import { signal } from '@preact/signals';

interface Notice {
  readonly id: number;
  readonly text: string;
}

const notices = signal<readonly Notice[]>([]);
let last = 0;

export function notify(text: string): void {
  const id = ++last;
  notices.value = [...notices.value, { id, text }];
  setTimeout(() => {
    notices.value = notices.value.filter((notice) => notice.id !== id);
  }, 6000);
}

export function Notices() {
  return (
    <div class="notices" role="status" aria-live="polite">
      {notices.value.map(({ id, text }) => (
        <p key={id} class="notice">
          {text}
        </p>
      ))}
    </div>
  );
}
