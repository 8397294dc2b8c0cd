/**
 * Imports a CSV file. The server checks every row first. The user starts the import, and each row gets a result. An
 * import continues, and its results stay, while the user visits other pages.
 */
import { effect, signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { text, toApiError, type Query } from '../api/client.ts';
import { parseCsv, writeCsv, type Csv } from '../shared/csv.ts';
import { caller } from '../shared/session.ts';
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
  /** The results have secrets that are shown only once. */
  readonly secret?: boolean;
  /** Rows of a call; fewer for slow ones. */
  readonly batch?: number;
}

/** An import that runs, or whose results are shown. */
interface Import {
  readonly csv: Csv;
  /** Of the rows that are done. */
  readonly results: Csv;
  readonly isRunning: boolean;
  readonly isSaved: boolean;
  /** Why it ended early. */
  readonly problem?: string;
}

/** By path. */
const imports = signal<ReadonlyMap<string, Import>>(new Map());

function change(path: string, now: Import | undefined): void {
  const others = [...imports.value].filter(([key]) => key !== path);
  imports.value = new Map(now === undefined ? others : [...others, [path, now]]);
}

// Results may have secrets, which are for the user who started the import.
let owner: string | undefined;
effect(() => {
  const now = caller.value;
  const isOther = now.state === 'in' && now.session.subject !== owner;
  if (now.state === 'in') owner = now.session.subject;
  if (isOther || (now.state === 'out' && !now.ended)) imports.value = new Map();
});

const warn = (event: Event): void => event.preventDefault();
effect(() => {
  const isOpen = [...imports.value.values()].some(({ isRunning, isSaved }) => isRunning || !isSaved);
  if (isOpen) addEventListener('beforeunload', warn);
  else removeEventListener('beforeunload', warn);
});

const SHOWN = 20;
const REJECTED_SHOWN = 1000;
/** Milliseconds between a change and its check. */
const DELAY = 400;
const BATCH = 1000;

type Checked =
  | { readonly state: 'empty' | 'busy' }
  | { readonly state: 'failed'; readonly message: string }
  | { readonly state: 'ready'; readonly rejected: readonly Rejection[] };

interface Rejection {
  readonly row: string;
  readonly name: string;
  readonly message: string;
}

export function CsvImport(props: ImportProps) {
  const { path, query, example, hint, thing, name, warning, secret = false, batch = BATCH } = props;
  const [source, setSource] = useState('');
  const [checked, setChecked] = useState<Checked>({ state: 'empty' });
  const csv = parseCsv(source);
  const send = (rows: string, more: Query = {}, abort?: AbortSignal) =>
    text(path, { method: 'POST', csv: rows, query: { ...query, ...more }, accept: 'text/csv', signal: abort });
  const fail = (error: unknown) => setChecked({ state: 'failed', message: toApiError(error).message });
  useEffect(() => {
    if (csv.rows.length === 0) {
      setChecked({ state: 'empty' });
      return undefined;
    }
    setChecked({ state: 'busy' });
    const abort = new AbortController();
    const timer = setTimeout(() => {
      send(source, { dry_run: 'true' }, abort.signal).then(
        (result) => setChecked({ state: 'ready', rejected: rejections(parseCsv(result), csv, name) }),
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
  useEffect(
    () => () => {
      const left = imports.value.get(path);
      if (left?.isRunning === false && left.isSaved) change(path, undefined);
    },
    [path],
  );
  const current = imports.value.get(path);
  if (current !== undefined) return <Results {...props} of={current} />;
  const take = async (files: FileList | null | undefined) => {
    try {
      setSource((await files?.[0]?.text()) ?? '');
    } catch (error) {
      fail(error);
    }
  };
  const run = async () => {
    let now: Import = { csv, results: { header: [], rows: [] }, isRunning: true, isSaved: !secret };
    change(path, now);
    for (let from = 0; from < csv.rows.length && now.problem === undefined; from += batch)
      try {
        const { header, rows } = parseCsv(await send(writeCsv([csv.header, ...csv.rows.slice(from, from + batch)])));
        const line = header.indexOf('row');
        // The server counts lines from the first of the call.
        const placed = rows.map((fields) =>
          fields.map((field, n) => (n === line && field !== '' ? String(Number(field) + from) : field)),
        );
        now = { ...now, results: { header, rows: [...now.results.rows, ...placed] } };
        change(path, now);
      } catch (error) {
        now = { ...now, problem: toApiError(error).message };
      }
    if (imports.value.has(path)) change(path, { ...now, isRunning: false });
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
            <button type="button" class="primary" disabled={valid === 0} onClick={() => void run()}>
              Import {counted(valid, thing)}
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
          // Not empty, so that each column of the file is shown.
          cell: ({ fields }: { readonly fields: readonly string[] }) => <>{fields[n]}</>,
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
function rejections({ header, rows }: Csv, source: Csv, name: string): readonly Rejection[] {
  const [row, code, message] = PROBLEM.map((column) => header.indexOf(column));
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
          { head: name, cell: (failure) => failure.name },
          { head: 'Problem', cell: ({ message }) => message, kind: 'message' },
        ]}
        items={of.slice(0, REJECTED_SHOWN)}
        id={({ row }) => row}
      />
    </>
  );
}

function Results({ of, path, file, thing, name, hidden = [] }: ImportProps & { readonly of: Import }) {
  const { csv, results, isRunning, isSaved, problem } = of;
  const { header, rows } = results;
  const code = header.indexOf('code');
  const imported = rows.filter((fields) => (fields[code] ?? '') === '');
  const shown = header.filter((column) => !PROBLEM.includes(column) && !hidden.includes(column));
  const cells = (fields: readonly string[]) => shown.map((column) => fields[header.indexOf(column)] ?? '');
  const save = () => {
    saveFile(file, 'text/csv', writeCsv([header, ...rows]));
    change(path, { ...of, isSaved: true });
  };
  if (isRunning)
    return (
      <Panel title={`Importing ${counted(csv.rows.length, thing)} …`}>
        <progress max={csv.rows.length} value={rows.length} aria-label="Rows done" />
        <p role="status">
          {rows.length.toLocaleString('en')} of {counted(csv.rows.length, 'row')} done. Do not close or reload the page
          before the results are saved.
        </p>
      </Panel>
    );
  return (
    <Panel
      title={`Imported: ${counted(imported.length, thing)}`}
      actions={
        <>
          <button type="button" onClick={() => change(path, undefined)} disabled={!isSaved && imported.length > 0}>
            Import more
          </button>
          <button type="button" class="primary" onClick={save}>
            Save the results
          </button>
        </>
      }
    >
      {problem !== undefined && (
        <p class="field-problem" role="alert">
          {counted(csv.rows.length - rows.length, 'row')} not sent: {problem} Save the results, then import these rows
          again.
        </p>
      )}
      <Rejected of={rejections(results, csv, name)} name={name} />
      {imported.length > 0 && <Preview csv={{ header: shown, rows: imported.map(cells) }} caption="Imported" />}
    </Panel>
  );
}
