/** Whether an address holds the sound itself (RFC 2397). Schemes are of either case (RFC 3986 §3.1). */
export function isDataUrl(url: string): boolean {
  return /^data:/i.test(url);
}
