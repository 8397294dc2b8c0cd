/*
 * A PKCS#11 module in front of SoftHSM2, or of SHIM_TARGET, for tests. It passes every call on and adds the quirks named
 * in SHIM, comma separated, or in the file SHIM_FILE, which is read at each call. SHIM_LOG gets a line for each login,
 * session and signature. Some quirks have numbers: SHIM_MAX, SHIM_IDLE, SHIM_RV, SHIM_NTH, SHIM_MS, SHIM_FORK_S,
 * SHIM_LINES. SHIM_PIN is the PIN of quirks that log in on their own.
 *
 * The quirk "tries" locks the user's PIN at the third wrong one. The file SHIM_TRIES has their number.
 *
 * When the file SHIM_ORDER says "CALL DEED", it first does the deed to the other module's sessions at the next CALL, as
 * a token does that somebody else has reset, and then passes the call on.
 *
 *   CALL   C_SignInit, C_Sign
 *   DEED   C_Logout, C_CloseAllSessions
 *
 * The order is taken by removing the file; "DEED RESULT" is then in SHIM_ORDER.done.
 */
#define _GNU_SOURCE
#include <p11-kit/pkcs11.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>
#include <pthread.h>
#include <stdint.h>

static CK_FUNCTION_LIST real, mine;
static int loaded;
static int on(const char *q) {
  static char fb[2048]; const char *s = getenv("SHIM"), *ff = getenv("SHIM_FILE"); size_t n = strlen(q);
  char lb[2048]; (void)fb;
  if (ff) { FILE *f = fopen(ff, "r"); size_t l = f ? fread(lb, 1, sizeof lb - 1, f) : 0; if (f) fclose(f); while (l && (lb[l-1] == '\n')) l--; lb[l] = 0; s = lb; }
  while (s && *s) { const char *e = strchrnul(s, ','); if ((size_t)(e - s) == n && !strncmp(s, q, n)) return 1; s = *e ? e + 1 : e; }
  return 0;
}
static long num(const char *v, long d) { const char *s = getenv(v); return s ? strtol(s, 0, 0) : d; }
static unsigned char *pin(void) { char *s = getenv("SHIM_PIN"); return (unsigned char *)(s ? s : "1234pin"); }
#define PIN_LENGTH strlen((char *)pin())
static void trace(const char *what, unsigned long rv) {
  const char *f = getenv("SHIM_LOG"); if (!f) return;
  FILE *o = fopen(f, "a"); if (o) { fprintf(o, "%ld %d %s 0x%lx\n", (long)time(0), getpid(), what, rv); fclose(o); }
}
/* SoftHSM 2.6 may crash when it signs in one thread while another closes its sessions. */
static pthread_rwlock_t calls = PTHREAD_RWLOCK_INITIALIZER;
/* Of several threads the one that removes the file does it. */
static void obey(const char *call, CK_SESSION_HANDLE session) {
  const char *path = getenv("SHIM_ORDER");
  char wanted[32], deed[32], done[4096];
  CK_SESSION_INFO info;
  FILE *file = path ? fopen(path, "r") : NULL;
  if (!file) return;
  int words = fscanf(file, "%31s %31s", wanted, deed);
  fclose(file);
  if (words != 2 || strcmp(wanted, call) || unlink(path)) return;
  pthread_rwlock_wrlock(&calls);
  CK_RV r = !strcmp(deed, "C_Logout") ? real.C_Logout(session) : real.C_GetSessionInfo(session, &info);
  if (!r && strcmp(deed, "C_Logout")) r = real.C_CloseAllSessions(info.slotID);
  pthread_rwlock_unlock(&calls);
  snprintf(done, sizeof done, "%s.done", path);
  if (!(file = fopen(done, "w"))) return;
  fprintf(file, "%s %lu", deed, r);
  fclose(file);
}
static long tries(long set) {
  const char *path = getenv("SHIM_TRIES");
  long n = 0;
  FILE *file = path ? fopen(path, set < 0 ? "r" : "w") : NULL;
  if (!file) return 0;
  if (set >= 0) fprintf(file, "%ld", set);
  else if (fscanf(file, "%ld", &n) != 1) n = 0;
  fclose(file);
  return n;
}
#define BAD 99UL
#define AWS 0x2000000000000001UL
static CK_SLOT_ID first;
static CK_SLOT_ID in(CK_SLOT_ID s) { return on("bigslot") && s == AWS ? first : s; }

