/** Stands for `ajv` and `ajv-formats` in the Worker (`wrangler.toml`): the MCP server has a validator that needs neither. */
export default function unused(): never {
  throw new Error('ajv is left out of the Worker');
}
