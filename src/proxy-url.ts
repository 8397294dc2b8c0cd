/** Why a text is not a proxy URL. It may contain a password, so the message does not repeat it. */
export function proxyProblem(text: string): string | undefined {
  if (text === 'none') return undefined;
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol)) return 'is not an http:// or https:// URL';
  const { username, password } = new URL(text);
  try {
    decodeURIComponent(username + password);
    return undefined;
  } catch {
    return 'has a user or password with a percent sign that is not written as %25';
  }
}
