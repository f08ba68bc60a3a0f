import type { Result } from '../audio/audio-ports.ts';
import { dataUrlFault, isDataUrl } from '../contract/data-url.ts';
import { URL_MAX_CHARS } from '../contract/fields.ts';

export interface UrlPolicy {
  /** Opens 127.0.0.0/8, ::1 and localhost; local development only. */
  readonly allowLoopback: boolean;
}

/** `message` is one sentence for the caller and never repeats the URL. */
export interface UrlError {
  readonly reason: 'invalid' | 'private_address';
  readonly message: string;
}

type Checked = Result<URL, UrlError>;

/** Names of this machine or its network. */
const CLOSED_NAMES = new Set(['ip6-localhost', 'ip6-loopback', 'broadcasthost', 'instance-data', 'metadata']);
const CLOSED_SUFFIXES = [
  // Special-use names of RFC 6761, 6762 (with its appendix G), 7686, 8375 and 9476; `internal` is ICANN's of 2024.
  'localhost',
  'test',
  'invalid',
  'example',
  'local',
  'intranet',
  'internal',
  'private',
  'corp',
  'home',
  'lan',
  'onion',
  'alt',
  // Contains reverse zones, home.arpa and service names of networks, but no web sites.
  'arpa',
  // Names of this machine in the hosts files of Linux distributions.
  'localdomain',
  'localdomain4',
  'localdomain6',
  // Services of a Kubernetes cluster, where the search path completes the name; *.svc.cluster.local ends in `local`.
  'svc',
  // Public domains that resolve to the address in the name, or to loopback.
  'nip.io',
  'sslip.io',
  'xip.io',
  'localtest.me',
  'lvh.me',
  'vcap.me',
  'lacolhost.com',
];

const SOURCE = 'The address of the recording';

/** Scheme of RFC 3986 §3.1, after white space, which the URL parser removes. */
const SCHEME = /^\s*[a-z][a-z\d+.-]*:/i;

const invalid = (message: string): Result<never, UrlError> => ({ ok: false, error: { reason: 'invalid', message } });
const closed = (message: string): Checked => ({ ok: false, error: { reason: 'private_address', message } });

/**
 * Checks the address of a recording: http, https, or `data:` of at most 8 MiB. Refuses IP addresses that are not
 * public, in every notation of a URL, and names that are known to be internal. Does not resolve names.
 */
export function checkSourceUrl(url: string, policy: UrlPolicy): Result<unknown, UrlError> {
  if (!isDataUrl(url)) return checkAddress(url, policy, SOURCE, 'https, http, media:// or data:');
  const fault = dataUrlFault(url);
  return fault === undefined ? { ok: true, value: url } : invalid(fault);
}

/** The same for http and https only, also used for each redirect. */
export function checkHttpUrl(url: string, policy: UrlPolicy): Checked {
  return checkAddress(url, policy, SOURCE, 'http or https');
}

/**
 * Policy for redirects from an address: only a loopback address may redirect to loopback. The caller chose that
 * address, but not where another server redirects to.
 */
export function redirectPolicy(policy: UrlPolicy, from: URL): UrlPolicy {
  return { allowLoopback: policy.allowLoopback && isLoopback(hostOf(from)) };
}

/** Checks a callback address: https, or http to loopback if the policy allows it. */
export function checkWebhookUrl(url: string, policy: UrlPolicy): Checked {
  const subject = 'The webhook address';
  const checked = checkAddress(url, policy, subject, 'https');
  if (!checked.ok || checked.value.protocol === 'https:') return checked;
  return policy.allowLoopback && isLoopback(hostOf(checked.value)) ? checked : invalid(`${subject} must be https.`);
}

/** @param schemes the allowed schemes, for the message */
function checkAddress(url: string, policy: UrlPolicy, subject: string, schemes: string): Checked {
  // Check the length before parsing: the time for names with non-Latin letters grows faster than their length.
  if (url.length > URL_MAX_CHARS) return invalid(`${subject} is longer than ${URL_MAX_CHARS} characters.`);
  // For a file path or a host without a scheme, this message helps more than that of an invalid URL.
  if (!SCHEME.test(url)) return invalid(`${subject} must be ${schemes}.`);
  if (!URL.canParse(url)) return invalid(`${subject} is not a valid URL.`);
  const parsed = new URL(url);
  if (parsed.protocol !== 'http:' && parsed.protocol !== 'https:') return invalid(`${subject} must be ${schemes}.`);
  if (parsed.username !== '' || parsed.password !== '') {
    return invalid(`${subject} must not contain a user name or password.`);
  }
  const host = hostOf(parsed);
  if (policy.allowLoopback && isLoopback(host)) return { ok: true, value: parsed };
  return isPublicHost(host) ? { ok: true, value: parsed } : closed(`${subject} points into a private network.`);
}

/**
 * The host in lower case, without trailing dots; the URL parser has already normalised addresses. A loop removes the
 * dots, because a regular expression takes quadratic time on a host of many dots.
 */
function hostOf(url: URL): string {
  const host = url.hostname.toLowerCase();
  let end = host.length;
  while (end > 0 && host[end - 1] === '.') end--;
  return host.slice(0, end);
}

const isLoopbackName = (host: string) => host === 'localhost' || host.endsWith('.localhost');

function isLoopback(host: string): boolean {
  if (host.startsWith('[')) return isLoopbackV6(ipv6Groups(host.slice(1, -1)));
  return isIpv4(host) ? isLoopbackV4(host) : isLoopbackName(host);
}

