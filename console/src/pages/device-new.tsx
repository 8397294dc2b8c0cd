import { go } from '../shared/router.ts';
import { Heading } from '../ui/bits.tsx';
import { notify } from '../ui/notices.tsx';
import { DeviceForm } from './device-form.tsx';

export function NewDevice() {
  return (
    <>
      <Heading title="New device" />
      <DeviceForm
        onClose={() => go(['devices'])}
        done={(id) => {
          notify(`${id} is registered.`);
          go(['devices', 'id', id]);
        }}
      />
    </>
  );
}
