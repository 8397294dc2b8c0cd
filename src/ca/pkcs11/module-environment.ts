/** What the module may need to find its own configuration, without what changes the Node that runs it. */
export function moduleEnvironment(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries(env))
    if (value !== undefined && !/^(NODE_|npm_)/.test(name)) kept[name] = value;
  return kept;
}
