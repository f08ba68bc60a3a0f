/**
 * Which IP addresses a server may be asked to fetch from: public unicast only. Sources: the IANA special-purpose address
 * registries for IPv4 and IPv6 (RFC 6890), and the metadata services of the large clouds.
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

/** IPv6 ranges inside the global unicast space 2000::/3 that are not public; all outside it is closed anyway. */
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

/** Addresses that stand for an IPv4 address are judged by that one. */
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
