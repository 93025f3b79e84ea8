// A host of the Model Context Protocol that runs `leat mcp`.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

const { LEAT_BINARY: binary, LEAT_URL: url, LEAT_TOKEN: token } = process.env;

// using runs a test with a client, which checks each result against the schema of its tool.
export async function using(run, { secret = token, base = url, args = [] } = {}) {
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(new StdioClientTransport({ command: binary, args: ['mcp', '--url', base, ...args], env: { ...process.env, LEAT_API_TOKEN: secret } }));
  const { tools } = await client.listTools(); // and gets the schemas
  const call = async (name, a = {}, options) => {
    const r = await client.callTool({ name, arguments: a }, undefined, { timeout: 300_000, ...options });
    return { ...r.structuredContent, isError: r.isError ?? false, shown: r.content[0].text };
  };
  try {
    await run(call, client, tools);
  } finally {
    await client.close();
  }
}
