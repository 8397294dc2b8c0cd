/**
 * What a machine has to have for a test, and the one way to leave a test out: `describe.skipIf(!requires('pki'))`.
 *
 * What is missing is recorded with its reason, and `run-report.ts` lists it after the run. With `CI=true` a missing
 * part throws instead, so that nothing is left out silently where everything has to run.
 */
import { accessSync, constants, existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { delimiter, join } from 'node:path';
import { expect } from 'vitest';
import { missingDogtag } from './dogtag-folder.ts';
import { postgresPrograms } from './postgres.ts';
import { ROOT } from './root.ts';
import { recordNote } from './run-notes.ts';
import { ABOUT_FILES, isStoreInPostgres } from './wanted-store.ts';

/** Where `scripts/fetch-nss` leaves Mozilla's NSS, whose PKCS#11 library has ML-DSA. */
export const NSS_LIBRARIES = join(ROOT, '.cache', 'nss');

/** Where `scripts/fetch-estclient` leaves libest's client with the libraries it was built for. */
export const ESTCLIENT = join(ROOT, '.cache', 'libest', 'estclient');

/** Where the same script leaves OpenSSL 3.5, the first with ML-DSA. */
export const OPENSSL_35 = join(ROOT, '.cache', 'libest', 'openssl');

/** And Bouncy Castle of the same Debian, with ML-DSA. */
export const BOUNCY_CASTLE_PQC_JARS = ['bcprov', 'bcutil', 'bcpkix'].map((name) =>
  join(ROOT, '.cache', 'libest', 'usr', 'share', 'java', `${name}.jar`),
);

/** The jars of Debian's libbcpkix-java and what it depends on. */
export const BOUNCY_CASTLE_JARS = ['bcprov', 'bcutil', 'bcpkix'].map((name) => `/usr/share/java/${name}.jar`);

/** Bouncy Castle's TLS, of Debian's libbctls-java. */
export const BOUNCY_CASTLE_TLS_JAR = '/usr/share/java/bctls.jar';

/** Where Debian installs libraries. */
export const LIBRARIES = `/usr/lib/${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}-linux-gnu`;

/** Gives a program another time, of Debian's faketime; the variant for threads. */
export const LIBFAKETIME = `${LIBRARIES}/faketime/libfaketimeMT.so.1`;

/** libp11's engine for OpenSSL 3. */
const PKCS11_ENGINE = `${LIBRARIES}/engines-3/pkcs11.so`;

const SYSTEM_FOLDERS = ['/usr/local/sbin', '/usr/sbin', '/sbin'];

/** The full path of a command on the PATH or in the system administrator's folders. */
export function findCommand(name: string): string | undefined {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), ...SYSTEM_FOLDERS];
  return folders.map((folder) => join(folder, name)).find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** A probe gives the reason why a part cannot be used, or nothing when it can. */
type Probe = () => string | undefined;

function commands(hint: string, ...names: string[]): Probe {
  return () => {
    const missing = names.filter((name) => findCommand(name) === undefined);
    return missing.length === 0 ? undefined : `${missing.join(', ')} not found (${hint})`;
  };
}

function files(hint: string, ...paths: string[]): Probe {
  return () => {
    const missing = paths.filter((path) => !existsSync(path));
    return missing.length === 0 ? undefined : `${missing.join(', ')} not found (${hint})`;
  };
}

function npmPackage(name: string, hint: string): Probe {
  return () => {
    try {
      createRequire(import.meta.url).resolve(name);
      return undefined;
    } catch {
      return `the optional npm package ${name} is not installed (${hint})`;
    }
  };
}

function all(...probes: Probe[]): Probe {
  return () => probes.map((probe) => probe()).find((reason) => reason !== undefined);
}