static CK_RV init(void *a) {
  CK_C_INITIALIZE_ARGS *x = a;
  if (on("cantlock") && x && (x->flags & CKF_OS_LOCKING_OK)) { trace("C_Initialize", CKR_CANT_LOCK); return CKR_CANT_LOCK; }
  if (on("needreserved") && !(x && x->pReserved)) return CKR_ARGUMENTS_BAD;
  if (on("stderr")) for (long k = num("SHIM_LINES", 1); k > 0; k--) fprintf(stderr, "vendor module: line %ld\n", k);
  if (on("stdout")) { printf("*** vendor module 1.0 loaded, license OK ***\n"); fflush(stdout); }
  if (on("fork")) { pid_t p = fork(); if (!p) { sleep(num("SHIM_FORK_S", 25)); _exit(0); } }
  if (on("chdir")) { if (chdir("/")) {} }
  CK_RV r = real.C_Initialize(on("cantlock") ? NULL : a); trace("C_Initialize", r); return r;
}
static CK_RV fini(void *a) {
  trace("C_Finalize", 0);
  if (on("finhang")) sleep(60);
  if (on("fincrash")) abort();
  return real.C_Finalize(a);
}
static CK_RV slots(unsigned char present, CK_SLOT_ID *list, unsigned long *n) {
  static int looks; if (on("lateslots") && !looks++) { *n = 0; return CKR_OK; }
  unsigned long k = 32; CK_SLOT_ID l[40]; CK_RV r = real.C_GetSlotList(present, l + 1, &k); if (r) return r;
  if (k) first = l[1];
  CK_SLOT_ID *s = l + 1;
  if (on("bigslot") && k) l[1] = AWS;
  if (on("badslot") || on("badslotinfo") || on("gone")) { l[0] = BAD; s = l; k++; }
  if (list) { if (*n < k) { *n = k; return CKR_BUFFER_TOO_SMALL; } memcpy(list, s, k * sizeof *list); }
  *n = k; return CKR_OK;
}
static CK_RV slotinfo(CK_SLOT_ID s, CK_SLOT_INFO *i) {
  if (s == BAD) { if (on("badslotinfo")) return CKR_DEVICE_ERROR; memset(i, 0, sizeof *i); memset(i->slotDescription, ' ', 64); memset(i->manufacturerID, ' ', 32); i->flags = CKF_TOKEN_PRESENT; return CKR_OK; }
  return real.C_GetSlotInfo(in(s), i);
}
static CK_RV tokeninfo(CK_SLOT_ID s, CK_TOKEN_INFO *i) {
  if (s == BAD) return on("gone") ? CKR_TOKEN_NOT_PRESENT : CKR_TOKEN_NOT_RECOGNIZED;
  CK_RV r = real.C_GetTokenInfo(in(s), i); if (r) return r;
  if (on("nullabel")) for (int k = 31; k >= 0 && i->label[k] == ' '; k--) i->label[k] = 0;
  if (on("nullabel2")) { int k = 31; while (k >= 0 && i->label[k] == ' ') k--; if (k < 31) i->label[k + 1] = 0; }
  if (on("nulljunk")) { int k = 31; while (k >= 0 && i->label[k] == ' ') k--; if (k < 30) memcpy(i->label + k + 1, "\0x", 2); }
  if (on("protauth")) i->flags |= CKF_PROTECTED_AUTHENTICATION_PATH;
  if (on("nologin")) i->flags &= ~(CK_FLAGS)(CKF_LOGIN_REQUIRED | CKF_USER_PIN_INITIALIZED);
  if (on("finaltry")) i->flags |= CKF_USER_PIN_FINAL_TRY;
  if (on("tries")) { long n = tries(-1); if (n) i->flags |= CKF_USER_PIN_COUNT_LOW; if (n == 2) i->flags |= CKF_USER_PIN_FINAL_TRY; if (n > 2) i->flags |= CKF_USER_PIN_LOCKED; }
  if (on("maxsess")) i->ulMaxSessionCount = i->ulMaxRwSessionCount = num("SHIM_MAX", 1);
  return CKR_OK;
}
static CK_RV mechs(CK_SLOT_ID s, CK_MECHANISM_TYPE *list, unsigned long *n) {
  CK_MECHANISM_TYPE l[512]; unsigned long k = 500, j = 0; CK_RV r = real.C_GetMechanismList(in(s), l, &k); if (r) return r;
  for (unsigned long i = 0; i < k; i++) {
    CK_MECHANISM_TYPE m = l[i];
    if (on("onlyecdsasha") && m == CKM_ECDSA) continue;
    if (on("onlyx509") && (m == CKM_RSA_PKCS || (m >= 0x40 && m <= 0x47) || m == 0x6 || m == 0x5 || m == 0xe)) continue;
    if (on("onlypss") && (m == CKM_RSA_PKCS || m == 3 || (m >= 0x40 && m <= 0x42) || m == 0x46)) continue;
    if (on("norsasha") && (m >= 0x40 && m <= 0x47)) continue;
    l[j++] = m;
  }
  if (on("nomechs")) j = 0;
  if (on("onlyecdsasha")) { l[j++] = 0x1044; l[j++] = 0x1045; }
  if (on("mechinfo")) l[j++] = 0x80000001UL;
  if (list) { if (*n < j) { *n = j; return CKR_BUFFER_TOO_SMALL; } memcpy(list, l, j * sizeof *l); }
  *n = j; return CKR_OK;
}
static CK_RV mechinfo(CK_SLOT_ID s, CK_MECHANISM_TYPE m, CK_MECHANISM_INFO *i) {
  if (on("mechinfo") && m == 0x80000001UL) return CKR_MECHANISM_INVALID;
  if (on("onlyecdsasha") && (m == 0x1044 || m == 0x1045)) m = CKM_ECDSA;
  return real.C_GetMechanismInfo(in(s), m, i);
}

