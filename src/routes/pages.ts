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

export const STYLES = `:root { color-scheme: light; }
body { margin: 0; background: #fff; }
.swagger-ui .info { margin: 2rem 0; }
`;
