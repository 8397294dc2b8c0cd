export function Mark() {
  return (
    <svg class="mark" viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="8" />
      <path d="M6 11c4 0 6 3 10 3s6-3 10-3M6 17c4 0 6 3 10 3s6-3 10-3M6 23c4 0 6 3 10 3s6-3 10-3" />
    </svg>
  );
}
