import { describe, expect, it } from 'vitest';
import { checkHttpUrl, checkSourceUrl, checkWebhookUrl } from './url-policy.ts';

const strict = { allowLoopback: false };
const local = { allowLoopback: true };

const OPEN = [
  'http://example.com/a.wav',
  'https://example.com:8443/a.wav?sig=x#y',
  'https://EXAMPLE.com./a.wav',
  'http://8.8.8.8/',
  'http://100.63.255.255/',
  'http://100.128.0.1/',
  'http://172.15.0.1/',
  'http://172.32.0.1/',
  'http://198.17.255.255/',
  'http://198.20.0.1/',
  'http://223.255.255.255/',
  'http://[2606:4700:4700::1111]/',
  'http://[::ffff:8.8.8.8]/',
  'http://[64:ff9b::808:808]/',
  'http://[2606:4700::5efe:808:808]/',
  'https://localhost.example.com/',
  'https://svc.example.com/',
  'https://internal.example.com/',
  'https://xn--bcher-kva.example.org/',
];

const LOOPBACK = [
  'http://localhost/',
  'http://localhost:8080/a.wav',
  'http://LOCALHOST./',
  'http://api.localhost/',
  'http://127.0.0.1/',
  'http://127.1/',
  'http://127.255.255.254/',
  'http://2130706433/',
  'http://0x7f000001/',
  'http://0x7f.1/',
  'http://0177.0.0.1/',
  'http://017700000001/',
  'http://127.0.0.1./',
  'http://%31%32%37.0.0.1/',
  'http://127。0。0。1/',
  'http://①②⑦.0.0.1/',
  'http://[::1]/',
  'http://[0:0:0:0:0:0:0:1]/',
  'http://[::0.0.0.1]/',
];

const CLOSED = [
  // IPv4, each range and its ends
  'http://0.0.0.0/',
  'http://0/',
  'http://10.0.0.1/',
  'http://10.255.255.255/',
  'http://167772161/',
  'http://0xa.1/',
  'http://012.0.0.1/',
  'http://100.64.0.1/',
  'http://100.100.100.200/',
  'http://100.127.255.255/',
  'http://168.63.129.16/',
  'http://169.254.169.254/latest/meta-data/',
  'http://169.254.43518/',
  'http://2852039166/',
  'http://0xA9FEA9FE/',
  'http://0251.0376.0251.0376/',
  'http://172.16.0.1/',
  'http://172.31.255.255/',
  'http://192.0.0.192/',
  'http://192.0.2.1/',
  'http://192.88.99.1/',
  'http://192.168.0.1/',
  'http://192.168.1/',
  'http://3232235521/',
  'http://198.18.0.1/',
  'http://198.19.255.255/',
  'http://198.51.100.7/',
  'http://203.0.113.9/',
  'http://224.0.0.1/',
  'http://239.255.255.255/',
  'http://240.0.0.1/',
  'http://255.255.255.255/',
  'http://4294967295/',
  // IPv6
  'http://[::]/',
  'http://[::ffff:127.0.0.1]/',
  'http://[::ffff:7f00:1]/',
  'http://[::ffff:10.0.0.1]/',
  'http://[::ffff:169.254.169.254]/',
  'http://[::127.0.0.1]/',
  'http://[::10.0.0.1]/',
  'http://[::ffff:0:10.0.0.1]/',
  'http://[64:ff9b::7f00:1]/',
  'http://[64:ff9b::a9fe:a9fe]/',
  'http://[64:ff9b:1::1]/',
  'http://[2002:7f00:1::]/',
  'http://[2002:a00:1::1]/',
  'http://[2002:a9fe:a9fe::]/',
  'http://[2001::1]/',
  'http://[2001:0:7f00:1::]/',
  'http://[2001:10::1]/',
  'http://[2001:db8::1]/',
  'http://[3fff::1]/',
  'http://[3fff:fff::1]/',
  'http://[fc00::1]/',
  'http://[fd00:ec2::254]/',
  'http://[fe80::1]/',
  'http://[fec0::1]/',
  'http://[ff02::1]/',
  'http://[100::1]/',
  'http://[5f00::1]/',
  'http://[2001:4860:4860::5efe:7f00:1]/',
  'http://[2606:4700::200:5efe:a9fe:a9fe]/',
  'http://[fe80::5efe:808:808]/',
  // names
  'http://metadata.google.internal/computeMetadata/v1/',
  'http://metadata.google.internal./',
  'http://METADATA/',
  'http://instance-data/',
  'http://printer.local/',
  'http://localhost.localdomain/',
  'http://localhost4.localdomain4/',
  'http://localhost6.localdomain6/',
  'http://kubernetes.default.svc/',
  'http://kubernetes.default.svc.cluster.local/',
  'http://host.docker.internal/',
  'http://1.0.0.127.in-addr.arpa/',
  'http://ipv4only.arpa/',
  'http://printer.test/',
  'http://hidden.onion/',
  'http://ip6-localhost/',
  'http://intranet/',
  'http://db.corp/',
  'http://router.home.arpa/',
  'http://nas.lan/',
  'http://127.0.0.1.nip.io/',
  'http://localtest.me/',
  'http://a.lvh.me/',
];

const INVALID = [
  '',
  'recording.wav',
  '/recording.wav',
  'http://',
  'http:///',
  'http://exa mple.com/',
  'http://[::1',
  'http://[fe80::1%25eth0]/',
  'http://256.1.1.1/',
  'ftp://example.com/a.wav',
  'file:///etc/passwd',
  'javascript:alert(1)',
  'blob:https://example.com/1',
  'media://a.wav',
  'http://user@example.com/',
  'http://user:secret@example.com/',
  'http://:secret@example.com/',
];

