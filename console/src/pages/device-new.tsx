import { go } from '../shared/router.ts';
import { Heading } from '../ui/bits.tsx';
import { notify } from '../ui/notices.tsx';
import { deviceLink } from './device.tsx';
import { DeviceForm } from './device-form.tsx';

export function NewDevice() {
  return (
    <>
      <Heading title="New device" />
      <DeviceForm
        onClose={() => go(['devices'])}
        done={(device) => {
          notify(`${device.id} is registered.`);
          location.hash = deviceLink(device);
        }}
      />
    </>
  );
}
