/** What is deleted for its age is found without a look at everything. */
export const retention = `
CREATE INDEX request_by_otp ON request (otp_id) WHERE otp_id IS NOT NULL;
CREATE INDEX device_event_by_seq ON device_event (seq);
CREATE INDEX device_by_end ON device (not_after) WHERE not_after IS NOT NULL;
`;
