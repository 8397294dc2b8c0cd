/**
 * Builds the server: `node scripts/lib/bundle-server.ts` writes `dist/`. A program is one file, with the code and packages that it always
 * needs, because a start would otherwise load 1,800 small modules. What it imports on use, and what programs share, are further files.
 * Packages with native code stay outside. With a FOLDER, it writes there what starts as a process or thread, and not the server.
 */
import { copyFileSync, globSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'vite';

const ROOT = join(import.meta.dirname, '../..');
const SRC = join(ROOT, 'src');
const NATIVE = ['argon2', 'bcrypt', 'better-sqlite3', 'graphene-pk11', 'kerberos'];

const [folder] = process.argv.slice(2);
const OUT = join(ROOT, folder ?? 'dist');
/** What starts as a process or thread (`startedModule()`). */
const STARTED = globSync('**/{*-child,*-watch,ml-dsa-expansion,thread}.ts', { cwd: SRC });
const ENTRIES = [...(folder === undefined ? ['server.ts'] : []), ...STARTED];

await build({
  root: ROOT,
  configFile: false,
  logLevel: 'warn',
  ssr: { noExternal: true, external: NATIVE },
  build: {
    ssr: true,
    outDir: OUT,
    emptyOutDir: true,
    target: 'es2022',
    sourcemap: true,
    minify: false,
    rolldownOptions: {
      input: Object.fromEntries(ENTRIES.map((file) => [file.replace(/\.ts$/, ''), join(SRC, file)])),
      preserveEntrySignatures: 'allow-extension',
      output: {
        sourcemapExcludeSources: true,
        entryFileNames: '[name].js',
        chunkFileNames: '[name].js',
      },
    },
  },
});

const ACCEPTOR = 'auth/gssapi/acceptor-krb5.conf';
copyFileSync(join(SRC, ACCEPTOR), join(OUT, ACCEPTOR));
