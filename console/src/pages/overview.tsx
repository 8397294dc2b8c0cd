import { Heading } from '../ui/bits.tsx';

export function Overview() {
  return <Heading title="Overview" />;
}
