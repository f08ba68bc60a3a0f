#!/usr/bin/env node
import { existsSync } from 'node:fs';

// A checkout has the command's sources, an installed package what `npm pack` has built from them.
const build = new URL('../client/cli/build.js', import.meta.url);
if (existsSync(build)) await (await import(build.href)).buildCommand();
const { main } = await import(new URL('../dist/cli/rollcall.js', import.meta.url).href);
await main(process.argv.slice(2));
