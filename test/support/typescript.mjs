import { existsSync, readFileSync } from 'node:fs';
import { register } from 'node:module';
import { fileURLToPath } from 'node:url';
import { isMainThread } from 'node:worker_threads';

/** Lets the threads and processes that tests start run the sources. Vitest itself does so for the tests. */
const isHook = new URL(import.meta.url).searchParams.has('hook');
const isSourceProcess = existsSync(process.argv[1]?.replace(/\.js$/, '.ts') ?? '');
if ((!isMainThread || isSourceProcess) && !isHook) register(`${import.meta.url}?hook`);

/** The sources import `./name.js`, which is `./name.ts` before the build. */
export async function resolve(specifier, context, next) {
  if (!/^(?:file:|\.)/.test(specifier)) return next(specifier, context);
  const source = new URL(specifier.replace(/\.js$/, '.ts'), context.parentURL);
  const isSource = source.href.endsWith('.ts') && existsSync(fileURLToPath(source));
  return isSource ? { url: source.href, format: 'module', shortCircuit: true } : next(specifier, context);
}

export async function load(url, context, next) {
  if (!url.endsWith('.ts')) return next(url, context);
  const { transform } = await import('esbuild');
  const text = readFileSync(fileURLToPath(url), 'utf8');
  const { code } = await transform(text, { loader: 'ts', format: 'esm', target: 'node20', sourcefile: url });
  return { format: 'module', source: code, shortCircuit: true };
}
