/** Why a text is not a proxy URL. It may contain a password, so the message does not repeat it. */
export const proxyProblem = (text: string): string | undefined =>
  text === 'none' || (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol))
    ? undefined
    : 'is not an http:// or https:// URL';
