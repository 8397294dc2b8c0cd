import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { defineConfig, type Plugin } from 'vite';

const OUT = new URL('../dist/console/', import.meta.url);

/** Writes compressed forms next to each script and style sheet: the server does not compress. */
const compressed: Plugin = {
  name: 'compressed',
  apply: 'build',
  closeBundle() {
    const assets = new URL('assets/', OUT);
    for (const name of readdirSync(assets).filter((one) => /\.(?:js|css|svg)$/.test(one))) {
      const bytes = readFileSync(new URL(name, assets));
      writeFileSync(new URL(`${name}.br`, assets), brotliCompressSync(bytes));
      writeFileSync(new URL(`${name}.gz`, assets), gzipSync(bytes, { level: 9 }));
    }
  },
};

export default defineConfig({
  root: import.meta.dirname,
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  plugins: [compressed],
  build: {
    outDir: OUT.pathname,
    emptyOutDir: true,
    target: 'es2022',
    cssCodeSplit: false,
    // No `data:` in what is built: the server's content security policy refuses it.
    assetsInlineLimit: 0,
    modulePreload: false,
  },
});
