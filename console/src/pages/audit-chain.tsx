import { useEffect, useState } from 'preact/hooks';
import { toApiError, type ApiError } from '../api/client.ts';
import { verifyChain, type ChainState } from '../audit-chain.ts';
import { link } from '../router.ts';
import { Badge, Facts, Heading, Panel } from '../ui/bits.tsx';
import { Problem } from '../ui/states.tsx';

/** Every record that the store has, hashed anew in this browser. */
export function ChainCheck() {
  const [state, setState] = useState<ChainState>({ checked: 0, isDone: false });
  const [error, setError] = useState<ApiError>();
  useEffect(() => {
    const abort = new AbortController();
    verifyChain(setState, abort.signal).catch((thrown: unknown) => {
      if (!abort.signal.aborted) setError(toApiError(thrown));
    });
    return () => abort.abort();
  }, []);
  const { checked, first, last, problem, isDone } = state;
  return (
    <>
      <Heading
        title="The chain"
        lead="Each record is hashed anew here, in your browser, and held against the one before."
      >
        <a class="button" href={link(['audit'])}>
          Back
        </a>
      </Heading>
      {error !== undefined && <Problem error={error} />}
      <Panel
        title={isDone ? 'Result' : 'Checking …'}
        actions={isDone && <Badge of={problem === undefined ? 'ok' : 'failed'} />}
      >
        <div aria-live="polite">
          {isDone && <p>{problem ?? 'The chain is whole: no record was changed, taken away or put in.'}</p>}
        </div>
        <Facts
          of={[
            ['Checked', `${checked} records`],
            ['From', first === undefined ? '' : String(first)],
            ['To', last === undefined ? '' : String(last)],
          ]}
        />
        <p class="fine">
          What was archived has left the store: <code>estuary audit verify</code> checks the files, and the signed
          checkpoints with them.
        </p>
      </Panel>
    </>
  );
}
