/** Bundles the single executable's program into one file: `node scripts/lib/sea/bundle.ts FILE`. */
import { join } from 'node:path';
import { build } from 'vite';
import { VERSION } from '../../../src/version.ts';

const [file = ''] = process.argv.slice(2);

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
    rolldownOptions: { output: { format: 'cjs', entryFileNames: file.split('/').at(-1) ?? '', codeSplitting: false } },
  },
});
