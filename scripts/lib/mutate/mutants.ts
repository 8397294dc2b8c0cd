/** Mutants of a source file: small changes of its rules, all built into one text and switched on one by one. */
import ts from 'typescript';

export interface Mutant {
  /** The same as long as the file does not change. */
  readonly id: string;
  readonly line: number;
  /** Where in the file it starts and ends. */
  readonly from: number;
  readonly to: number;
  readonly original: string;
  readonly replacement: string;
  readonly kind: Kind;
}

/**
 * `decision`: equality, logical and conditional operators, and quantifiers; `further`: `??`, `true`, `false` and calls;
 * `fact`: what an operation of the store says of itself.
 */
export type Kind = 'decision' | 'further' | 'fact';

export interface MutatedFile {
  readonly mutants: readonly Mutant[];
  /** The source with all of them; `__mutant(id)` says which one is on. */
  readonly text: string;
}

const { SyntaxKind } = ts;

const COMPARISONS: ReadonlySet<ts.SyntaxKind> = new Set([
  SyntaxKind.EqualsEqualsEqualsToken,
  SyntaxKind.ExclamationEqualsEqualsToken,
  SyntaxKind.EqualsEqualsToken,
  SyntaxKind.ExclamationEqualsToken,
  SyntaxKind.LessThanToken,
  SyntaxKind.LessThanEqualsToken,
  SyntaxKind.GreaterThanToken,
  SyntaxKind.GreaterThanEqualsToken,
  SyntaxKind.InKeyword,
  SyntaxKind.InstanceOfKeyword,
]);

/** The same comparison with the other answer for equal values. */
const BOUNDARIES: ReadonlyMap<ts.SyntaxKind, string> = new Map([
  [SyntaxKind.LessThanToken, '<='],
  [SyntaxKind.LessThanEqualsToken, '<'],
  [SyntaxKind.GreaterThanToken, '>='],
  [SyntaxKind.GreaterThanEqualsToken, '>'],
]);

const LOGICAL: ReadonlySet<ts.SyntaxKind> = new Set([
  SyntaxKind.AmpersandAmpersandToken,
  SyntaxKind.BarBarToken,
  SyntaxKind.QuestionQuestionToken,
]);

/** Calls whose callback is a condition. */
const PREDICATES: ReadonlySet<string> = new Set(['filter', 'some', 'every', 'find', 'findLast', 'findIndex']);

const isLogical = (node: ts.Node): node is ts.BinaryExpression =>
  ts.isBinaryExpression(node) && LOGICAL.has(node.operatorToken.kind);
const isNegation = (node: ts.Node): node is ts.PrefixUnaryExpression =>
  ts.isPrefixUnaryExpression(node) && node.operator === SyntaxKind.ExclamationToken;
const isComparison = (node: ts.Node): node is ts.BinaryExpression =>
  ts.isBinaryExpression(node) && COMPARISONS.has(node.operatorToken.kind);

/** Texts to put in the place of an expression. Of a chain of clauses each is left out once, and the whole is decided once. */
function replacements(node: ts.Node, source: ts.SourceFile): string[] {
  if (ts.isParenthesizedExpression(node)) return [];
  if (isFact(node)) return facts(node, source);
  const found = isLogical(node) ? ofLogical(node, source) : isDecision(node) ? constants(node) : [];
  if (isLiteral(node) && !isComparison(node.parent)) found.push(String(node.kind === SyntaxKind.FalseKeyword));
  if (isComparison(node)) {
    const boundary = BOUNDARIES.get(node.operatorToken.kind);
    if (boundary !== undefined) found.push(`${node.left.getText(source)} ${boundary} ${node.right.getText(source)}`);
  }
  const { method, target, rest } = methodCall(node, source);
  if (method === 'some') found.push(`${target}.every${rest}`);
  if (method === 'every') found.push(`${target}.some${rest}`);
  return [...new Set(found)];
}

const isLiteral = (node: ts.Node): boolean =>
  node.kind === SyntaxKind.TrueKeyword || node.kind === SyntaxKind.FalseKeyword;

const kindOf = (node: ts.Node): Kind =>
  isFact(node)
    ? 'fact'
    : isLiteral(node) || ts.isStatement(node) || (isLogical(node) && isFallback(node))
      ? 'further'
      : 'decision';

/** Constructors of store operations (src/store/operation.ts) → the kinds that they make. */
const OPERATIONS: Readonly<Record<string, string>> = {
  quickRead: 'quick',
  slowRead: 'slow',
  write: 'free',
  beginWork: 'begins',
  completeWork: 'completes',
};

