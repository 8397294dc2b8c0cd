/** The manual page estuary(1) in man's own macros: what `--help` says, command by command. */
import { helpOfCommand } from '../../src/main/commands/help.ts';
import { COMMANDS } from '../../src/main/commands/table.ts';
import type { Command, Entry } from '../../src/main/commands/command.ts';
import { VERSION } from '../../src/version.ts';

const HEAD = String.raw`.TH ESTUARY 1 "" "Estuary VERSION" "Estuary"
.SH NAME
estuary \- EST (RFC 7030) certificate enrollment server
.SH SYNOPSIS
.B estuary
.I COMMAND
[options]
.SH DESCRIPTION
Estuary enrols devices with certificates: EST and full CMC towards devices, a CA key in a file, a PKCS#11 token or Dogtag PKI behind it.
The command that is taken where none is named is
.BR serve .
.SH COMMANDS
`;

const TAIL = String.raw`.SH EXIT STATUS
0: done, or a clean stop; 1: it could not start, died, or the command failed; 2: the configuration was refused.
.SH SIGNALS
SIGTERM and SIGINT stop, SIGHUP reads the configuration again.
.SH FILES
.TP
.I /etc/estuary/est.toml
the configuration of the packaged service
.TP
.I /var/lib/estuary
its store and audit file
.TP
.I /usr/share/doc/estuary
the manual: configuration, operations, troubleshooting
.SH SEE ALSO
.BR systemctl (1)
`;

export async function manualPage(): Promise<string> {
  const commands = await expanded(COMMANDS, '');
  const sections = commands.map(
    ([name, command]) => `.SS ${escaped(name)}\n.nf\n${escaped(helpOfCommand('estuary', command))}.fi\n`,
  );
  return HEAD.replace('VERSION', escaped(VERSION)) + sections.join('') + TAIL;
}

/** With the commands of families, by the words that the operator types. */
async function expanded(entries: readonly Entry[], family: string): Promise<(readonly [string, Command])[]> {
  const lists = entries.map(async (entry) => {
    const name = `${family}${entry.name}`;
    if (entry.kind === 'command') return [[name, { ...entry, name }] as const];
    return expanded(await entry.load(), `${name} `);
  });
  return (await Promise.all(lists)).flat();
}

/** As text of its own: a leading dot or quote would be a macro. */
function escaped(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replace(/^(?=[.'])/gm, '\\&');
}
