/** Many rows at once: a CSV is chosen, looked at, and sent; each row is answered for itself. */
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

export function CsvImport({ path, query, example, hint, things, file, warning, hidden = [] }: ImportProps) {
  const [source, setSource] = useState('');
  const [answer, setAnswer] = useState<string>();
  const [isAsking, setAsking] = useState(false);
  const [problem, setProblem] = useState<string>();
  const csv = parseCsv(source);
  if (answer !== undefined) return <Results answer={answer} file={file} hidden={hidden} things={things} />;
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
            <button type="button" class="primary" onClick={() => setAsking(true)}>
              Make {csv.rows.length} {things} …
            </button>
          }
        >
          <Preview csv={csv} caption="Preview" />
        </Panel>
      )}
      {isAsking && (
        <Confirm
          title={`Make ${csv.rows.length} ${things}?`}
          verb={`Make ${csv.rows.length} ${things}`}
          onClose={() => setAsking(false)}
          run={async () =>
            setAnswer(await text(path, { method: 'POST', csv: source, query: query ?? {}, accept: 'text/csv' }))
          }
        >
          <p>{warning}</p>
        </Confirm>
      )}
    </>
  );
}

function Preview({ csv: { header, rows }, caption }: { readonly csv: Csv; readonly caption: string }) {
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
      {rows.length > SHOWN && <p class="fine">and {rows.length - SHOWN} more</p>}
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
  const problems = ['row', 'code', 'message'];
  const pick = (names: readonly string[], from: readonly (readonly string[])[]): Csv => {
    const at = names.map((name) => header.indexOf(name));
    return { header: names, rows: from.map((fields) => at.map((n) => fields[n] ?? '')) };
  };
  const made = rows.filter((fields) => !failed.includes(fields));
  const shown = header.filter((name) => !problems.includes(name) && !hidden.includes(name));
  return (
    <Panel
      title={`${made.length} ${things} made${failed.length === 0 ? '' : `, ${failed.length} refused`}`}
      actions={
        <button type="button" class="primary" onClick={() => saveFile(file, 'text/csv', answer)}>
          Save the answer
        </button>
      }
    >
      {failed.length > 0 && <Preview csv={pick(problems, failed)} caption="Refused" />}
      {made.length > 0 && <Preview csv={pick(shown, made)} caption="Made" />}
    </Panel>
  );
}
