/** Attacks through the console by a device, another site or a lesser role. */
import { createServer, type Server } from 'node:http';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { utf8String, sequence, setOf, oid } from '../../src/pki/der/der.ts';
import { buildCsr, extensionRequest, onTheWire, san, uri } from '../support/csr.ts';
import { itemsOf } from '../support/estuary.ts';
import { requires } from '../support/requires.ts';
import { consoleUrl, startBrowser, Window } from './browser.ts';
import { firstItem, makeWorld, type OneRole, type World } from './world.ts';

const COOKIE = '__Host-estuary-session';

/** Each runs `window.xss = 1` where it is read as HTML, as a link or in an attribute. */
const PAYLOADS: readonly (readonly [name: string, text: string])[] = [
  ['an image that fails', '<img src=x onerror=window.xss=1>'],
  ['a script', '</td></dd><script>window.xss=1</script>'],
  ['an attribute that ends', '" onmouseover=window.xss=1 autofocus onfocus=window.xss=1 x="'],
  ['a drawing', '<svg/onload=window.xss=1>'],
  ['a link', 'javascript:window.xss=1'],
  ['a template', '{{constructor.constructor("window.xss=1")()}}${window.xss=1}'],
  ['a frame', '<iframe srcdoc="<script>parent.xss=1</script>">'],
];

const text = (value: string): Buffer => utf8String(value);

