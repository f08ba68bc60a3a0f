/** Page around swagger-ui. It holds no inline script or style: its Content-Security-Policy forbids them. */
export const REFERENCE_PAGE = (swaggerUi: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>rollcall API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${swaggerUi}/swagger-ui.css">
<link rel="stylesheet" href="/docs/styles.css">
</head>
<body>
<div id="reference"></div>
<noscript><p>This page needs JavaScript. The same is in <a href="/openapi.json">openapi.json</a>.</p></noscript>
<script src="${swaggerUi}/swagger-ui.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
`;

/** Starts swagger-ui in the reference page. */
export const REFERENCE_START = `SwaggerUIBundle({
  url: '/openapi.json',
  dom_id: '#reference',
  deepLinking: true,
  displayOperationId: false,
  defaultModelsExpandDepth: 0,
  validatorUrl: null,
});
`;

/** What stands at the root of the service. */
export const HOME_PAGE = (version: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>rollcall</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/docs/styles.css">
</head>
<body class="home">
<main>
<h1>rollcall <small>${version}</small></h1>
<p>Who spoke when: a speaker diarization service. Send the address of a recording, get its speaker turns.</p>
<ul>
<li><a href="/docs">Reference</a>: every endpoint, its fields and its errors</li>
<li><a href="/openapi.json">openapi.json</a>: the same as OpenAPI 3.1, for programs</li>
</ul>
<p>Calls need an API key of this service: <code>Authorization: Bearer KEY</code>.</p>
</main>
</body>
</html>
`;

export const STYLES = `:root { color-scheme: light; }
body { margin: 0; background: #fff; }
.home { font: 1rem/1.6 system-ui, sans-serif; color: #1b1f24; }
.home main { max-width: 40rem; margin: 12vh auto; padding: 0 1.5rem; }
.home h1 { font-size: 2rem; }
.home small { font-size: 1rem; font-weight: normal; color: #57606a; }
.home a { color: #0550ae; }
.home code { background: #f3f4f6; padding: 0.1em 0.3em; border-radius: 3px; }
.swagger-ui .info { margin: 2rem 0; }
`;
