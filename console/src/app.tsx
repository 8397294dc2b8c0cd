import { useEffect } from 'preact/hooks';
import { Keys, keysOpen } from './keys.tsx';
import { PLACES, type Place } from './pages/places.tsx';
import { shortcuts, theme, type Theme } from './shared/preferences.ts';
import { link, route } from './shared/router.ts';
import type { Session } from './api/types.ts';
import { caller, findSession, may, METHODS, rolesInWords, signOut } from './shared/session.ts';
import { SignIn } from './sign-in.tsx';
import { Find } from './pages/find.tsx';
import { isLive } from './ui/events.ts';
import { FindField } from './ui/find-field.tsx';
import { Mark } from './ui/mark.tsx';
import { NotForRole } from './ui/not-for-role.tsx';
import { Notices } from './ui/notices.tsx';
import { Settings, settingsOpen } from './ui/settings.tsx';
import { Empty, Loading, Problem } from './ui/states.tsx';
import { Switch } from './ui/switch.tsx';

export function App() {
  const now = caller.value;
  switch (now.state) {
    case 'asking':
      return (
        <main class="alone">
          <Loading lines={3} />
        </main>
      );
    case 'failed':
      return (
        <main class="alone">
          <Problem error={now.error} again={() => void findSession()} />
        </main>
      );
    case 'out':
      return <SignIn ended={now.ended} certificate={now.certificate} />;
    case 'in':
      return <Shell session={now.session} />;
  }
}

const placeOf = (path: readonly string[]): Place | undefined => PLACES.find((place) => place.path === (path[0] ?? ''));

function Shell({ session }: { readonly session: Session }) {
  const { path } = route.value;
  const place = placeOf(path);
  const where = path.join('/');
  useEffect(() => {
    document.title = `${place?.title ?? (path[0] === 'find' ? 'Find' : 'Not found')}${path[1] === undefined ? '' : ` · ${path[1]}`} – Estuary`;
    document.querySelector<HTMLElement>('main h1')?.focus({ preventScroll: true });
    scrollTo(0, 0);
    const menu = document.querySelector<HTMLInputElement>('#menu');
    if (menu !== null) menu.checked = false;
  }, [where]);
  return (
    <>
      <a class="skip" href="#main" onClick={skip}>
        Skip to the content
      </a>
      <div class="shell">
        <header class="bar">
          <a class="brand" href={link([])}>
            <Mark />
            Estuary
          </a>
          <input type="checkbox" id="menu" class="visually-hidden" aria-label="Menu" />
          <label for="menu" class="menu" aria-hidden="true">
            ☰
          </label>
          {may('ra', 'auditor') && <FindField />}
          <nav aria-label="Pages">
            <ul>
              {PLACES.filter((place) => may(...place.roles)).map((item) => (
                <li key={item.path}>
                  <a
                    href={link(item.path === '' ? [] : [item.path])}
                    {...(item === place ? { 'aria-current': 'page' as const } : {})}
                  >
                    {item.title}
                    {shortcuts.value === 'on' && <kbd aria-hidden="true">g {item.key}</kbd>}
                  </a>
                </li>
              ))}
            </ul>
          </nav>
          <div class="me">
            <p title={session.subject}>
              <strong>{session.name ?? session.subject}</strong>
              <span class="fine">{rolesInWords(session)}</span>
              <span class="fine">Signed in with {METHODS[session.method]}</span>
            </p>
            <Switch name="theme" legend="Colors" of={THEMES} value={theme} />
            <div class="me-actions">
              <button type="button" class="quiet" onClick={() => (keysOpen.value = true)}>
                Keys
              </button>
              <button type="button" class="quiet" onClick={() => (settingsOpen.value = true)}>
                Settings
              </button>
              <button type="button" class="quiet" onClick={() => void signOut()}>
                Sign out
              </button>
            </div>
            <p class={isLive.value ? 'fine live on' : 'fine live'}>{isLive.value ? 'Live' : 'Not connected'}</p>
          </div>
        </header>
        <main id="main" tabIndex={-1}>
          <Content place={place} path={path} />
        </main>
      </div>
      <Keys />
      <Settings />
      <Notices />
    </>
  );
}

/** Moves the focus without changing the fragment, which is the route. */
function skip(event: Event): void {
  event.preventDefault();
  document.querySelector<HTMLElement>('#main')?.focus();
}

function Content({ place, path }: { readonly place: Place | undefined; readonly path: readonly string[] }) {
  if (path[0] === 'find')
    return may('ra', 'auditor') ? <Find /> : <NotForRole title="Find anything" roles={['ra', 'auditor']} />;
  if (place === undefined)
    return (
      <>
        <h1 tabIndex={-1}>Not found</h1>
        <Empty title="This page does not exist">
          <a href={link([])}>Open the overview</a>
        </Empty>
      </>
    );
  if (!may(...place.roles)) return <NotForRole title={place.title} roles={place.roles} />;
  const Page = place.page;
  return <Page key={place.path} id={path[1]} />;
}

const THEMES: readonly (readonly [Theme, string])[] = [
  ['auto', 'Auto'],
  ['light', 'Light'],
  ['dark', 'Dark'],
];
