/** Imports a CSV: the server checks every row, the user confirms, and the server answers each row. */
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { text, toApiError, type Query } from '../api/client.ts';
import { parseCsv, type Csv } from '../csv.ts';
import { Panel, saveFile } from './bits.tsx';
import { Confirm } from './dialog.tsx';
import { Field } from './fields.tsx';
import { Table } from './table.tsx';

interface ImportProps {
  readonly path: string;
  readonly query?: Query;
  /** The first line of the file. */
  readonly example: string;
  readonly hint: ComponentChildren;
  /** What is made, in the plural. */
  readonly things: string;
  /** Of the answer, as a file. */
  readonly file: string;
  readonly warning: ComponentChildren;
  /** Columns of the answer that the page does not show. */
  readonly hidden?: readonly string[];
}

const SHOWN = 20;
const REJECTED_SHOWN = 1000;

export function CsvImport({ path, query, example, hint, things, file, warning, hidden = [] }: ImportProps) {
  const [source, setSource] = useState('');
  const [answer, setAnswer] = useState<string>();
  const [checked, setChecked] = useState<string>();
  const [problem, setProblem] = useState<string>();
  const csv = parseCsv(source);
  if (answer !== undefined) return <Results answer={answer} file={file} hidden={hidden} things={things} />;
  const send = (more: Query = {}) =>
    text(path, { method: 'POST', csv: source, query: { ...query, ...more }, accept: 'text/csv' });
  const check = async () => {
    setProblem(undefined);
    try {
      setChecked(await send({ dry_run: 'true' }));
    } catch (error) {
      setProblem(toApiError(error).message);
    }
  };
  const take = async (files: FileList | null | undefined) => {
    try {
      setSource((await files?.[0]?.text()) ?? '');
    } catch (error) {
      setProblem(toApiError(error).message);
    }
  };
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
        {problem !== undefined && <p class="field-problem">{problem}</p>}
      </section>
      {csv.rows.length > 0 && (
        <Panel
          title={`Preview: ${csv.rows.length} ${things}`}
          actions={
            <button type="button" class="primary" onClick={() => void check()}>
              Make {csv.rows.length} {things} …
            </button>
          }
        >
          <Preview csv={csv} caption="Preview" />
        </Panel>
      )}
      {checked !== undefined && (
        <Confirm
          title={`Make ${csv.rows.length} ${things}?`}
          verb={`Make ${csv.rows.length} ${things}`}
          onClose={() => setChecked(undefined)}
          run={async () => setAnswer(await send())}
        >
          <p>{warning}</p>
          <Rejected rows={rejected(checked)} />
        </Confirm>
      )}
    </>
  );
}

interface PreviewProps {
  readonly csv: Csv;
  readonly caption: string;
  readonly most?: number;
}

function Preview({ csv: { header, rows }, caption, most = SHOWN }: PreviewProps) {
  const items = rows.slice(0, most).map((fields, n) => ({ n, fields }));
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
      {rows.length > most && <p class="fine">and {rows.length - most} more</p>}
    </>
  );
}

const PROBLEM = ['row', 'code', 'message'];

/** The rows of an answer that are rejected: number, code and message. */
function rejected(answer: string): Csv['rows'] {
  const { header, rows } = parseCsv(answer);
  const at = PROBLEM.map((name) => header.indexOf(name));
  return rows.map((fields) => at.map((n) => fields[n] ?? '')).filter(([, code]) => code !== '');
}

function Rejected({ rows }: { readonly rows: Csv['rows'] }) {
  if (rows.length === 0) return <p>All rows are valid.</p>;
  return (
    <>
      <p>Rejected rows: {rows.length}</p>
      <Preview csv={{ header: PROBLEM, rows }} caption="Rejected" most={REJECTED_SHOWN} />
    </>
  );
}

interface ResultsProps {
  readonly answer: string;
  readonly file: string;
  readonly things: string;
  readonly hidden: readonly string[];
}

function Results({ answer, file, things, hidden }: ResultsProps) {
  const { header, rows } = parseCsv(answer);
  const codeAt = header.indexOf('code');
  const failed = rows.filter((fields) => (fields[codeAt] ?? '') !== '');
  const made = rows.filter((fields) => !failed.includes(fields));
  const shown = header.filter((name) => !PROBLEM.includes(name) && !hidden.includes(name));
  return (
    <Panel
      title={`${made.length} ${things} made${failed.length === 0 ? '' : `, ${failed.length} rejected`}`}
      actions={
        <button type="button" class="primary" onClick={() => saveFile(file, 'text/csv', answer)}>
          Save the answer
        </button>
      }
    >
      {failed.length > 0 && <Rejected rows={rejected(answer)} />}
      {made.length > 0 && (
        <Preview
          csv={{ header: shown, rows: made.map((fields) => shown.map((name) => fields[header.indexOf(name)] ?? '')) }}
          caption="Made"
        />
      )}
    </Panel>
  );
}
