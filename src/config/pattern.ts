/**
 * A policy's regular expression. It has to match the whole value, so that `dev-[0-9]+` does not let `dev-1.evil`
 * through.
 *
 * @throws SyntaxError when it is no regular expression
 */
export function wholeMatch(pattern: string): RegExp {
  // Compiled alone first: `a)|(b` would otherwise become valid inside the group.
  new RegExp(pattern, 'u');
  return new RegExp(`^(?:${pattern})$`, 'u');
}
