/** Whether the compiler accepts a changed file. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';

/** Unused names and unreachable code: a change may leave them behind. */
const LEFT_BEHIND: ReadonlySet<number> = new Set([6133, 6138, 6192, 6196, 6198, 6199, 7027]);

/** @returns a function that gives the compiler's first error in a file with another text, or undefined */
export function typeChecker(root: string): (file: string, text: string) => string | undefined {
  const config = ts.getParsedCommandLineOfConfigFile(
    join(root, 'tsconfig.json'),
    { noEmit: true },
    { ...ts.sys, onUnRecoverableConfigFileDiagnostic: () => undefined },
  );
  if (config === undefined) throw new Error('tsconfig.json cannot be read');
  let changed = { file: '', text: '', version: 0 };
  const names = config.fileNames.filter((name) => name.startsWith(join(root, 'src/')));
  const service = ts.createLanguageService({
    ...ts.sys,
    getScriptFileNames: () => names,
    getScriptVersion: (name) => (name === changed.file ? String(changed.version) : '0'),
    getScriptSnapshot: (name) => {
      if (name === changed.file) return ts.ScriptSnapshot.fromString(changed.text);
      return ts.sys.fileExists(name) ? ts.ScriptSnapshot.fromString(readFileSync(name, 'utf8')) : undefined;
    },
    useCaseSensitiveFileNames: () => ts.sys.useCaseSensitiveFileNames,
    getCurrentDirectory: () => root,
    getCompilationSettings: () => config.options,
    getDefaultLibFileName: (options) => ts.getDefaultLibFilePath(options),
  });
  return (file, text) => {
    changed = { file, text, version: changed.version + 1 };
    const found = [...service.getSyntacticDiagnostics(file), ...service.getSemanticDiagnostics(file)];
    const error = found.find(({ code }) => !LEFT_BEHIND.has(code));
    return error === undefined ? undefined : `TS${error.code}`;
  };
}
