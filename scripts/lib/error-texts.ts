/** The errors that the source throws: each code with its public texts. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';

/** The functions of src/errors.ts, with the place of the code among their arguments. */
const MAKERS: ReadonlyMap<string, number> = new Map([
  ...['badRequest', 'unauthorized', 'forbidden', 'notFound', 'conflict', 'failed', 'unavailable'].map(
    (name) => [name, 0] as const,
  ),
  ...['errorWith', 'EstuaryError', 'super', 'errorAnswer'].map((name) => [name, 1] as const),
]);

/** The texts of each code; a part that is known only at run time is `…`. Files of src/errors are not read. */
export function errorTexts(root: string): ReadonlyMap<string, ReadonlySet<string>> {
  const texts = new Map<string, Set<string>>();
  const found = (code: string, text: string | undefined): void => {
    const all = texts.get(code) ?? new Set();
    texts.set(code, text === undefined || text === '' ? all : all.add(text));
  };
  for (const file of globSync('src/**/*.ts', { cwd: root }).sort()) {
    if (/^src.errors\b/.test(file)) continue;
    visit(ts.createSourceFile(file, readFileSync(join(root, file), 'utf8'), ts.ScriptTarget.Latest, true), found);
  }
  return texts;
}

function visit(node: ts.Node, found: (code: string, text: string | undefined) => void): void {
  if (ts.isCallExpression(node) || ts.isNewExpression(node)) {
    const place = MAKERS.get(node.expression.getText());
    const code = place === undefined ? undefined : node.arguments?.[place];
    if (code !== undefined && ts.isStringLiteral(code)) found(code.text, readText(node.arguments?.[(place ?? 0) + 1]));
  }
  if (ts.isArrayLiteralExpression(node)) {
    const [status, code, text] = node.elements;
    if (status !== undefined && ts.isNumericLiteral(status) && code !== undefined && ts.isStringLiteral(code))
      found(code.text, readText(text));
  }
  ts.forEachChild(node, (child) => {
    visit(child, found);
  });
}

function readText(node: ts.Node | undefined): string | undefined {
  if (node === undefined) return undefined;
  if (ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node)) return node.text;
  if (ts.isTemplateExpression(node))
    return node.head.text + node.templateSpans.map(({ literal }) => `…${literal.text}`).join('');
  return undefined;
}
