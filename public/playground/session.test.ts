import { describe, expect, it } from 'vitest';
import type { Store } from './memory.ts';
import { keyInFragment, Session } from './session.ts';

describe('the key in the address', () => {
  it.each(['localhost', '127.0.0.1', '127.1.2.3', '[::1]'])('is used on a loopback host: %s', (hostname) => {
    expect(keyInFragment({ hostname, hash: '#key=a.b-c_d' })).toBe('a.b-c_d');
  });

  it.each(['rollcall.example', '10.0.0.1', '127.0.0.1.example', 'localhost.example', ''])(
    'is not used on another host: %s',
    (hostname) => {
      expect(keyInFragment({ hostname, hash: '#key=a.b.c' })).toBeUndefined();
    },
  );

  it.each(['', '#', '#key', '#key=', '#key=%20', '#turns'])('is not found in %j', (hash) => {
    expect(keyInFragment({ hostname: 'localhost', hash })).toBeUndefined();
  });
});

describe('Session', () => {
  it('keeps the key and the job until they are removed', () => {
    const stored = new Map<string, string>();
    const store: Store = {
      getItem: (name) => stored.get(name) ?? null,
      setItem: (name, value) => void stored.set(name, value),
      removeItem: (name) => void stored.delete(name),
    };
    const session = new Session(() => store);
    expect([session.key, session.job]).toEqual(['', undefined]);
    session.key = 'a.b.c';
    session.job = { id: 'j', name: 'meeting.mp3' };
    expect([session.key, session.job]).toEqual(['a.b.c', { id: 'j', name: 'meeting.mp3' }]);
    session.key = '';
    session.job = undefined;
    expect(stored.size).toBe(0);
    stored.set('rollcall.job', 'not JSON');
    expect(session.job).toBeUndefined();
  });

  it('returns no data if the browser refuses to store any', () => {
    const session = new Session(() => {
      throw new DOMException('denied', 'SecurityError');
    });
    session.key = 'a.b.c';
    session.job = { id: 'j', name: 'x' };
    expect([session.key, session.job]).toEqual(['', undefined]);
  });
});
