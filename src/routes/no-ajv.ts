/** Replaces `ajv` and `ajv-formats` in the Worker (`wrangler.toml`); its MCP server uses neither. */
export default function unused(): never {
  throw new Error('ajv is left out of the Worker');
}
