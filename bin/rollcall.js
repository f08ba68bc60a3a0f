#!/usr/bin/env node
import { existsSync } from 'node:fs';

// Builds the command in a checkout; an installed package already contains the build.
const build = new URL('../client/cli/build.js', import.meta.url);
if (existsSync(build)) await (await import(build.href)).buildCommand();
const { main } = await import(new URL('../dist/cli/rollcall.js', import.meta.url).href);
await main(process.argv.slice(2));
