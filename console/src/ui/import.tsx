/** Imports a CSV file. The server checks every row first. The user starts the import, and each row gets a result. */
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { text, toApiError, type Query } from '../api/client.ts';
import { parseCsv, type Csv } from '../shared/csv.ts';
import { counted } from '../shared/words.ts';
import { Panel, saveFile } from './bits.tsx';
import { Field } from './fields.tsx';
import { Table } from './table.tsx';

interface ImportProps {
  readonly path: string;
  readonly query?: Query;
  /** The first line of the file. */
  readonly example: string;
  readonly hint: ComponentChildren;
  /** The imported thing, in the singular. */
  readonly thing: string;
  /** The column that names it. */
  readonly name: string;
  /** The name of the results file. */
  readonly file: string;
  readonly warning: ComponentChildren;
  /** Columns of the results that the page does not show. */
  readonly hidden?: readonly string[];
}

const SHOWN = 20;
const REJECTED_SHOWN = 1000;
/** Milliseconds between a change and its check. */
const DELAY = 400;

type Checked =
  | { readonly state: 'empty' | 'busy' }
  | { readonly state: 'failed'; readonly message: string }
  | { readonly state: 'ready'; readonly rejected: readonly Rejection[] };

interface Rejection {
  readonly row: string;
  readonly name: string;
  readonly message: string;
}

export function CsvImport({ path, query, example, hint, thing, name, file, warning, hidden = [] }: ImportProps) {
  const [source, setSource] = useState('');
  const [answer, setAnswer] = useState<string>();
  const [checked, setChecked] = useState<Checked>({ state: 'empty' });
  const [busy, setBusy] = useState(false);
  const csv = parseCsv(source);
  const send = (more: Query = {}, signal?: AbortSignal) =>
    text(path, { method: 'POST', csv: source, query: { ...query, ...more }, accept: 'text/csv', signal });
  const fail = (error: unknown) => setChecked({ state: 'failed', message: toApiError(error).message });
  useEffect(() => {
    if (csv.rows.length === 0) {
      setChecked({ state: 'empty' });
      return undefined;
    }
    setChecked({ state: 'busy' });
    const abort = new AbortController();
    const timer = setTimeout(() => {
      send({ dry_run: 'true' }, abort.signal).then(
        (result) => setChecked({ state: 'ready', rejected: rejections(result, csv, name) }),
        (error: unknown) => {
          if (!abort.signal.aborted) fail(error);
        },
      );
    }, DELAY);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [source]);
  if (answer !== undefined)
    return <Results answer={answer} csv={csv} file={file} hidden={hidden} thing={thing} name={name} />;
  const take = async (files: FileList | null | undefined) => {
    try {
      setSource((await files?.[0]?.text()) ?? '');
    } catch (error) {
      fail(error);
    }
  };
  const run = async () => {
    setBusy(true);
    try {
      setAnswer(await send());
    } catch (error) {
      fail(error);
    }
    setBusy(false);
  };
  const valid = csv.rows.length - (checked.state === 'ready' ? checked.rejected.length : 0);
  return (
    <>
      <section
        class="panel"
        onDragOver={(event) => event.preventDefault()}
        onDrop={(event) => {
          event.preventDefault();
          void take(event.dataTransfer?.files);
        }}
      >
        <Field label="CSV" name="csv" hint={hint}>
          {(attributes) => (
            <textarea
              {...attributes}
              spellcheck={false}
              data-search
              placeholder={example}
              value={source}
              onInput={(event) => setSource(event.currentTarget.value)}
            />
          )}
        </Field>
        <Field label="File" name="file">
          {(attributes) => (
            <input
              {...attributes}
              type="file"
              accept=".csv,text/csv"
              onChange={(event) => void take(event.currentTarget.files)}
            />
          )}
        </Field>
        {checked.state === 'failed' && (
          <p class="field-problem" role="alert">
            {checked.message}
          </p>
        )}
      </section>
      {checked.state === 'busy' && <p role="status">Checking {counted(csv.rows.length, 'row')} …</p>}
      {checked.state === 'ready' && (
        <Panel
          title={`${valid.toLocaleString('en')} of ${counted(csv.rows.length, 'row')} can be imported`}
          actions={
            <button type="button" class="primary" disabled={busy || valid === 0} onClick={() => void run()}>
              {busy ? 'Importing …' : `Import ${counted(valid, thing)}`}
            </button>
          }
        >
          <p>{warning}</p>
          <Rejected of={checked.rejected} name={name} />
          <Preview csv={csv} caption="The first rows" />
        </Panel>
      )}
    </>
  );
}

interface PreviewProps {
  readonly csv: Csv;
  readonly caption: string;
}

function Preview({ csv: { header, rows }, caption }: PreviewProps) {
  const items = rows.slice(0, SHOWN).map((fields, n) => ({ n, fields }));
  return (
    <>
      <Table
        caption={caption}
        columns={header.map((head, n) => ({
          head,
          cell: ({ fields }: { readonly fields: readonly string[] }) => fields[n] ?? '',
        }))}
        items={items}
        id={({ n }) => String(n)}
      />
      {rows.length > SHOWN && <p class="fine">and {counted(rows.length - SHOWN, 'more row')}</p>}
    </>
  );
}

const PROBLEM = ['row', 'code', 'message'];

/** The rejected rows of a result, with the name that the file has in that row. */
function rejections(answer: string, source: Csv, name: string): readonly Rejection[] {
  const { header, rows } = parseCsv(answer);
  const [row, code, message] = PROBLEM.map((one) => header.indexOf(one));
  const at = source.header.indexOf(name);
  // Each row has its result in its place.
  return rows.flatMap((fields, index) => {
    const value = (n: number | undefined): string => fields[n ?? -1] ?? '';
    if (value(code) === '') return [];
    const named = source.rows[index]?.[at] ?? '';
    return [{ row: value(row), name: named, message: value(message) }];
  });
}

function Rejected({ of, name }: { readonly of: readonly Rejection[]; readonly name: string }) {
  if (of.length === 0) return null;
  return (
    <>
      <p class="field-problem">{counted(of.length, 'row')} rejected:</p>
      <Table
        caption="Rejected rows"
        columns={[
          { head: 'Row', cell: ({ row }) => row, kind: 'number' },
          { head: name, cell: (one) => one.name },
          { head: 'Problem', cell: ({ message }) => message, kind: 'name' },
        ]}
        items={of.slice(0, REJECTED_SHOWN)}
        id={({ row }) => row}
      />
    </>
  );
}

interface ResultsProps {
  readonly answer: string;
  readonly csv: Csv;
  readonly file: string;
  readonly thing: string;
  readonly name: string;
  readonly hidden: readonly string[];
}

function Results({ answer, csv, file, thing, name, hidden }: ResultsProps) {
  const { header, rows } = parseCsv(answer);
  const code = header.indexOf('code');
  const imported = rows.filter((fields) => (fields[code] ?? '') === '');
  const rejected = rejections(answer, csv, name);
  const shown = header.filter((one) => !PROBLEM.includes(one) && !hidden.includes(one));
  const cells = (fields: readonly string[]) => shown.map((one) => fields[header.indexOf(one)] ?? '');
  return (
    <Panel
      title={`Imported: ${counted(imported.length, thing)}`}
      actions={
        <button type="button" class="primary" onClick={() => saveFile(file, 'text/csv', answer)}>
          Save the results
        </button>
      }
    >
      <Rejected of={rejected} name={name} />
      {imported.length > 0 && <Preview csv={{ header: shown, rows: imported.map(cells) }} caption="Imported" />}
    </Panel>
  );
}
