export function BulkTokens() {
  return <h1 tabIndex={-1}>Many tokens</h1>;
}
