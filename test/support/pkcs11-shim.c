/*
 * A PKCS#11 module in front of another one, for fault tests. It passes every call on. When the file SHIM_ORDER says
 * "CALL DEED", it first does the deed to the other module's sessions at the next CALL, as a token does that somebody
 * else has reset, and then passes the call on: what comes back is the other module's own answer.
 *
 *   CALL   C_SignInit, C_Sign
 *   DEED   C_Logout, C_CloseAllSessions
 *
 * The order is taken by removing the file; "DEED RESULT" is then in SHIM_ORDER.done. No header of PKCS#11 is needed:
 * version 2.40, §3.6 fixes the order of the functions, and CK_ULONG is an unsigned long.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef unsigned long ck_ulong;

enum { GET_FUNCTION_LIST = 3, CLOSE_ALL_SESSIONS = 14, GET_SESSION_INFO = 15, LOGOUT = 19, SIGN_INIT = 42, SIGN = 43 };

struct function_list {
  unsigned char version[2];
  void *functions[68];
};

struct session_info {
  ck_ulong slot, state, flags, device_error;
};

static struct function_list *real;
static struct function_list ours;

typedef ck_ulong (*with_handle)(ck_ulong);
typedef ck_ulong (*get_session_info)(ck_ulong, struct session_info *);
typedef ck_ulong (*sign_init)(ck_ulong, void *, ck_ulong);
typedef ck_ulong (*sign)(ck_ulong, unsigned char *, ck_ulong, unsigned char *, ck_ulong *);
typedef ck_ulong (*get_function_list)(struct function_list **);

static ck_ulong do_deed(const char *deed, ck_ulong session) {
  struct session_info info;
  ck_ulong result;
  if (strcmp(deed, "C_Logout") == 0) return ((with_handle)real->functions[LOGOUT])(session);
  result = ((get_session_info)real->functions[GET_SESSION_INFO])(session, &info);
  return result != 0 ? result : ((with_handle)real->functions[CLOSE_ALL_SESSIONS])(info.slot);
}

static void obey(const char *call, ck_ulong session) {
  const char *path = getenv("SHIM_ORDER");
  char wanted[32], deed[32], done[4096];
  FILE *file = path == NULL ? NULL : fopen(path, "r");
  int words;
  if (file == NULL) return;
  words = fscanf(file, "%31s %31s", wanted, deed);
  fclose(file);
  /* Of several threads the one that removes the file does it. */
  if (words != 2 || strcmp(wanted, call) != 0 || unlink(path) != 0) return;
  snprintf(done, sizeof done, "%s.done", path);
  file = fopen(done, "w");
  if (file == NULL) return;
  fprintf(file, "%s %lu", deed, do_deed(deed, session));
  fclose(file);
}

static ck_ulong our_sign_init(ck_ulong session, void *mechanism, ck_ulong key) {
  obey("C_SignInit", session);
  return ((sign_init)real->functions[SIGN_INIT])(session, mechanism, key);
}

static ck_ulong our_sign(ck_ulong session, unsigned char *data, ck_ulong length, unsigned char *signature,
                         ck_ulong *signature_length) {
  obey("C_Sign", session);
  return ((sign)real->functions[SIGN])(session, data, length, signature, signature_length);
}

ck_ulong C_GetFunctionList(struct function_list **list) {
  if (real == NULL) {
    const char *path = getenv("SHIM_MODULE");
    void *library = path == NULL ? NULL : dlopen(path, RTLD_NOW | RTLD_LOCAL);
    get_function_list get = library == NULL ? NULL : (get_function_list)dlsym(library, "C_GetFunctionList");
    if (get == NULL || get(&real) != 0) return 5; /* CKR_GENERAL_ERROR */
    ours = *real;
    ours.functions[GET_FUNCTION_LIST] = (void *)C_GetFunctionList;
    ours.functions[SIGN_INIT] = (void *)our_sign_init;
    ours.functions[SIGN] = (void *)our_sign;
  }
  *list = &ours;
  return 0;
}