describe('addresses of recordings', () => {
  it.each(OPEN)('opens %s', (url) => {
    expect(checkSourceUrl(url, strict)).toMatchObject({ ok: true });
    expect(checkSourceUrl(url, local)).toMatchObject({ ok: true });
  });

  it.each(LOOPBACK)('opens %s only where loopback is allowed', (url) => {
    expect(checkSourceUrl(url, strict)).toMatchObject({ ok: false, error: { reason: 'private_address' } });
    expect(checkSourceUrl(url, local)).toMatchObject({ ok: true });
  });

  it.each(CLOSED)('refuses %s', (url) => {
    for (const policy of [strict, local]) {
      expect(checkSourceUrl(url, policy)).toMatchObject({ ok: false, error: { reason: 'private_address' } });
    }
  });

  it.each(INVALID)('refuses %j as invalid', (url) => {
    for (const policy of [strict, local]) {
      expect(checkSourceUrl(url, policy)).toMatchObject({ ok: false, error: { reason: 'invalid' } });
    }
  });

  it('never repeats credentials', () => {
    const checked = checkSourceUrl('http://user:hunter2@example.com/?token=abc', strict);
    expect(JSON.stringify(checked)).not.toMatch(/hunter2|abc/);
  });
});

describe('data: URLs', () => {
  it('are accepted as recordings, but not as redirect targets', () => {
    expect(checkSourceUrl('data:audio/wav;base64,UklGRg==', strict)).toMatchObject({ ok: true });
    expect(checkSourceUrl('DATA:,abc', strict)).toMatchObject({ ok: true });
    expect(checkHttpUrl('data:,abc', strict)).toMatchObject({ ok: false });
  });

  it('must contain data, at most 8 MiB', () => {
    expect(checkSourceUrl('data:audio/wav;base64', strict)).toMatchObject({ ok: false });
    expect(checkSourceUrl('data:audio/wav;base64,', strict)).toMatchObject({ ok: false });
    const base64 = (bytes: number) => `data:audio/wav;base64,${'A'.repeat((bytes / 3) * 4)}`;
    expect(checkSourceUrl(base64(8_388_606), strict)).toMatchObject({ ok: true });
    expect(checkSourceUrl(base64(8_388_633), strict)).toMatchObject({ ok: false });
    // Line breaks and escapes do not count.
    const inLines = base64(8_300_001).replace(/A{76}/g, (line) => `${line}\r\n`);
    expect(checkSourceUrl(inLines, strict)).toMatchObject({ ok: true });
    expect(checkSourceUrl(inLines.replaceAll('\r\n', '%0D%0A').replaceAll('AAAA', 'A%2BAA'), strict)).toMatchObject({
      ok: true,
    });
  });
});

describe('webhook addresses', () => {
  it('must be https, except to loopback if that is allowed', () => {
    expect(checkWebhookUrl('https://example.com/hook', strict)).toMatchObject({ ok: true });
    expect(checkWebhookUrl('http://example.com/hook', strict)).toMatchObject({ ok: false });
    expect(checkWebhookUrl('http://example.com/hook', local)).toMatchObject({ ok: false });
    expect(checkWebhookUrl('http://localhost:9000/hook', local)).toMatchObject({ ok: true });
    expect(checkWebhookUrl('http://[::1]:9000/hook', local)).toMatchObject({ ok: true });
    expect(checkWebhookUrl('http://localhost:9000/hook', strict)).toMatchObject({ ok: false });
    expect(checkWebhookUrl('https://localhost:9000/hook', strict)).toMatchObject({ ok: false });
    expect(checkWebhookUrl('https://10.0.0.1/hook', local)).toMatchObject({ ok: false });
    expect(checkWebhookUrl('data:,x', local)).toMatchObject({ ok: false });
  });
});

it('checks a host of many dots and very long URLs quickly', () => {
  for (const dots of [1000, 8000, 3_000_000]) {
    expect(checkWebhookUrl(`https://a${'.'.repeat(dots)}b/`, strict).ok).toBe(dots <= 8000);
    expect(checkHttpUrl(`https://localhost${'.'.repeat(dots)}/`, strict)).toMatchObject({ ok: false });
  }
  expect(checkSourceUrl(`https://${'字'.repeat(1_000_000)}.com/`, strict)).toMatchObject({
    error: { message: 'The address of the recording is longer than 8192 characters.' },
  });
});

it('names the accepted schemes in its messages', () => {
  const messageOf = (checked: ReturnType<typeof checkSourceUrl>) => (checked.ok ? '' : checked.error.message);
  expect(messageOf(checkSourceUrl('ftp://example.com/a.wav', strict))).toMatch(
    /must be https, http, media:\/\/ or data:\./,
  );
  // A path or a host without a scheme gets the same message.
  for (const address of ['/home/ann/a.wav', 'a.wav', 'www.example.com/a.wav', '//example.com/a.wav'])
    expect(messageOf(checkSourceUrl(address, strict))).toMatch(/must be https, http, media:\/\/ or data:\./);
  expect(messageOf(checkWebhookUrl('example.com/hook', strict))).toMatch(/must be https\./);
  expect(messageOf(checkSourceUrl('https://exa mple.com/', strict))).toMatch(/is not a valid URL\./);
  expect(messageOf(checkHttpUrl('ftp://example.com/a.wav', strict))).toMatch(/must be http or https\./);
  expect(messageOf(checkWebhookUrl('ftp://example.com/hook', strict))).toMatch(/must be https\./);
});