describe.skipIf(!requires('chromium'))('attacks', () => {
  let world: World;
  let browser: Browser;
  beforeAll(async () => {
    world = await makeWorld();
    browser = await startBrowser();
  });
  afterAll(async () => {
    await browser.close();
    await world.estuary.stop();
  });

  const signedIn = async (token: string): Promise<Window> => {
    const window = await Window.open(browser, world.estuary);
    await window.signIn(token);
    return window;
  };

  /** In every field of a device's that the server takes it in. */
  async function plant(payload: string): Promise<void> {
    const { estuary, key } = world;
    const { token } = await estuary.otp({ client_id: payload });
    const subject = sequence(
      setOf(sequence(oid('2.5.4.3'), text(payload.slice(0, 64)))),
      setOf(sequence(oid('2.5.4.10'), text(payload.slice(0, 64)))),
    );
    const address = `https://example.com/${encodeURI(payload).replaceAll("'", '%27')}`;
    const csr = buildCsr(key, { subject, attributes: [extensionRequest(san(uri(address)))] });
    await estuary.enroll(onTheWire(csr), { password: token });
    const second = await estuary.otp({ client_id: payload });
    await estuary.enroll(onTheWire(csr), { password: second.token, path: 'lab/simpleenroll' });
    await estuary.admin('POST', '/admin/devices', {
      id: payload,
      note: payload,
      attributes: { a: payload },
      match: { issuer_spki_sha256: 'ab'.repeat(32), common_name: payload },
    });
    const basic = Buffer.from(`${payload}:wrong`).toString('base64');
    for (let attempt = 0; attempt < 6; attempt++)
      await estuary.enroll(onTheWire(csr), { headers: { Authorization: `Basic ${basic}` } });
    const request = await firstItem(world, `/admin/requests?status=pending&requester=${encodeURIComponent(payload)}`);
    await estuary.admin('POST', `/admin/requests/${request('id')}/reject`, { reason: payload });
  }

  describe('stored XSS', () => {
    let window: Window;
    beforeAll(async () => {
      for (const [, payload] of PAYLOADS) await plant(payload);
      window = await signedIn(world.tokens.admin);
    });
    afterAll(async () => {
      expect(window.problems).toEqual([]);
      await window.close();
    });

    /** Shows a page, and proves that nothing on it ran or is an element. @returns its text */
    async function shown(hash: string): Promise<string> {
      await window.go(hash);
      await window.page.evaluate(
        "for (const one of document.querySelectorAll('main *')) one.dispatchEvent(new MouseEvent('mouseover'))",
      );
      const links = await window.page.locator('a[href^="javascript:" i]').count();
      expect([await window.page.evaluate('window.xss'), links], hash).toEqual([undefined, 0]);
      expect(await window.page.locator('main :is(script, iframe, img)').count(), hash).toBe(0);
      return window.page.locator('main').innerText();
    }

    test('is shown as the text that it is, in every list', async () => {
      for (const hash of ['tokens', 'certificates', 'requests', 'devices', 'lockouts', 'audit']) {
        // In a subject, RFC 4514 §2.4 escapes some characters.
        const list = (await shown(hash)).replaceAll('\\', '');
        // The newest records are those of the last. A user name of HTTP Basic ends at a colon.
        const payloads = PAYLOADS.map(([, payload]) => (hash === 'lockouts' ? (payload.split(':')[0] ?? '') : payload));
        const wanted = hash === 'audit' ? payloads.slice(-1) : payloads;
        expect(
          wanted.filter((payload) => list.includes(payload.slice(0, 20))),
          hash,
        ).toEqual(wanted);
      }
    });

    test.each(PAYLOADS)('%s is shown as the text that it is, on the pages about it', async (_name, payload) => {
      const certificate = await firstItem(world, `/admin/certificates?requester=${encodeURIComponent(payload)}`);
      const request = await firstItem(world, `/admin/requests?requester=${encodeURIComponent(payload)}`);
      const record = await firstItem(world, `/admin/audit?type=request.rejected&request_id=${request('id')}`);
      const pages = [
        `certificates/${certificate('serial')}?ca=${certificate('ca')}`,
        `certificates?subject=${encodeURIComponent(payload)}`,
        `requests/${request('id')}`,
        `devices/id/${encodeURIComponent(payload)}`,
        `audit/${record('seq')}`,
        encodeURIComponent(payload),
      ];
      let seen = 0;
      for (const hash of pages) if ((await shown(hash)).includes(payload.slice(0, 20))) seen += 1;
      expect(seen, 'pages that show it').toBeGreaterThan(3);
    });
  });

  describe('another site', () => {
    let site: Server;
    let page = '<!doctype html><title>elsewhere</title>';
    let address = '';
    beforeAll(async () => {
      site = createServer((_request, response) => response.setHeader('content-type', 'text/html').end(page));
      await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve));
      const bound = site.address();
      if (bound === null || typeof bound === 'string') throw new Error('no port');
      address = `http://localhost:${bound.port}`;
    });
    afterAll(() => void site.close());

    test.each([
      [
        'a form',
        (url: string) =>
          `<form method=post action="${url}/admin/otp" enctype=text/plain><input name='{"client_id":"csrf","x":"' value='"}'></form><script>document.forms[0].submit()</script>`,
      ],
      [
        'a script',
        (url: string) =>
          `<script>fetch('${url}/admin/otp',{method:'POST',mode:'no-cors',credentials:'include',body:'{"client_id":"csrf"}',headers:{'content-type':'text/plain'}}).finally(()=>document.title='done')</script>`,
      ],
      [
        'a body without a type',
        (url: string) =>
          `<script>fetch('${url}/admin/session',{method:'DELETE',mode:'no-cors',credentials:'include'}).finally(()=>document.title='done')</script>`,
      ],
      [
        'a link that reads',
        (url: string) =>
          `<script>fetch('${url}/admin/certificates',{credentials:'include'}).then(a=>a.text()).then(t=>document.title='read '+t,()=>document.title='done')</script>`,
      ],
    ])('CSRF: %s changes and learns nothing, and the session goes on', async (_how, html) => {
      const window = await signedIn(world.tokens.admin);
      page = `<!doctype html><title>elsewhere</title>${html(consoleUrl(world.estuary))}`;
      const other = await window.context.newPage();
      await other.goto(address);
      // A script ends with another title, and the form's answer has none.
      await expect.poll(() => other.title()).not.toBe('elsewhere');
      expect(await other.title()).not.toContain('read');
      expect(itemsOf((await world.estuary.admin('GET', '/admin/otp?client_id=csrf')).json)).toEqual([]);
      expect((await window.fetch('/admin/session')).status).toBe(200);
      await window.close();
    });

    test('clickjacking: the console stands in no frame', async () => {
      const window = await signedIn(world.tokens.admin);
      page = `<!doctype html><title>elsewhere</title><iframe src="${consoleUrl(world.estuary)}/"></iframe>`;
      const other = await window.context.newPage();
      await other.goto(address);
      await other.waitForLoadState('networkidle');
      const inside = other.frames().filter((frame) => frame !== other.mainFrame());
      for (const frame of inside) expect(await frame.locator('#app').count()).toBe(0);
      await window.close();
    });

    test('a page that opens the console has no hold of it', async () => {
      const window = await signedIn(world.tokens.admin);
      page = `<!doctype html><title>elsewhere</title><script>window.opened=window.open('${consoleUrl(world.estuary)}/')</script>`;
      const other = await window.context.newPage();
      const opened = window.context.waitForEvent('page');
      await other.goto(address);
      await (await opened).waitForLoadState();
      expect(await (await opened).evaluate('window.opener')).toBeNull();
      await window.close();
    });
  });

  test('the session is a cookie that no script reads, and nothing of the token stays in the browser', async () => {
    const window = await signedIn(world.tokens.ra);
    const [cookie, ...more] = await window.context.cookies();
    expect(more).toEqual([]);
    expect(cookie).toMatchObject({ name: COOKIE, httpOnly: true, secure: true, sameSite: 'Strict', path: '/' });
    const kept = await window.page.evaluate<string>(
      'JSON.stringify([document.cookie, { ...localStorage }, { ...sessionStorage }, document.documentElement.outerHTML, history.state])',
    );
    expect(kept).not.toContain(world.tokens.ra);
    expect(kept).not.toContain(cookie?.value);
    await window.close();
  });

  test('session fixation: a cookie from before is worth nothing after signing in', async () => {
    const thief = await signedIn(world.tokens.operator);
    const [planted] = await thief.context.cookies();
    const victim = await Window.open(browser, world.estuary);
    for (const value of [planted?.value ?? '', 'A'.repeat(43)]) {
      await victim.context.clearCookies();
      await victim.context.addCookies([
        { name: COOKIE, value, url: consoleUrl(world.estuary), secure: true, httpOnly: true },
      ]);
      await victim.page.goto('/');
      const headers = { Authorization: `Bearer ${world.tokens.admin}` };
      const answer = await victim.fetch('/admin/session', { method: 'POST', headers });
      expect(answer.status).toBe(201);
      const [fresh] = await victim.context.cookies();
      expect(fresh?.value).not.toBe(value);
    }
    expect((await thief.fetch('/admin/session')).text).not.toContain('quickstart');
    await thief.close();
    await victim.close();
  });

  test('signing out kills the session, wherever its cookie is', async () => {
    const window = await signedIn(world.tokens.ra);
    const copy = await window.context.cookies();
    await window.page.getByRole('button', { name: 'Sign out' }).click();
    await window.page.getByLabel('Administrator’s token').waitFor();
    const thief = await Window.open(browser, world.estuary);
    await thief.context.addCookies(copy);
    await thief.page.goto('/');
    expect((await thief.fetch('/admin/session')).status).toBe(401);
    await window.close();
    await thief.close();
  });

  const windows = new Map<string, Promise<Window>>();
  const ofRole = (role: OneRole | 'nobody'): Promise<Window> => {
    const window = windows.get(role) ?? signedIn(world.tokens[role]);
    windows.set(role, window);
    return window;
  };

  test.each([
    ['auditor', '/admin/otp', 'POST', { client_id: 'x' }],
    ['auditor', '/admin/otp', 'GET', undefined],
    ['ra', '/admin/audit', 'GET', undefined],
    ['ra', '/admin/reload', 'POST', undefined],
    ['operator', '/admin/certificates', 'GET', undefined],
    ['operator', '/admin/requests', 'GET', undefined],
    ['nobody', '/admin/cas', 'GET', undefined],
  ] as const)('role bypass: the session of %s may not ask %s (%s)', async (role, path, method, body) => {
    const window = await ofRole(role);
    const answer = await window.fetch(path, {
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    });
    expect([answer.status, answer.text]).toEqual([403, expect.stringContaining('ROLE_MISSING')]);
  });

  test('Trusted Types: text never becomes HTML or a script', async () => {
    const window = await signedIn(world.tokens.ra);
    for (const sink of [
      "document.body.innerHTML = '<b>x</b>'",
      "eval('1')",
      "document.body.append(Object.assign(document.createElement('script'), { text: 'window.xss = 1' }))",
    ])
      expect(
        await window.page.evaluate(
          `(() => { try { ${sink}; return window.xss === undefined ? 'nothing' : 'ran'; } catch (error) { return error.name; } })()`,
        ),
        sink,
      ).not.toBe('ran');
    expect(
      await window.page.evaluate(
        "(() => { try { document.body.innerHTML = '<b>x</b>'; return 'taken'; } catch (error) { return error.name; } })()",
      ),
    ).toBe('TypeError');
    await window.close();
  });
});
