/**
 * Builds the server: `node scripts/lib/bundle-server.ts` writes `dist/`. Each file of `src/` becomes a file of the same path. Each package becomes one
 * file in `dist/packages/`: a start loads these instead of a thousand small modules, which halves its CPU time. Packages with native code stay outside.
 */
import { globSync } from 'node:fs';
import { join, relative } from 'node:path';
import { build } from 'vite';

const ROOT = join(import.meta.dirname, '../..');
const SRC = join(ROOT, 'src');
const NATIVE = ['argon2', 'bcrypt', 'better-sqlite3', 'graphene-pk11', 'kerberos'];

/** The program, and what starts as a process or thread. */
const ENTRIES = ['server.ts', ...globSync('**/{*-child,*-watch,ml-dsa-expansion,thread}.ts', { cwd: SRC })];

const withoutExtension = (file: string): string => file.replace(/\.ts$/, '');

/** The path below `dist/`, without extension, of what a module becomes a part of. */
function partOf(module: string): string {
  const name = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(module)?.[1];
  if (name !== undefined) return `packages/${name.replace('/', '-')}`;
  return module.startsWith(`${SRC}/`) ? withoutExtension(relative(SRC, module)) : 'packages/others';
}

await build({
  root: ROOT,
  configFile: false,
  logLevel: 'warn',
  ssr: { noExternal: true, external: NATIVE },
  build: {
    ssr: true,
    outDir: 'dist',
    emptyOutDir: false,
    target: 'es2022',
    sourcemap: true,
    minify: false,
    rolldownOptions: {
      input: Object.fromEntries(ENTRIES.map((file) => [withoutExtension(file), join(SRC, file)])),
      preserveEntrySignatures: 'allow-extension',
      output: {
        sourcemapExcludeSources: true,
        entryFileNames: '[name].js',
        chunkFileNames: ({ facadeModuleId, name }) => `${facadeModuleId ? partOf(facadeModuleId) : name}.js`,
        codeSplitting: {
          includeDependenciesRecursively: false,
          groups: [
            {
              debugName: 'files',
              // What is imported on use is a file already.
              name: (module, context) => {
                const info = context.getModuleInfo(module);
                return info?.isEntry || (info?.dynamicImporters.length ?? 0) > 0 ? null : partOf(module);
              },
            },
          ],
        },
      },
    },
  },
});