/* sessions: number, age, pending context login */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long openCount, loggedIn, signs, dead;
static struct { int used; double last; int ctx; CK_MECHANISM_TYPE m; } st[4096];
static double lastUse = 1e18;
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec / 1e9; }
static CK_RV alive(CK_SESSION_HANDLE h) {
  if (dead) return num("SHIM_RV", CKR_DEVICE_REMOVED);
  if (on("stuck")) { double t = now(); if (t - lastUse >= num("SHIM_IDLE", 1)) { dead = 1; return num("SHIM_RV", CKR_DEVICE_REMOVED); } lastUse = t; }
  if (on("idle") && h < 4096) { double t = now(); if (st[h].used && t - st[h].last >= (getenv("SHIM_IDLE") ? atof(getenv("SHIM_IDLE")) : 3)) return CKR_SESSION_HANDLE_INVALID; st[h].last = t; }
  return CKR_OK;
}
static CK_OBJECT_HANDLE seen[4096][8];
static CK_RV opens(CK_SLOT_ID s, CK_FLAGS f, void *a, CK_NOTIFY n, CK_SESSION_HANDLE *h) {
  if (on("rwonly") && !(f & CKF_RW_SESSION)) return num("SHIM_RV", CKR_ARGUMENTS_BAD);
  if (dead) return num("SHIM_RV", CKR_DEVICE_REMOVED);
  pthread_mutex_lock(&lock);
  CK_RV r = on("maxsess") && openCount >= num("SHIM_MAX", 1) ? (CK_RV)num("SHIM_COUNT_RV", CKR_SESSION_COUNT) : real.C_OpenSession(in(s), f, a, n, h);
  if (!r) { openCount++; if (*h < 4096) { st[*h].used = 1; st[*h].last = now(); st[*h].ctx = 0; memset(seen[*h], 0, sizeof seen[*h]); } }
  pthread_mutex_unlock(&lock); trace("C_OpenSession", r); return r;
}
static CK_RV closes(CK_SESSION_HANDLE h) {
  if (on("closefails")) return CKR_DEVICE_ERROR;
  CK_RV r = real.C_CloseSession(h); pthread_mutex_lock(&lock); openCount--; if (h < 4096) st[h].used = 0; pthread_mutex_unlock(&lock); return r;
}
static CK_RV login(CK_SESSION_HANDLE h, CK_USER_TYPE u, unsigned char *p, unsigned long n) {
  CK_RV r;
  if (u == 2 && on("noctx")) { trace("C_Login context", num("SHIM_RV", CKR_OPERATION_NOT_INITIALIZED)); return num("SHIM_RV", CKR_OPERATION_NOT_INITIALIZED); }
  if (u == 2) { int ok = !on("newpin") && n == PIN_LENGTH && !memcmp(p, pin(), n); if (ok && h < 4096) st[h].ctx = 1; trace("C_Login context", ok ? 0 : CKR_PIN_INCORRECT); return ok ? CKR_OK : CKR_PIN_INCORRECT; }
  if (on("tries")) {
    long wrong = tries(-1);
    r = wrong > 2 ? CKR_PIN_LOCKED : real.C_Login(h, u, p, n);
    tries(r == CKR_PIN_INCORRECT ? wrong + 1 : r ? wrong : 0);
    trace("C_Login", r);
    return r;
  }
  if (on("vendorpin")) { r = num("SHIM_RV", 0x80000163); trace("C_Login", r); return r; }
  if (on("nologin")) { trace("C_Login", CKR_USER_PIN_NOT_INITIALIZED); r = real.C_Login(h, u, pin(), PIN_LENGTH); return num("SHIM_RV", CKR_USER_PIN_NOT_INITIALIZED); }
  if (on("protauth")) { if (p && n) { trace("C_Login pin given", CKR_PIN_INCORRECT); return num("SHIM_RV", CKR_PIN_INCORRECT); } r = real.C_Login(h, u, pin(), PIN_LENGTH); trace("C_Login NULL", r); return r; }
  r = real.C_Login(h, u, p, n);
  if (on("alreadyin") && !r) { if (loggedIn++ >= num("SHIM_AFTER", 0)) r = CKR_USER_ALREADY_LOGGED_IN; }
  trace("C_Login", r); return r;
}
static unsigned long classOf(CK_SESSION_HANDLE h, CK_OBJECT_HANDLE o) { CK_OBJECT_CLASS c = 0; CK_ATTRIBUTE a = { CKA_CLASS, &c, sizeof c }; return real.C_GetAttributeValue(h, o, &a, 1) ? 0 : c; }
static CK_RV attrs(CK_SESSION_HANDLE h, CK_OBJECT_HANDLE o, CK_ATTRIBUTE *t, unsigned long n) {
  CK_RV r = alive(h); if (r) return r;
  unsigned long c = classOf(h, o); CK_RV worst = CKR_OK;
  for (unsigned long i = 0; i < n; i++) {
    CK_ATTRIBUTE *a = t + i; int priv = c == CKO_PRIVATE_KEY;
    int missing = (on("nopubexp") && priv && a->type == CKA_PUBLIC_EXPONENT) || (on("nosens") && (a->type == CKA_SENSITIVE || a->type == CKA_EXTRACTABLE)) || (on("noid") && priv && a->type == CKA_ID);
    int sens = on("noparams") && a->type == CKA_EC_PARAMS;
    if (missing || sens) { a->ulValueLen = (CK_ULONG)-1; worst = CKR_ATTRIBUTE_TYPE_INVALID; continue; }
    if ((on("alwaysauth") || on("alwaysauthsaid")) && a->type == CKA_ALWAYS_AUTHENTICATE) { if (a->pValue) *(unsigned char *)a->pValue = 1; a->ulValueLen = 1; continue; }
    unsigned char b[2048]; CK_ATTRIBUTE q = { a->type, b, sizeof b }; r = real.C_GetAttributeValue(h, o, &q, 1);
    if (r) { a->ulValueLen = q.ulValueLen; worst = r; continue; }
    unsigned char *v = b; unsigned long len = q.ulValueLen; unsigned char z[2100];
    if (on("rawpoint") && a->type == CKA_EC_POINT && len > 3 && b[0] == 4) { v = b + 2; len -= 2; if (b[1] & 0x80) { v += b[1] & 0x7f; len -= b[1] & 0x7f; } }
    if (on("comppoint") && a->type == CKA_EC_POINT && len == 67) { z[0] = 4; z[1] = 33; z[2] = 2 | (b[66] & 1); memcpy(z + 3, b + 3, 32); v = z; len = 35; }
    if (on("bitpoint") && a->type == CKA_EC_POINT && len == 67) { z[0] = 3; z[1] = 66; z[2] = 0; memcpy(z + 3, b + 2, 65); v = z; len = 68; }
    if (on("curvename") && a->type == CKA_EC_PARAMS) { memcpy(z, "\x13\x09secp256r1", 11); v = z; len = 11; }
    if (on("explicit") && a->type == CKA_EC_PARAMS) { FILE *f = fopen(getenv("SHIM_EXPLICIT") ? getenv("SHIM_EXPLICIT") : "explicit.der", "r"); if (f) { len = fread(z, 1, sizeof z, f); fclose(f); v = z; } }
    if (on("zeroexp") && a->type == CKA_PUBLIC_EXPONENT) { z[0] = 0; memcpy(z + 1, b, len); v = z; len++; }
    if (on("zeromod") && a->type == CKA_MODULUS) { z[0] = 0; memcpy(z + 1, b, len); v = z; len++; }
    if (on("nullkey") && a->type == CKA_LABEL) { memcpy(z, b, len); z[len] = 0; v = z; len++; }
    if (!a->pValue) { a->ulValueLen = len; continue; }
    if (a->ulValueLen < len) { a->ulValueLen = (CK_ULONG)-1; worst = CKR_BUFFER_TOO_SMALL; continue; }
    memcpy(a->pValue, v, len); a->ulValueLen = len;
  }
  return worst;
}
static CK_RV findinit(CK_SESSION_HANDLE h, CK_ATTRIBUTE *t, unsigned long n) { CK_RV r = alive(h); if (r) return r;
  if (on("nosearch")) for (unsigned long i = 0; i < n; i++) if (t[i].type != CKA_CLASS) return num("SHIM_RV", CKR_ATTRIBUTE_TYPE_INVALID);
  if (on("nullkey")) for (unsigned long i = 0; i < n; i++) if (t[i].type == CKA_LABEL && (t[i].ulValueLen == 0 || ((char *)t[i].pValue)[t[i].ulValueLen - 1])) { CK_ATTRIBUTE x = { CKA_LABEL, "no such label", 13 }; return real.C_FindObjectsInit(h, &x, 1); }
  return real.C_FindObjectsInit(h, t, n); }
