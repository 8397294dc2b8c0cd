/** The prose of a source file: its comments and its string literals. */
import ts from 'typescript';

export interface Prose {
  readonly kind: 'comment' | 'text';
  readonly start: number;
  readonly text: string;
}

export function proseOf(file: string, source: string): readonly Prose[] {
  const kind = file.endsWith('x') ? ts.ScriptKind.TSX : ts.ScriptKind.TS;
  const tree = ts.createSourceFile(file, source, ts.ScriptTarget.Latest, false, kind);
  const texts: Prose[] = [];
  /** The source without literals, in which only comments look like comments. */
  let rest = source;
  const blank = (start: number, end: number): void => {
    rest = `${rest.slice(0, start)}${' '.repeat(end - start)}${rest.slice(end)}`;
  };
  const visit = (node: ts.Node): void => {
    if (ts.isTemplateExpression(node)) {
      const start = node.getStart(tree);
      // With the placeholders, so that a sentence is seen as a whole.
      texts.push({ kind: 'text', start, text: source.slice(start + 1, node.end - 1) });
      for (const { literal } of node.templateSpans) blank(literal.getStart(tree), literal.end);
      blank(node.head.getStart(tree), node.head.end);
    } else if (ts.isStringLiteralLike(node) || ts.isJsxText(node) || ts.isRegularExpressionLiteral(node)) {
      const start = node.getStart(tree);
      if (!ts.isRegularExpressionLiteral(node)) texts.push({ kind: 'text', start, text: node.text });
      blank(start, node.end);
    }
    ts.forEachChild(node, visit);
  };
  visit(tree);
  const comments = [...rest.matchAll(/\/\*[^]*?\*\/|(?:\/\/[^\n]*(?:\n\s*)?)+/gu)].map((match): Prose => ({
    kind: 'comment',
    start: match.index,
    text: source.slice(match.index, match.index + match[0].length),
  }));
  return [...texts, ...comments];
}