function isPublicHost(host: string): boolean {
  if (host.startsWith('[')) return isPublicV6(ipv6Groups(host.slice(1, -1)));
  if (isIpv4(host)) return isPublicV4(host);
  // A name without a dot is resolved in the server's own network.
  if (!host.includes('.') || CLOSED_NAMES.has(host)) return false;
  return !CLOSED_SUFFIXES.some((suffix) => host === suffix || host.endsWith(`.${suffix}`));
}

/**
 * Only public unicast addresses may be fetched from. Sources of the ranges: the IANA special-purpose address registries
 * for IPv4 and IPv6 (RFC 6890), and the metadata services of the large clouds.
 */

/** `[address, prefix length]` of IPv4 ranges that are not public. */
const CLOSED_V4: readonly (readonly [string, number])[] = [
  ['0.0.0.0', 8], // this network
  ['10.0.0.0', 8], // private
  ['100.64.0.0', 10], // carrier-grade NAT, and a cloud's metadata service
  ['127.0.0.0', 8], // loopback
  ['168.63.129.16', 32], // a cloud's metadata service
  ['169.254.0.0', 16], // link-local, metadata services
  ['172.16.0.0', 12], // private
  ['192.0.0.0', 24], // protocol assignments, a cloud's metadata service
  ['192.0.2.0', 24], // documentation
  ['192.31.196.0', 24], // AS112
  ['192.52.193.0', 24], // AMT
  ['192.88.99.0', 24], // 6to4 relays
  ['192.168.0.0', 16], // private
  ['192.175.48.0', 24], // AS112
  ['198.18.0.0', 15], // benchmarks
  ['198.51.100.0', 24], // documentation
  ['203.0.113.0', 24], // documentation
  ['224.0.0.0', 4], // multicast
  ['240.0.0.0', 4], // reserved, broadcast
];

/** IPv6 ranges in the global unicast space 2000::/3 that are not public; addresses outside it are never public. */
const CLOSED_V6: readonly (readonly [string, number])[] = [
  ['2001::', 23], // protocol assignments: Teredo, ORCHID, benchmarks
  ['2001:db8::', 32], // documentation
  ['2620:4f:8000::', 48], // AS112
  ['3fff::', 20], // documentation
];

const v4Value = (text: string): number => text.split('.').reduce((value, part) => value * 256 + Number(part), 0);

/** @param host dotted decimal, as the URL parser writes every notation */
export const isIpv4 = (host: string): boolean => /^\d{1,3}(\.\d{1,3}){3}$/.test(host);

export const isLoopbackV4 = (host: string): boolean => host.startsWith('127.');

/** @param host dotted decimal */
export function isPublicV4(host: string): boolean {
  return isPublicV4Value(v4Value(host));
}

function isPublicV4Value(value: number): boolean {
  return !CLOSED_V4.some(([base, bits]) => {
    const size = 2 ** (32 - bits);
    return Math.floor(value / size) === Math.floor(v4Value(base) / size);
  });
}

/** The eight 16-bit groups of an address as the URL parser writes it (compressed, no dotted part, no zone). */
export function ipv6Groups(host: string): number[] {
  const [head, tail] = host.split('::') as [string, string | undefined];
  const parse = (text: string | undefined) => (text ? text.split(':').map((group) => Number.parseInt(group, 16)) : []);
  const before = parse(head);
  const after = parse(tail);
  return [...before, ...new Array<number>(tail === undefined ? 0 : 8 - before.length - after.length).fill(0), ...after];
}

export const isLoopbackV6 = (groups: readonly number[]): boolean =>
  groups.every((group, i) => group === (i === 7 ? 1 : 0));

/** An address that embeds an IPv4 address is public if that one is. */
export function isPublicV6(groups: readonly number[]): boolean {
  const embedded = embeddedV4(groups);
  if (embedded !== undefined) return isPublicV4Value(embedded);
  if (groups[0] >> 13 !== 1 || (isIsatap(groups) && !isPublicV4Value(lastV4(groups)))) return false;
  return !CLOSED_V6.some(([base, bits]) => hasPrefix(groups, ipv6Groups(base), bits));
}

/** RFC 5214 §6.1: `0000:5efe` or `0200:5efe` before the IPv4 address, in any prefix. */
const isIsatap = (groups: readonly number[]): boolean =>
  (groups[4] === 0 || groups[4] === 0x200) && groups[5] === 0x5efe;

const lastV4 = (groups: readonly number[]): number => groups[6] * 65536 + groups[7];

function embeddedV4(groups: readonly number[]): number | undefined {
  const last = lastV4(groups);
  const zeros = (from: number, to: number) => groups.slice(from, to).every((group) => group === 0);
  if (zeros(0, 5) && groups[5] === 0xffff) return last; // mapped, ::ffff:0:0/96
  if (zeros(0, 6)) return last; // compatible, ::/96
  if (zeros(0, 4) && groups[4] === 0xffff && groups[5] === 0) return last; // translated, ::ffff:0:0:0/96
  if (groups[0] === 0x64 && groups[1] === 0xff9b && zeros(2, 6)) return last; // NAT64, 64:ff9b::/96
  if (groups[0] === 0x2002) return groups[1] * 65536 + groups[2]; // 6to4, 2002::/16
  return undefined;
}

function hasPrefix(groups: readonly number[], base: readonly number[], bits: number): boolean {
  for (let i = 0, left = bits; left > 0; i++, left -= 16) {
    const shift = Math.max(0, 16 - left);
    if (groups[i] >> shift !== base[i] >> shift) return false;
  }
  return true;
}