static CK_RV sessioninfo(CK_SESSION_HANDLE h, CK_SESSION_INFO *i) { CK_RV r = alive(h); return r ? r : real.C_GetSessionInfo(h, i); }
static CK_RV find(CK_SESSION_HANDLE h, CK_OBJECT_HANDLE *o, CK_ULONG most, CK_ULONG *n) {
  CK_RV r = real.C_FindObjects(h, o, most, n);
  for (CK_ULONG i = 0; !r && i < *n && h < 4096; i++) seen[h][o[i] % 8] = o[i];
  return r;
}
static CK_RV signinit(CK_SESSION_HANDLE h, CK_MECHANISM *m, CK_OBJECT_HANDLE k) {
  obey("C_SignInit", h);
  CK_RV r = alive(h); if (r) return r;
  if (on("ownhandles") && h < 4096 && k != seen[h][k % 8]) return num("SHIM_RV", CKR_KEY_HANDLE_INVALID);
  if (h < 4096) { st[h].ctx = 0; st[h].m = m->mechanism; }
  if (on("shalie") && m->mechanism == CKM_SHA256_RSA_PKCS) { trace("C_SignInit SHA256_RSA", CKR_MECHANISM_INVALID); return CKR_MECHANISM_INVALID; }
  if (on("onlyecdsasha") && m->mechanism == CKM_ECDSA) return CKR_MECHANISM_INVALID;
  if (on("onlyecdsasha") && m->mechanism == 0x1044) { CK_MECHANISM e = { CKM_ECDSA, 0, 0 }; return real.C_SignInit(h, &e, k); }
  return real.C_SignInit(h, m, k);
}
static unsigned long der(unsigned char *o, const unsigned char *v, unsigned long n) { while (n > 1 && !*v) v++, n--; unsigned long p = 0; o[p++] = 2; int pad = *v >> 7; o[p++] = n + pad; if (pad) o[p++] = 0; memcpy(o + p, v, n); return p + n; }
static CK_RV realSign(CK_SESSION_HANDLE h, unsigned char *d, unsigned long n, unsigned char *s, unsigned long *len) {
  pthread_rwlock_rdlock(&calls);
  CK_RV r = real.C_Sign(h, d, n, s, len);
  pthread_rwlock_unlock(&calls); return r;
}
static CK_RV sign(CK_SESSION_HANDLE h, unsigned char *d, unsigned long n, unsigned char *s, unsigned long *len) {
  obey("C_Sign", h);
  CK_RV r = alive(h); if (r) { trace("C_Sign", r); return r; }
  if (on("idlesign") && h < 4096) { double t = now(), last = st[h].last; st[h].last = t; if (t - last >= num("SHIM_IDLE", 1)) { trace("C_Sign", num("SHIM_RV", CKR_DEVICE_ERROR)); return num("SHIM_RV", CKR_DEVICE_ERROR); } }
  if (on("badhash") && h < 4096 && (st[h].m == CKM_SHA256_RSA_PKCS || st[h].m == CKM_ECDSA)) { unsigned char junk[5120]; unsigned long jl = sizeof junk; real.C_Sign(h, d, n, junk, &jl); trace("C_Sign hash", CKR_FUNCTION_FAILED); return num("SHIM_RV", CKR_FUNCTION_FAILED); }
  if (on("hiddenauth") && h < 4096 && !st[h].ctx) { unsigned char junk[5120]; unsigned long jl = sizeof junk; real.C_Sign(h, d, n, junk, &jl); trace("C_Sign", CKR_USER_NOT_LOGGED_IN); return CKR_USER_NOT_LOGGED_IN; }
  if (on("shortdata") && n > 64 && h < 4096 && st[h].m == CKM_SHA256_RSA_PKCS) { unsigned char junk[5120]; unsigned long jl = sizeof junk; real.C_Sign(h, d, n, junk, &jl); trace("C_Sign", CKR_DATA_LEN_RANGE); return CKR_DATA_LEN_RANGE; }
  if (on("stdout")) { printf("signing...\n"); fflush(stdout); }
  if (on("slow")) usleep(num("SHIM_MS", 500) * 1000);
  if (on("alwaysauth") && h < 4096 && !st[h].ctx) { trace("C_Sign", CKR_USER_NOT_LOGGED_IN); return CKR_USER_NOT_LOGGED_IN; }
  pthread_mutex_lock(&lock); long k = ++signs; pthread_mutex_unlock(&lock);
  if (on("failnth") && k % num("SHIM_NTH", 3) == 0) { r = num("SHIM_RV", CKR_FUNCTION_FAILED); trace("C_Sign", r); unsigned char junk[5120]; unsigned long jl = sizeof junk; realSign(h, d, n, junk, &jl); return r; }
  if (on("diesat") && k > num("SHIM_NTH", 3)) { dead = 1; return num("SHIM_RV", CKR_DEVICE_REMOVED); }
  unsigned char dg[64]; if (on("onlyecdsasha") && h < 4096 && st[h].m == 0x1044) { CK_MECHANISM m = { CKM_SHA256, 0, 0 }; unsigned long dl = 64; CK_SESSION_HANDLE x; real.C_OpenSession(first, CKF_SERIAL_SESSION, 0, 0, &x); r = real.C_DigestInit(x, &m); if (!r) r = real.C_Digest(x, d, n, dg, &dl); real.C_CloseSession(x); if (r) return r; d = dg; n = dl; }
  if (on("exactbuf") && *len != 64) { trace("C_Sign exact", *len); }
  r = realSign(h, d, n, s, len);
  if (!r && s && on("dersig") && *len == 64) { unsigned char o[80]; unsigned long a = der(o + 2, s, 32); a += der(o + 2 + a, s + 32, 32); o[0] = 0x30; o[1] = a; memcpy(s, o, a + 2); *len = a + 2; }
  if (!r && s && (on("badsig") || (on("badhashsig") && h < 4096 && st[h].m == CKM_SHA256_RSA_PKCS))) s[0] ^= 1;
  trace("C_Sign", r); return r;
}
static CK_RV genpair(CK_SESSION_HANDLE h, CK_MECHANISM *m, CK_ATTRIBUTE *a, CK_ULONG an, CK_ATTRIBUTE *b, CK_ULONG bn, CK_OBJECT_HANDLE *p, CK_OBJECT_HANDLE *q) {
  if (on("needkeytype")) { int k = 0; for (CK_ULONG i = 0; i < an; i++) k += a[i].type == CKA_KEY_TYPE; for (CK_ULONG i = 0; i < bn; i++) k += b[i].type == CKA_KEY_TYPE; if (k < 2) return CKR_TEMPLATE_INCOMPLETE; }
  CK_ATTRIBUTE short_[2][32];
  for (int side = 0; side < 2; side++) {
    CK_ATTRIBUTE *t = side ? b : a; CK_ULONG l = side ? bn : an;
    memcpy(short_[side], t, l * sizeof *t);
    for (CK_ULONG i = 0; i < l; i++) if (t[i].type == CKA_ID) {
      if (on("noids")) return num("SHIM_RV", CKR_ATTRIBUTE_VALUE_INVALID);
      if (on("shortid") && t[i].ulValueLen > 2) short_[side][i].ulValueLen = 2;
    }
  }
  a = short_[0]; b = short_[1];
  if (on("nodecrypt")) for (CK_ULONG i = 0; i < bn; i++) if (b[i].type == CKA_DECRYPT || b[i].type == CKA_UNWRAP) return num("SHIM_RV", CKR_ATTRIBUTE_VALUE_INVALID);
  return real.C_GenerateKeyPair(h, m, a, an, b, bn, p, q);
}
static CK_RV fl(CK_FUNCTION_LIST **out);
CK_RV C_GetFunctionList(CK_FUNCTION_LIST **out) {
  if (!loaded) {
    const char *t = getenv("SHIM_TARGET"); void *l = dlopen(t ? t : "/usr/lib/softhsm/libsofthsm2.so", RTLD_NOW);
    if (!l) { fprintf(stderr, "%s\n", dlerror()); return CKR_GENERAL_ERROR; }
    CK_C_GetFunctionList g = (CK_C_GetFunctionList)dlsym(l, "C_GetFunctionList"); CK_FUNCTION_LIST *p; if (!g || g(&p)) return CKR_GENERAL_ERROR;
    real = *p; mine = *p;
    mine.C_GetFunctionList = fl; mine.C_Initialize = init; mine.C_Finalize = fini; mine.C_GetSlotList = slots; mine.C_GetSlotInfo = slotinfo; mine.C_GetTokenInfo = tokeninfo;
    mine.C_GetMechanismList = mechs; mine.C_GetMechanismInfo = mechinfo; mine.C_OpenSession = opens; mine.C_CloseSession = closes; mine.C_Login = login;
    mine.C_GetAttributeValue = attrs; mine.C_FindObjectsInit = findinit; mine.C_FindObjects = find; mine.C_GetSessionInfo = sessioninfo; mine.C_SignInit = signinit; mine.C_Sign = sign; mine.C_GenerateKeyPair = genpair; loaded = 1;
  }
  *out = &mine; return CKR_OK;
}
static CK_RV fl(CK_FUNCTION_LIST **o) { return C_GetFunctionList(o); }
