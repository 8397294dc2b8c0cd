/**
 * Bundles `estuary client`: `node scripts/lib/client/bundle.ts FILE`, in one file for the single executable, or with
 * `--split` in several, of which a command loads what it needs.
 */
import { join } from 'node:path';
import { build } from 'vite';
import { VERSION } from '../../../src/version.ts';

const [file = '', mode] = process.argv.slice(2);

await build({
  configFile: false,
  logLevel: 'error',
  define: { ESTUARY_VERSION: JSON.stringify(VERSION) },
  ssr: { noExternal: true, external: ['kerberos'] },
  build: {
    ssr: join(import.meta.dirname, 'entry.ts'),
    outDir: join(file, '..'),
    target: 'node26',
    minify: true,
    rolldownOptions: {
      output: {
        format: 'cjs',
        entryFileNames: file.split('/').at(-1) ?? '',
        chunkFileNames: '[name].cjs',
        codeSplitting: mode === '--split',
        banner: (chunk) => (chunk.isEntry && mode === '--split' ? '#!/usr/bin/env node' : ''),
      },
    },
  },
});
