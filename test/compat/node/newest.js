// Rewrites package.json so that npm install gets newer versions of the clients: node newest.js RANK. Rank 0 is the newest version of each client, and rank
// 1 that of the minor version before. Each keeps its major version, to which its tests belong. If a client has a newer major version, which needs tests of
// its own, this fails.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';

// What the tests themselves use. It keeps its versions.
const tools = new Set(['@durable-streams/server-conformance-tests', '@langchain/core', '@xterm/xterm', 'esbuild', 'playwright-core', 'react', 'react-dom', 'vite', 'vitest', 'zod']);

const rank = Number(process.argv[2]);
if (rank !== 0 && rank !== 1) throw new Error('the rank is 0 or 1');
const description = JSON.parse(readFileSync('package.json', 'utf8'));

const parse = (version) => version.split('.').map(Number);
// isSameMajor compares what may change between two versions. Below 1.0, a minor version may change everything.
const isSameMajor = (a, b) => a[0] === b[0] && (a[0] > 0 || a[1] === b[1]);

const compare = (a, b) => a.map((n, i) => n - b[i]).find((d) => d !== 0) ?? 0;

// clients are the dependencies by their package, with what is before the version in package.json.
const clients = new Map();
for (const [alias, value] of Object.entries(description.dependencies)) {
  if (tools.has(alias)) continue;
  const at = value.lastIndexOf('@');
  const name = value.startsWith('npm:') ? value.slice('npm:'.length, at) : alias;
  clients.set(name, [...clients.get(name) ?? [], { alias, before: value.slice(0, at + 1), version: parse(value.slice(at + 1)) }]);
}

for (const [name, list] of clients) {
  const output = JSON.parse(execFileSync('npm', ['view', name, 'versions', '--json'], { encoding: 'utf8' }));
  const versions = [output].flat().filter((v) => /^\d+\.\d+\.\d+$/.test(v)).map(parse).sort((a, b) => compare(b, a));
  if (!list.some((client) => isSameMajor(client.version, versions[0]))) {
    console.log(`${name} has version ${versions[0].join('.')}, which isn't tested yet`);
    process.exitCode = 1;
  }
  list.sort((a, b) => compare(b.version, a.version));
  for (const [i, client] of list.entries()) {
    // A client that is installed in two versions of one major version has the older one below the newer one.
    const limit = list[i - 1]?.version;
    const eligible = versions.filter((v) => isSameMajor(v, client.version) && !(limit && isSameMajor(limit, v) && compare(v, limit) >= 0));
    const minors = eligible.filter((v, at) => at === 0 || v[1] !== eligible[at - 1][1]);
    const version = (minors[rank] ?? eligible[rank] ?? client.version).join('.');
    console.log(`${name} ${client.version.join('.')} -> ${version}`);
    description.dependencies[client.alias] = client.before + version;
  }
}
writeFileSync('package.json', `${JSON.stringify(description, null, 2)}\n`);
