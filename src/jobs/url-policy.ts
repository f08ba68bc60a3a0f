import type { Result } from '../audio/audio-ports.ts';
import { dataUrlFault, isDataUrl } from '../contract/data-url.ts';
import { URL_MAX_CHARS } from '../contract/fields.ts';
import { ipv6Groups, isIpv4, isLoopbackV4, isLoopbackV6, isPublicV4, isPublicV6 } from './ip-policy.ts';

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

/** Names that always mean this machine or its network. */
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
  // Holds the reverse zones, home.arpa and service names of networks; no site.
  'arpa',
  // Names of this machine in the hosts files of Linux distributions.
  'localdomain',
  'localdomain4',
  'localdomain6',
  // Services of a Kubernetes cluster, whose search path completes the name; *.svc.cluster.local ends in `local`.
  'svc',
  // Public names whose answer is any address that the name spells, or loopback.
  'nip.io',
  'sslip.io',
  'xip.io',
  'localtest.me',
  'lvh.me',
  'vcap.me',
  'lacolhost.com',
];

const SOURCE = 'The address of the recording';

/** RFC 3986 §3.1, behind the white space that the URL parser takes off. */
const SCHEME = /^\s*[a-z][a-z\d+.-]*:/i;

const invalid = (message: string): Result<never, UrlError> => ({ ok: false, error: { reason: 'invalid', message } });
const closed = (message: string): Checked => ({ ok: false, error: { reason: 'private_address', message } });

/**
 * The address of a recording: http, https, or `data:` of at most 8 MiB. Literal addresses are judged in every notation
 * that URLs have; names are judged where they are known to be internal. What a name resolves to is not known here.
 */
export function checkSourceUrl(url: string, policy: UrlPolicy): Result<unknown, UrlError> {
  if (!isDataUrl(url)) return checkAddress(url, policy, SOURCE, 'https, http, media:// or data:');
  const fault = dataUrlFault(url);
  return fault === undefined ? { ok: true, value: url } : invalid(fault);
}

/** As `checkSourceUrl`, http and https only: also for each redirect. */
export function checkHttpUrl(url: string, policy: UrlPolicy): Checked {
  return checkAddress(url, policy, SOURCE, 'http or https');
}

/** What redirects from an address may lead to: into loopback only from there, where the caller pointed, not a server of somebody else's. */
export function redirectPolicy(policy: UrlPolicy, from: URL): UrlPolicy {
  return { allowLoopback: policy.allowLoopback && isLoopback(hostOf(from)) };
}

/** A callback address: https, or http to loopback where the policy opens it. */
export function checkWebhookUrl(url: string, policy: UrlPolicy): Checked {
  const subject = 'The webhook address';
  const checked = checkAddress(url, policy, subject, 'https');
  if (!checked.ok || checked.value.protocol === 'https:') return checked;
  return policy.allowLoopback && isLoopback(hostOf(checked.value)) ? checked : invalid(`${subject} must be https.`);
}

/** @param schemes what the caller may use, in words */
function checkAddress(url: string, policy: UrlPolicy, subject: string, schemes: string): Checked {
  // Before it is parsed: the time that a parser takes grows faster than a name of other letters than Latin ones.
  if (url.length > URL_MAX_CHARS) return invalid(`${subject} is longer than ${URL_MAX_CHARS} characters.`);
  // Of a file's path, or a host alone, it says more what has to be in front than that it is no URL.
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
 * Lower case, without the dot of the root; the URL parser has already brought every notation of an address to one. Dots are taken off by
 * hand: a pattern would try every run of dots in a name that is nothing else, each from its start.
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
  // A name without a dot is looked up in the network that the server itself is in.
  if (!host.includes('.') || CLOSED_NAMES.has(host)) return false;
  return !CLOSED_SUFFIXES.some((suffix) => host === suffix || host.endsWith(`.${suffix}`));
}
