import { render } from 'preact';
import './style.css';
import './shared/preferences.ts';
import { App } from './app.tsx';
import { keepLive } from './live.ts';
import { keepService } from './shared/service.ts';
import { findSession } from './shared/session.ts';

const root = document.querySelector('#app');
if (root !== null) render(<App />, root);
keepLive();
keepService();
void findSession();
