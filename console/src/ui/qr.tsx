/** Draws a QR code in the page: the secret in it leaves the browser nowhere. */
import { useEffect, useState } from 'preact/hooks';

export function QrCode({ text, title }: { readonly text: string; readonly title: string }) {
  const [rows, setRows] = useState<readonly string[]>([]);
  useEffect(() => {
    let isGone = false;
    void import('qrcode-generator').then(({ default: qrcode }) => {
      if (isGone) return;
      const code = qrcode(0, 'M');
      code.addData(text);
      code.make();
      const size = code.getModuleCount();
      const numbers = Array.from({ length: size }, (_, n) => n);
      setRows(numbers.map((y) => numbers.map((x) => (code.isDark(y, x) ? `M${x} ${y}h1v1h-1z` : '')).join('')));
    });
    return () => {
      isGone = true;
    };
  }, [text]);
  const size = rows.length + 8;
  return (
    <svg class="qr" viewBox={`-4 -4 ${size} ${size}`} role="img" aria-label={title} shapeRendering="crispEdges">
      <path d={`M-4 -4h${size}v${size}h-${size}z`} fill="#fff" />
      <path d={rows.join('')} fill="#000" />
    </svg>
  );
}
