// The client of the TypeScript SDK, which compares structured answers with the schemas that were listed.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

/** Lists and calls over both ways. */
export async function check({ http, bearer, program, env, digest }) {
  const headers = { authorization: bearer };
  await through(new StreamableHTTPClientTransport(new URL(http), { requestInit: { headers } }), digest);
  await through(new StdioClientTransport({ command: program, args: ["mcp"], env }), digest);
}

async function through(transport, digest) {
  const client = new Client({ name: "test", version: "1" });
  await client.connect(transport);
  const { tools } = await client.listTools();
  const names = tools.map((tool) => tool.name);
  for (const name of ["hash", "diff", "list_extensions", "delegate_task", "test_simple_text"]) {
    if (!names.includes(name)) throw new Error(`${name} is not listed: ${names}`);
  }
  const called = await client.callTool({ name: "hash", arguments: { input: "abc" } });
  if (called.structuredContent.output !== digest) throw new Error(JSON.stringify(called));
  const diff = await client.callTool({ name: "diff", arguments: { a: "x\n", b: "y\n" } });
  if (!Array.isArray(diff.structuredContent.blocks)) throw new Error(JSON.stringify(diff));
  const refused = await client.callTool({ name: "hash", arguments: {} });
  if (!refused.isError) throw new Error(JSON.stringify(refused));
  const { resources } = await client.listResources();
  const catalogue = await client.readResource({ uri: resources[0].uri });
  JSON.parse(catalogue.contents[0].text);
  await client.close();
}
