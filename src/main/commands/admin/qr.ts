/** A QR code of an enrolment, for a terminal: two rows of it in each line of text. */
import qrcode from 'qrcode-generator';
import { qrText, type Enrolment } from '../../../ready-lines.ts';

/** Light modules around it (ISO/IEC 18004 §5.3.8). */
const QUIET = 4;

/** Dark on light whatever the terminal's own colours are: lines with ANSI colours. */
export function enrolmentQr(enrolment: Enrolment): string {
  const code = qrcode(0, 'M');
  code.addData(String.fromCharCode(...Buffer.from(qrText(enrolment), 'utf8')), 'Byte');
  code.make();
  const size = code.getModuleCount();
  const isDark = (row: number, column: number): boolean =>
    row >= 0 && row < size && column >= 0 && column < size && code.isDark(row, column);
  let text = '';
  for (let row = -QUIET; row < size + QUIET; row += 2) {
    text += '\x1b[30;107m';
    for (let column = -QUIET; column < size + QUIET; column += 1)
      text += BLOCKS[(isDark(row, column) ? 2 : 0) + (isDark(row + 1, column) ? 1 : 0)] ?? ' ';
    text += '\x1b[0m\n';
  }
  return text;
}

const BLOCKS = [' ', '▄', '▀', '█'];
