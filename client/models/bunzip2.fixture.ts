const fromBase64 = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, 'base64'));

/** bzip2 -9 of a tar archive: a folder `pack` with `empty.txt` and `hello.txt`. */
export const helloTarBz2 = fromBase64(
  'QlpoOTFBWSZTWb7F/9gAAiDbwMiQQAX/gJAIak/e4BAACAgwANbQMqPSGgGgGQAAEko0TJiaYIwTATAUqiQZGhoD1Mg0D01NCKP03TJkJRQgCK' +
    'HGioXkUjmBlCAhgVQmNxE4CbhMYmfxeDXbsstVXVYIlrnkJLQosWuovGRIAkMRfR24AIUDwcToWACcYnvgJ7VGmrMJ93qJwifkTCJrExibRNNj' +
    'MTPtshOVo57k2aXQE8rzQ/xdyRThQkL7F/9g',
);

/** bzip2 -1 of a million zero bytes. */
export const zerosBz2 = fromBase64('QlpoMTFBWSZTWXnTnkgAB6jAQMAAAAIACCAAMMwJqmmVJDapSQ8XckU4UJB5055I');

/** Two joined bzip2 streams: `first ` and `second`. */
export const twoStreamsBz2 = fromBase64(
  'QlpoOTFBWSZTWaRjnbsAAACRgEAAASAcACAAIYAMAycu4u5IpwoSFIxzt2BCWmg5MUFZJlNZJooCNAAAAoGADgGIACAAIhhoMAcCmF3JFOFCQJ' +
    'ooCNA=',
);