const PROBES = {
  curl: commands('Debian package curl', 'curl'),
  openssl: commands('Debian package openssl', 'openssl'),
  haproxy: commands('Debian package haproxy', 'haproxy'),
  pgbouncer: commands('Debian package pgbouncer', 'pgbouncer'),
  nginx: all(
    commands('Debian package nginx', 'nginx'),
    files('Debian package libnginx-mod-stream', '/usr/lib/nginx/modules/ngx_stream_module.so'),
  ),
  apache: all(
    commands('Debian package apache2-bin', 'apache2'),
    files('Debian package apache2-bin', '/usr/lib/apache2/modules/mod_ssl.so'),
  ),
  mosquitto: commands('Debian package mosquitto', 'mosquitto'),
  charon: commands('Debian packages charon-systemd and strongswan-swanctl', 'charon-systemd', 'swanctl'),
  eapol: commands('Debian packages hostapd and eapoltest', 'hostapd', 'eapol_test'),
  slapd: commands('Debian package slapd', 'slapd', 'slapadd'),
  locales: files('Debian package locales', '/usr/share/i18n/locales/de_DE'),
  samba: commands('Debian packages samba, samba-ad-provision', 'samba', 'samba-tool'),
  caddy: commands('Debian package caddy', 'caddy'),
  cfssl: commands('Debian packages golang-cfssl and jq', 'cfssl', 'jq'),
  pebble: commands('Debian package pebble', 'pebble', 'pebble-challtestsrv'),
  promtool: commands('Debian package prometheus', 'promtool', 'prometheus'),
  pki: commands('Debian package strongswan-pki', 'pki'),
  estclient: files("libest's client: scripts/fetch-estclient, or scripts/test", ESTCLIENT),
  openssl35: files('OpenSSL 3.5: scripts/fetch-estclient, or scripts/test', OPENSSL_35),
  gnutls: commands('Debian package gnutls-bin', 'certtool', 'ocsptool'),
  certutil: commands('Debian package libnss3-tools', 'certutil'),
  nss: all(
    files("Debian testing's NSS: scripts/fetch-nss, or scripts/test", join(NSS_LIBRARIES, 'libsoftokn3.so')),
    commands('Debian package libnss3-tools', 'certutil'),
    npmPackage('graphene-pk11', 'needs python3, make and g++ at npm ci'),
  ),
  bouncycastlePqc: all(
    commands('Debian package default-jdk-headless', 'java', 'javac'),
    files("Bouncy Castle's newer jars: scripts/fetch-estclient, or scripts/test", ...BOUNCY_CASTLE_PQC_JARS),
  ),
  bouncycastle: all(
    commands('Debian package default-jdk-headless', 'java', 'javac'),
    files('Debian package libbcpkix-java', ...BOUNCY_CASTLE_JARS),
  ),
  bouncycastleTls: files('Debian package libbctls-java', BOUNCY_CASTLE_TLS_JAR),
  softhsm: all(
    files('Debian package softhsm2', '/usr/lib/softhsm/libsofthsm2.so'),
    commands('Debian package softhsm2', 'softhsm2-util'),
    commands('Debian package opensc', 'pkcs11-tool'),
    npmPackage('graphene-pk11', 'needs python3, make and g++ at npm ci'),
  ),
  p11kit: commands('Debian package p11-kit', 'p11-kit'),
  pkcs11Shim: all(
    commands('Debian package gcc', 'cc'),
    files('Debian package libp11-kit-dev', '/usr/include/p11-kit-1/p11-kit/pkcs11.h'),
  ),
  softwareTpm: all(
    commands('Debian packages swtpm, dbus-daemon and tpm2-abrmd', 'swtpm', 'dbus-daemon', 'tpm2-abrmd'),
    commands('Debian package libtpm2-pkcs11-tools', 'tpm2_ptool'),
    files('Debian package libtpm2-pkcs11-1', join(LIBRARIES, 'libtpm2_pkcs11.so.1')),
    files('Debian package libtss2-tcti-tabrmd0', join(LIBRARIES, 'libtss2-tcti-tabrmd.so.0')),
  ),
  opencryptoki: all(
    commands('Debian package opencryptoki', 'pkcsslotd', 'pkcsconf'),
    files('Debian package opencryptoki', join(LIBRARIES, 'pkcs11/libopencryptoki.so')),
    () => (process.getuid?.() === 0 ? undefined : 'pkcsslotd needs root'),
  ),
  tokenTls: files('Debian package libengine-pkcs11-openssl', PKCS11_ENGINE),
  kdc: all(
    commands('Debian packages krb5-kdc and krb5-admin-server', 'krb5kdc', 'kdb5_util', 'kadmin.local'),
    commands('Debian package krb5-user', 'kinit'),
    npmPackage('kerberos', 'needs python3, make, g++ and libkrb5-dev at npm ci'),
  ),
  chromium: commands('Debian package chromium', 'chromium'),
  opensmtpd: commands('Debian package opensmtpd', 'smtpd'),
  cc: commands('Debian package gcc', 'cc'),
  faketime: files('Debian package faketime', LIBFAKETIME),
  ext4: commands('Debian package e2fsprogs', 'mkfs.ext4', 'e2fsck'),
  gssproxy: commands('Debian package gssproxy', 'gssproxy'),
  dogtag: missingDogtag,
  postgres: () => (postgresPrograms() === undefined ? 'initdb not found (Debian package postgresql)' : undefined),
  dpkg: commands('Debian package dpkg', 'dpkg-deb'),
  systemdAnalyze: commands('Debian package systemd', 'systemd-analyze'),
  systemdNotify: commands('Debian packages systemd and python3', 'systemd-notify', 'python3'),
  storeInFile: () => (isStoreInPostgres() ? ABOUT_FILES : undefined),
  root: () => (process.getuid?.() === 0 ? undefined : 'needs root'),
} satisfies Record<string, Probe>;

/** A part of the machine that some tests need. */
export type Requirement = keyof typeof PROBES;

/**
 * Whether everything named is at hand. If not, the reasons are recorded for the list at the end of the run.
 *
 * @throws {Error} with `CI=true`, where leaving a test out is a failure.
 */
export function requires(...needs: readonly Requirement[]): boolean {
  const reasons = needs.map((need) => PROBES[need]()).filter((reason) => reason !== undefined);
  for (const reason of reasons) recordSkip(reason);
  return reasons.length === 0;
}

/**
 * Records why tests of the current file are left out; for reasons that only the test itself can find out.
 *
 * @throws {Error} with `CI=true`.
 */
export function recordSkip(reason: string): void {
  if (process.env['CI'] === 'true' && reason !== ABOUT_FILES)
    throw new Error(`CI=true, and this machine cannot run these tests: ${reason}`);
  recordNote('skip', reason, 0, expect.getState().testPath);
}