/** The constructor of an operation, the keys of a write, and a part of such keys. */
function isFact(node: ts.Node): boolean {
  const { parent } = node;
  if (ts.isSpreadElement(parent)) return ts.isArrayLiteralExpression(parent.parent) && isKeys(parent.parent);
  if (ts.isArrayLiteralExpression(node)) return isKeys(node) && !node.elements.some(ts.isSpreadElement);
  if (!ts.isCallExpression(parent) || !ts.isIdentifier(parent.expression) || !(parent.expression.text in OPERATIONS))
    return false;
  return node === parent.expression || (node === parent.arguments[0] && parent.arguments.length > 1);
}

/** `[...lock.request(id), …]`, or what the vocabulary of keys makes. */
const isKeys = (array: ts.ArrayLiteralExpression): boolean =>
  array.elements.length > 0 && (/\block\.\w+\(/.test(array.getText()) || isOfVocabulary(array));

function isOfVocabulary(node: ts.Node): boolean {
  if (ts.isArrowFunction(node)) return node.type?.getText() === 'Keys';
  return !ts.isSourceFile(node) && isOfVocabulary(node.parent);
}

function facts(node: ts.Node, source: ts.SourceFile): string[] {
  const text = node.getText(source);
  const kind = OPERATIONS[text];
  if (kind !== undefined && ts.isIdentifier(node))
    return Object.values(OPERATIONS).flatMap((other) =>
      other === kind ? [] : [`((...all) => ({ ...${text}(...all), kind: '${other}' }))`],
    );
  if (!ts.isCallExpression(node.parent)) return ['[]'];
  return [
    'undefined',
    ...(text === 'nothing' ? [] : ['(() => [])']),
    ...(text === 'EVERYTHING' ? [] : ["'everything'"]),
  ];
}

const isFallback = ({ operatorToken }: ts.BinaryExpression): boolean =>
  operatorToken.kind === SyntaxKind.QuestionQuestionToken;

function ofLogical(node: ts.BinaryExpression, source: ts.SourceFile): string[] {
  const { left, right, operatorToken } = node;
  if (isFallback(node)) return [left.getText(source), right.getText(source)];
  // A clause that is not known to be true or false is left out as a text.
  const isValue = (clause: ts.Node): boolean => !isLogical(bare(clause)) && !isDecision(bare(clause));
  const found = isValue(left) ? [right.getText(source)] : [];
  if (isValue(right)) found.push(left.getText(source));
  const chain = chainOf(node);
  if (chain !== undefined) return chain.operatorToken.kind === operatorToken.kind ? found : [...found, neutral(chain)];
  if (isOfLoop(node) || (!isTested(node) && (isValue(left) || isValue(right)))) return found;
  return [...found, neutral(node) === 'true' ? 'false' : 'true'];
}

/** What leaves a decision out, where it is a clause; both answers elsewhere. */
function constants(node: ts.Node): string[] {
  // Of a negation, the negation itself is decided.
  if (isNegation(outer(node).parent)) return [];
  const chain = chainOf(node);
  if (chain !== undefined) return [neutral(chain)];
  return isOfLoop(node) ? ['false'] : ['true', 'false'];
}

/** What changes nothing among the other clauses. */
const neutral = ({ operatorToken }: ts.BinaryExpression): 'true' | 'false' =>
  operatorToken.kind === SyntaxKind.AmpersandAmpersandToken ? 'true' : 'false';

/** The chain of `&&` or `||` that an expression is a clause of. */
function chainOf(node: ts.Node): ts.BinaryExpression | undefined {
  const parent = outer(node).parent;
  return isLogical(parent) && !isFallback(parent) ? parent : undefined;
}

/** Without parentheses. */
const bare = (node: ts.Node): ts.Node => (ts.isParenthesizedExpression(node) ? bare(node.expression) : node);
/** With them. */
const outer = (node: ts.Node): ts.Node => (ts.isParenthesizedExpression(node.parent) ? outer(node.parent) : node);

/** An expression that is true or false, or whose value is only tested. */
const isDecision = (node: ts.Node): boolean =>
  isComparison(node) || isNegation(node) || (isExpression(node) && !isLogical(node) && isTested(node));

function methodCall(node: ts.Node, source: ts.SourceFile) {
  if (!ts.isCallExpression(node) || !ts.isPropertyAccessExpression(node.expression) || node.questionDotToken)
    return { method: undefined, target: '', rest: '' };
  const { expression, name } = node.expression;
  const after = source.text.slice(name.getEnd(), node.getEnd());
  return { method: name.text, target: expression.getText(source), rest: after };
}

/** Whether something is done according to the value of an expression, and nothing else with it. */
function isTested(node: ts.Node): boolean {
  const whole = outer(node);
  const { parent } = whole;
  if (isLogical(parent)) return chainOf(node) !== undefined && isTested(parent);
  if (ts.isIfStatement(parent) || ts.isWhileStatement(parent) || ts.isDoStatement(parent))
    return parent.expression === whole;
  if (ts.isConditionalExpression(parent) || ts.isForStatement(parent)) return parent.condition === whole;
  return ts.isArrowFunction(parent) && parent.body === whole && isPredicate(parent);
}

function isPredicate({ parent: call, ...arrow }: ts.ArrowFunction): boolean {
  return (
    ts.isCallExpression(call) &&
    call.arguments[0]?.pos === arrow.pos &&
    ts.isPropertyAccessExpression(call.expression) &&
    PREDICATES.has(call.expression.name.text)
  );
}

/** A loop that never ends proves nothing. */
function isOfLoop(node: ts.Node): boolean {
  const whole = outer(node);
  const { parent } = whole;
  if (isLogical(parent) || isNegation(parent)) return isOfLoop(parent);
  if (ts.isWhileStatement(parent) || ts.isDoStatement(parent)) return parent.expression === whole;
  return ts.isForStatement(parent) && parent.condition === whole;
}

const isExpression = (node: ts.Node): boolean => ts.isExpression(node) && !ts.isTypeNode(node);

/** A call used as a statement: a check that throws, or a record. Log calls are skipped. */
function isRemovable(node: ts.Node, source: ts.SourceFile): node is ts.ExpressionStatement {
  if (!ts.isExpressionStatement(node)) return false;
  const expression = ts.isAwaitExpression(node.expression) ? node.expression.expression : node.expression;
  if (!ts.isCallExpression(expression) || expression.expression.kind === SyntaxKind.SuperKeyword) return false;
  return !/\blog\??\.(trace|debug|info|warn|error)\(/.test(expression.getText(source));
}

const SKIPPED = (node: ts.Node): boolean =>
  ts.isTypeNode(node) ||
  ts.isInterfaceDeclaration(node) ||
  ts.isTypeAliasDeclaration(node) ||
  ts.isImportDeclaration(node) ||
  ts.isExportDeclaration(node);

/** All mutants of a file, and the file with them. @param name as ids name it */
export function mutate(name: string, text: string): MutatedFile {
  const source = ts.createSourceFile(name, text, ts.ScriptTarget.Latest, true);
  const mutants: Mutant[] = [];

  const add = (node: ts.Node, replacement: string): string => {
    const id = `${name}#${mutants.length + 1}`;
    const [from, to] = [node.getStart(source), node.getEnd()];
    const { line } = source.getLineAndCharacterOfPosition(from);
    const original = node.getText(source);
    mutants.push({ id, line: line + 1, from, to, original, replacement, kind: kindOf(node) });
    return `__mutant(${JSON.stringify(id)})`;
  };

  const render = (node: ts.Node): string => {
    if (SKIPPED(node)) return node.getText(source);
    if (isRemovable(node, source)) return `{ if (!${add(node, '')}) { ${inner(node)} } }`;
    const switches = isExpression(node)
      ? replacements(node, source).map((replacement) => `${add(node, replacement)} ? (${replacement}) : `)
      : [];
    const rendered = inner(node);
    return switches.length === 0 ? rendered : `(${switches.join('')}(${rendered}))`;
  };

  const inner = (node: ts.Node): string => {
    let out = '';
    let at = node.getStart(source);
    ts.forEachChild(node, (child) => {
      if (child.kind === SyntaxKind.EndOfFileToken) return;
      const start = child.getStart(source);
      // Children that stand in no order of their own (modifiers, types) come in the order of the text.
      if (start < at) return;
      out += text.slice(at, start) + render(child);
      at = child.getEnd();
    });
    return out + text.slice(at, node.getEnd());
  };

  return { mutants, text: inner(source) };
}

/** For the head of the file with the mutants. */
export const PRELUDE = 'const __mutant = globalThis.__mutant ?? (() => false);\n';
