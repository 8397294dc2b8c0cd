/**
 * The URL of a module beside the caller's, for a worker thread or a child process: `.ts` when running from source
 * (tests, Node's type stripping), `.js` from `dist/`.
 *
 * @param from the caller's `import.meta.url`
 * @param module relative path without extension, e.g. `./worker`
 */
export function siblingModule(from: string, module: string): URL {
  return new URL(`${module}${from.endsWith('.ts') ? '.ts' : '.js'}`, from);
}
